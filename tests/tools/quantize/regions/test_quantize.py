"""quantize and tfl-quantize-pipeline: a model's casts and fake quantizations become quantized operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import interpret

import tflq
from tflq.base.errors import OptionError, UnsupportedError
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.text.parser import parse_module
from tflq.ir.text.print_types import type_text
from tflq.ir.text.printer import print_module
from tflq.ir.types import BareType, i8, i32, ui8
from tflq.ir.verifier import verify
from tflq.numerics.ranges import simulated
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.regions.quantize import TflQuantizePipeline

PIPELINE = TflQuantizePipeline()
WEIGHTS = np.array([[0.1, -0.2, 0.3, 0.5], [0.5, 0.25, -0.1, 0.2], [-0.5, 0.3, 0.0, 0.1]], np.float32)
BIAS = np.array([0.1, 0.2, -0.3], np.float32)
LAYER = """func.func @main(%x: tensor<2x4xf32> {{tflq.name = "x"}}) -> tensor<2x3xf32> {{
  %w = "tf.Const"() {{value = dense<[[0.1, -0.2, 0.3, 0.5], [0.5, 0.25, -0.1, 0.2], [-0.5, 0.3, 0.0, 0.1]]>
      : tensor<3x4xf32>}} : () -> tensor<3x4xf32>
  %b = arith.constant dense<[0.1, 0.2, -0.3]> : tensor<3xf32>
  %v = {weights}
  %i = {input}
  %m = "tfl.fully_connected"(%i, %v, %b) {{fused_activation_function = "NONE", keep_num_dims = false,
      weights_format = "DEFAULT", tflq.tensors = [{{name = "product"}}]}}
      : (tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  {behind}
  return %y : tensor<2x3xf32>
}}"""


def fake(value: str, shape: str, reach: float, more: str = "") -> str:
    kind = f"tensor<{shape}xf32>"
    given = f"min = -{reach} : f32, max = {reach} : f32{more}"
    return f'"tf.FakeQuantWithMinMaxArgs"({value}) {{{given}, tflq.tensors = [{{name = "y"}}]}} : ({kind}) -> {kind}'


def layer(**parts: str) -> str:
    narrow = ", narrow_range = true"
    given = {
        "weights": fake("%w", "3x4", 0.5, narrow),
        "input": fake("%x", "2x4", 1.0),
        "behind": f"%y = {fake('%m', '2x3', 2.0)}",
        **parts,
    }
    return LAYER.format(**given)


def run(text: str, passes: str = "tfl-quantize-pipeline") -> Module:
    module = parse_module(text)
    verify(module)
    return parse_pipeline(passes).run(module).module


def names(module: Module) -> list[str]:
    return [op.short_name for op in module.main.ops]


def only(module: Module, name: str) -> Op:
    (op,) = (op for op in module.main.ops if op.short_name == name)
    return op


def shown(value: Value | None) -> str:
    assert value is not None
    return type_text(BareType.of(value.type.element)).removeprefix("!quant.uniform")


def test_dequantize_operator_quantize_is_the_quantized_operator() -> None:
    module = run(layer())
    assert names(module) == ["quantize", "fully_connected", "dequantize"]
    x, w, b = only(module, "fully_connected").operands
    assert [shown(v) for v in (x, w, b)] == [
        "<i8:f32, 0.007843138>",
        "<i8:f32, 0.003937008>",
        "<i32:f32, 3.0878495e-05>",
    ]
    assert w is not None
    assert b is not None
    np.testing.assert_array_equal(w.array, np.round(WEIGHTS / np.float32(0.003937008)))
    np.testing.assert_array_equal(b.array, np.round(BIAS / np.float32(3.0878495e-05)))
    assert module.main.outputs[0].name == "y"


def test_the_file_runs_as_training_simulated_it() -> None:
    """Within the ranges: at their ends, training in float32 and the converter in float64 round a zero point of 127.5 to
    127 and to 128."""
    x = np.random.default_rng(0).uniform(-0.99, 0.99, (300, 2, 4)).astype(np.float32)
    weights = simulated(WEIGHTS, -0.5, 0.5, 8, narrow_range=True)
    want = simulated(simulated(x, -1.0, 1.0, 8) @ weights.T + BIAS, -2.0, 2.0, 8)
    got = np.array(interpret(bytes(tflq.write(run(layer()))), [[each] for each in x]))[:, 0]
    step = 4 / 255
    assert np.abs(want - got).max() <= step * 1.01, "the kernel may round the other way"
    assert (np.abs(want - got) < step / 2).mean() > 0.99


def test_int16_has_biases_of_64_bits() -> None:
    wide = ", num_bits = 16 : i64"
    text = layer(input=fake("%x", "2x4", 1.0, wide), behind=f"%y = {fake('%m', '2x3', 2.0, wide)}")
    module = run(text, "tfl-quantize-pipeline{target=int16x8}")
    assert names(module) == ["quantize", "fully_connected", "dequantize"]
    x, w, b = only(module, "fully_connected").operands
    assert [v and v.type.storage.name for v in (x, w, b)] == ["i16", "i8", "i64"]


def test_storage_is_that_of_the_target() -> None:
    module = run(layer(), "tfl-quantize-pipeline{target=uint8}")
    x, w, b = only(module, "fully_connected").operands
    assert [v and v.type.storage for v in (x, w, b)] == [ui8, ui8, i32]
    assert names(module) == ["quantize", "fully_connected", "dequantize"]


def said(form: str, value: str, shape: str, reach: float, result: str, *, narrow: bool = False) -> str:
    """A fake quantization: as casts of a file, as its FAKE_QUANT, and as the op of `quant`."""
    kind, named = f"tensor<{shape}xf32>", 'tflq.tensors = [{name = "y"}]'
    given = f"min = -{reach} : f32, max = {reach} : f32, narrow_range = {str(narrow).lower()}"
    if form == "tfl":
        return f'{result} = "tfl.fake_quant"({value}) {{num_bits = 8 : i32, {given}, {named}}} : ({kind}) -> {kind}'
    if form == "quant":
        return f'{result} = "quant.const_fake_quant"({value}) {{num_bits = 8, {given}}} : ({kind}) -> {kind}'
    stored = f"tensor<{shape}x!quant.uniform<u8:f32, {2 * reach / (254 if narrow else 255)!r}:128>>"
    return f"""{result}_ = "tfl.quantize"({value}) : ({kind}) -> {stored}
  {result} = "tfl.dequantize"({result}_) {{{named}}} : ({stored}) -> {kind}"""


def layer_of(form: str) -> str:
    weights = said(form, "%w", "3x4", 0.5, "%v", narrow=True)
    given = said(form, "%x", "2x4", 1.0, "%i")
    text = layer(weights="", input="", behind=said(form, "%m", "2x3", 2.0, "%y"))
    return text.replace("  %v = \n", f"  {weights}\n").replace("  %i = \n", f"  {given}\n")


@pytest.mark.parametrize("form", ["pair", "tfl", "quant"])
def test_every_way_to_say_it_gives_the_same(form: str) -> None:
    made, want = run(layer_of(form)), run(layer())
    assert names(made) == names(want)
    for op, other in zip(made.main.ops, want.main.ops, strict=True):
        assert [v and v.type for v in op.operands] == [v and v.type for v in other.operands]
        for value, twin in zip(op.operands, other.operands, strict=True):
            if value is not None and twin is not None and value.is_constant:
                np.testing.assert_array_equal(value.array, twin.array)


def test_ranges_of_inputs_and_outputs_are_the_users(tmp_path: Path) -> None:
    text = layer(input="", behind="").replace("  %i = \n", "").replace("(%i,", "(%x,").replace("%y", "%m")
    unknown = run(text)
    assert "quantize" not in names(unknown), "nothing says how the input is quantized"
    assert [v and v.type.storage.name for v in only(unknown, "fully_connected").operands] == ["f32", "f32", "f32"]
    path = tmp_path / "ranges.toml"
    path.write_text(
        '[tensors]\n"x" = "!quant.calibrated<f32<-1.0:1.0>>"\n"product" = "!quant.calibrated<f32<-2.0:2.0>>"\n'
    )
    module = run(text, f"tfl-quantize-pipeline{{annotations={path}}}")
    assert names(module) == ["quantize", "fully_connected", "dequantize"]
    assert only(module, "fully_connected").result.type.storage == i8
    assert module.main.outputs[0].name == "product"
    path.write_text('[tensors]\n"z" = "none"\n')
    with pytest.raises(OptionError, match="'z': no tensor between kernels has such a name"):
        run(text, f"tfl-quantize-pipeline{{annotations={path}}}")


CONCATENATED = """func.func @main(%x: tensor<2x4xf32> {{tflq.name = "x"}}) -> tensor<2x8xf32> {{
  %i = {input}
  %t = "tfl.mul"(%i, %i) {{fused_activation_function = "NONE", tflq.tensors = [{{name = "square"}}]}}
      : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %v = {square}
  %c = "tfl.concatenation"(%v, %i) {{axis = 1 : i32, fused_activation_function = "NONE"}}
      : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %y = {behind}
  return %y : tensor<2x8xf32>
}}"""


def test_a_kernel_results_in_what_its_only_user_takes(tmp_path: Path) -> None:
    """But for what the user has annotated, which is rescaled."""
    text = CONCATENATED.format(
        input=fake("%x", "2x4", 1.0), square=fake("%t", "2x4", 0.5), behind=fake("%c", "2x8", 1.0)
    )
    module = run(text)
    assert names(module) == ["quantize", "mul", "concatenation", "dequantize"]
    assert shown(only(module, "mul").result) == "<i8:f32, 0.007843138>"
    path = tmp_path / "ranges.toml"
    path.write_text('[tensors]\n"square" = "!quant.uniform<i8:f32, 0.25>"\n')
    annotated = run(text, f"tfl-quantize-pipeline{{annotations={path}}}")
    assert names(annotated) == ["quantize", "mul", "quantize", "concatenation", "dequantize"]
    assert shown(only(annotated, "mul").result) == "<i8:f32, 0.25>"


def test_an_annotated_result_of_a_kernel_of_fixed_scale_has_its_range(tmp_path: Path) -> None:
    """A SOFTMAX of another scale than the output is to have."""
    softmax = (
        '"tfl.softmax"(%m) {beta = 1.0 : f32, tflq.tensors = [{name = "y"}]} : (tensor<2x3xf32>) -> tensor<2x3xf32>'
    )
    text = layer(behind=f"%y = {softmax}")
    path = tmp_path / "ranges.toml"
    path.write_text(
        '[tensors]\n"y" = "!quant.uniform<i8:f32, 0.5:1>"\n"product" = "!quant.calibrated<f32<-2.0:2.0>>"\n'
    )
    module = run(text, f"tfl-quantize-pipeline{{annotations={path}}}")
    assert names(module) == ["quantize", "fully_connected", "softmax", "quantize", "dequantize"]
    assert shown(module.main.ops[3].result) == "<i8:f32, 0.5:1>"
    assert module.main.outputs[0].name == "y"


def test_propagation_and_folding_stand_between_legalize_tf_and_prepare_tfl() -> None:
    """The order of the proposal's six steps."""
    steps = [step.name for half in (PIPELINE.propagation(), PIPELINE.quantization()) for step in half]
    assert steps == ["legalize-tf", "kernel-fusion", "quant-propagate", "fold", "prepare-tfl", "quantize"]


def test_what_no_kernel_takes_stays_in_floats_between_casts() -> None:
    behind = f"""%c = {fake("%m", "2x3", 2.0)}
  %s = "tfl.sin"(%c) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %t = {fake("%s", "2x3", 1.0)}
  %a = "tfl.add"(%t, %c) {{fused_activation_function = "NONE"}}
      : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = {fake("%a", "2x3", 3.0)}"""
    module = run(layer(behind=behind))
    order = ["quantize", "fully_connected", "dequantize", "sin", "quantize", "add", "dequantize"]
    assert names(module) == order
    assert not only(module, "sin").result.type.quantized
    assert [v and v.type.storage for v in only(module, "add").operands] == [i8, i8]


def test_what_training_has_not_simulated_stays_in_floats() -> None:
    """A SOFTMAX, whose kernel has one scale, a RESHAPE behind it, and weights whose range is known."""
    text = """func.func @main(%x: tensor<2x4xf32>) -> tensor<6xf32> {
      %w = arith.constant dense<[[0.1, -0.2, 0.3, 0.5], [0.5, 0.25, -0.1, 0.2], [-0.5, 0.3, 0.0, 0.1]]>
          : tensor<3x4xf32>
      %s = arith.constant dense<[6]> : tensor<1xi32>
      %b = "tfl.no_value"() {value} : () -> none
      %m = "tfl.fully_connected"(%x, %w, %b) {fused_activation_function = "NONE", keep_num_dims = false,
          weights_format = "DEFAULT"} : (tensor<2x4xf32>, tensor<3x4xf32>, none) -> tensor<2x3xf32>
      %p = "tfl.softmax"(%m) {beta = 1.0 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %r = "tfl.reshape"(%p, %s) : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<6xf32>
      return %r : tensor<6xf32>
    }"""
    module = run(text)
    assert names(module) == ["fully_connected", "softmax", "reshape"]
    assert not any(value.type.quantized for op in module.main.ops for value in op.tensors)


def test_a_result_that_training_rounded_is_rounded_once_behind_an_operator_on_floats() -> None:
    """A SOFTMAX of reals, whose kernel would have another scale."""
    text = f"""func.func @main(%m: tensor<2x3xf32>) -> tensor<2x3xf32> {{
      %p = "tfl.softmax"(%m) {{beta = 1.0 : f32}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %y = {fake("%p", "2x3", 1.0)}
      return %y : tensor<2x3xf32>
    }}"""
    module = run(text)
    assert names(module) == ["softmax", "quantize", "dequantize"]
    assert shown(module.main.ops[1].result) == "<i8:f32, 0.007843138>"


def test_what_is_quantized_already_stays() -> None:
    """A hybrid operator, and one of int16, of which the scheme has no kernel."""
    text = """func.func @main(%x: tensor<2x4xf32>, %y: tensor<4x!quant.uniform<i16:f32, 0.5>>)
        -> (tensor<2x1xf32>, tensor<4x!quant.uniform<i16:f32, 0.5>>) {
      %w = "tfl.pseudo_qconst"() {value = dense<[[1, -2, 3, 5]]> : tensor<1x4xi8>}
          : () -> tensor<1x4x!quant.uniform<i8:f32, 0.5>>
      %b = "tfl.no_value"() {value} : () -> none
      %m = "tfl.fully_connected"(%x, %w, %b) {fused_activation_function = "NONE", keep_num_dims = false,
          weights_format = "DEFAULT"}
          : (tensor<2x4xf32>, tensor<1x4x!quant.uniform<i8:f32, 0.5>>, none) -> tensor<2x1xf32>
      %a = "tfl.neg"(%y) : (tensor<4x!quant.uniform<i16:f32, 0.5>>) -> tensor<4x!quant.uniform<i16:f32, 0.5>>
      return %m, %a : tensor<2x1xf32>, tensor<4x!quant.uniform<i16:f32, 0.5>>
    }"""
    module = run(text)
    assert names(module) == ["fully_connected", "neg"]
    assert only(module, "fully_connected").operand(1).type.storage == i8


def test_float_constants_are_stored_as_integers_where_the_operator_stays_in_floats() -> None:
    """One operator of which no kernel is known, on a constant that training rounded."""
    text = layer(behind='%y = "tfl.pow"(%m, %k) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>')
    text = text.replace("  %b =", f"  %k = {fake('%b', '3', 0.5, ', narrow_range = true')}\n  %b =")
    head, _, tail = text.partition("  %b = ")
    bias, _, rest = tail.partition("\n")
    lines = head.split("\n")
    text = "\n".join([*lines[:-2], f"  %b = {bias}", lines[-2], rest])
    module = run(text)
    power = only(module, "pow")
    back = power.operand(1).producer
    assert back is not None
    assert back.short_name == "dequantize"
    assert back.operand(0).is_constant
    assert back.operand(0).type.storage == i8


def test_quantize_alone_takes_what_casts_say() -> None:
    prepared = run(layer(), "legalize-tf,fold,prepare-tfl")
    module = parse_pipeline("quantize").run(parse_module(print_module(prepared))).module
    assert names(module) == ["quantize", "fully_connected", "dequantize"]
    again = parse_pipeline("quantize").run(parse_module(print_module(module))).module
    assert print_module(again) == print_module(module)


def test_constants_that_nothing_reads_leave_the_file() -> None:
    floats = bytes(tflq.write(run(layer_of("tfl"), "dce")))
    module = tflq.read(floats)
    made = bytes(tflq.write(parse_pipeline("tfl-quantize-pipeline").run(module).module))
    assert WEIGHTS[0].tobytes() in floats
    assert WEIGHTS[0].tobytes() not in made
    assert BIAS.tobytes() not in made


def test_other_ops_of_tensorflow_stop_it() -> None:
    behind = '%y = "tf.Relu"(%m) : (tensor<2x3xf32>) -> tensor<2x3xf32>'
    with pytest.raises(UnsupportedError, match=r"tf.Relu: of TensorFlow's ops"):
        run(layer(behind=behind))


def test_bounds_that_a_file_cannot_hold_convert(tmp_path: Path) -> None:
    """A narrow range of an activation: the storage's bounds are clamped to."""
    text = layer(behind=f"%y = {fake('%m', '2x3', 0.5, ', narrow_range = true')}")
    module = run(text)
    assert shown(only(module, "fully_connected").result) == "<i8<-127:127>:f32, 0.003937008>"
    with pytest.raises(tflq.TflqError, match="no place for the bounds <-127:127>"):
        tflq.write(module)
    path = tmp_path / "narrow.mlir"
    path.write_text(print_module(module))
    tflq.convert(path, tmp_path / "narrow.tflite")
    x = np.full((1, 2, 4), -1.0, np.float32)
    x[:, 1] = 1.0
    (made,) = interpret((tmp_path / "narrow.tflite").read_bytes(), [[each] for each in x])[0]
    assert np.abs(made).max() <= np.float32(127 * 0.003937008)
    assert made.min() == -made.max()
