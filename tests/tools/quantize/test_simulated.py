"""Fake quantization becomes casts: convert-simulated-quantization, legalize-tf, prepare-tfl; ops of TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest
from support.mlir_oracle import needs_mlir
from support.mlir_oracle import run as made_by_mlir

from tflq.base.errors import ParseError, UnsupportedError, VerificationError
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.ir.facts import walk
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.print_types import type_text
from tflq.ir.text.printer import print_module
from tflq.ir.types import BareType, UniformQuantizedType
from tflq.ir.verifier import verify
from tflq.numerics.ranges import simulated
from tflq.tools.opt import parse_pipeline

CONVERT = "convert-simulated-quantization"
ONE = "(tensor<4x2xf32>) -> tensor<4x2xf32>"
OF_CHANNELS = "(tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4x2xf32>"
OF_VARS = "(tensor<4x2xf32>, tensor<f32>, tensor<f32>) -> tensor<4x2xf32>"

PER_AXIS = "min = [-64.0 : f32, -32.0 : f32], max = [63.5 : f32, 31.75 : f32], axis = 1, num_bits = 8, is_signed = true"

RECORDED = [
    (-0.00011470815661596134, 0.00038812769344076514, False, 1.9719052e-06, 58),
    (-0.6798457503318787, 0.6798457503318787, False, 0.0053321235, 128),
    (0.0, 1.3611985445022583, True, 0.0053590494, 1),
    (-15.43041706085205, 0.0, False, 0.06051144, 255),
    (-0.0001427205716026947, 0.02438988722860813, False, 9.6206306e-05, 1),
    (-0.00017489124729763716, 1.1551567240530858e-06, True, 6.9309607e-07, 253),
    (-197.81613159179688, 197.81613159179688, True, 1.5576073, 128),
    (-8877.876953125, 8877.876953125, False, 69.63041, 127),
    (-9140.5498046875, 9140.5498046875, False, 71.69059, 127),
    (-0.16362611949443817, 44.42959213256836, False, 0.17487536, 1),
    (-0.018152114003896713, 0.13007110357284546, True, 0.00058355596, 32),
    (-13.943205833435059, 17.817832946777344, False, 0.12455309, 112),
    (0.0, 1e-20, False, 3.9215688e-09, 127),
    (1.0, 2.0, False, 0.003921569, 0),
    (-2.0, -1.0, False, 0.003921569, 255),
]
"""Ranges, narrow range, and the scale and zero point that tensorflow-cpu 2.21's converter makes of them, for 8 bits."""


def text_of(line: str, before: str = "") -> str:
    head = "func.func @f(%x: tensor<4x2xf32>, %m: tensor<f32>) -> tensor<4x2xf32> {"
    return f"{head}{before}\n  %y = {line}\n  return %y : tensor<4x2xf32>\n}}"


def run(passes: str, text: str) -> Module:
    module = parse_module(text)
    verify(module)
    return parse_pipeline(passes).run(module).module


def constants(low: str, high: str, kind: str) -> str:
    """Constants of TensorFlow and of MLIR."""
    return (
        f'\n  %lo = "tf.Const"() {{value = dense<{low}> : {kind}}} : () -> {kind}'
        f"\n  %hi = arith.constant dense<{high}> : {kind}"
    )


def args(low: object, high: object, more: str = "") -> str:
    return f'"tf.FakeQuantWithMinMaxArgs"(%x) {{min = {low} : f32, max = {high} : f32{more}}} : {ONE}'


def const(attributes: str) -> str:
    return f'"quant.const_fake_quant"(%x) {{{attributes}}} : {ONE}'


def kind_of(module: Module) -> str:
    """The quantized type of the only cast, without the mark of a type."""
    (cast,) = (op for op in walk(module.main.ops) if isinstance(op, (Qcast, Quantize)))
    return type_text(BareType.of(cast.result.type.element)).removeprefix("!quant.uniform")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('"tf.FakeQuantWithMinMaxArgs"(%x) : ' + ONE, "<u8:f32, 0.047058824:128>"),
        (args(-64.0, 63.5, ', num_bits = 8 : i64, device = ""'), "<u8:f32, 0.5:128>"),
        (args(-63.5, 63.5, ", narrow_range = true"), "<u8<1:255>:f32, 0.5:128>"),
        (args(0.0, 3.0, ", num_bits = 2 : i64"), "<u8<0:3>:f32, 1.0>"),
        (args(-8.0, 7.5, ", num_bits = 5 : i64"), "<u8<0:31>:f32, 0.5:16>"),
        (args(-1024.0, 1023.5, ", num_bits = 12 : i64"), "<u16<0:4095>:f32, 0.5:2048>"),
        (args(-16383.5, 16383.5, ", num_bits = 16 : i64, narrow_range = true"), "<u16<1:65535>:f32, 0.5:32768>"),
        (const("min = -8.0 : f32, max = 7.5 : f32, num_bits = 5, is_signed = true"), "<i8<-16:15>:f32, 0.5>"),
        (const("min = -1.0 : f32, max = 1.0 : f32, num_bits = 8, is_signed = true"), "<i8:f32, 0.007843138>"),
        (f'"tfl.fake_quant"(%x) {{min = -64.0 : f32, max = 63.5 : f32, num_bits = 8 : i32}} : {ONE}', "<i8:f32, 0.5>"),
        (
            const(PER_AXIS).replace("fake_quant", "fake_quant_per_axis"),
            "<i8:f32:1, {0.5, 0.25}>",
        ),
    ],
)
def test_range_bits_and_sign_give_the_type(line: str, kind: str) -> None:
    module = run(CONVERT, text_of(line))
    assert kind_of(module) == kind
    assert [type(op) for op in module.main.ops] == [Qcast, Dcast]


def test_ranges_can_be_constant_operands() -> None:
    line = f'"tf.FakeQuantWithMinMaxVars"(%x, %lo, %hi) {{num_bits = 8 : i64}} : {OF_VARS}'
    assert kind_of(run(CONVERT, text_of(line, constants("-64.0", "63.5", "tensor<f32>")))) == "<u8:f32, 0.5:128>"
    line = f'"tf.FakeQuantWithMinMaxVarsPerChannel"(%x, %lo, %hi) {{narrow_range = true}} : {OF_CHANNELS}'
    module = run(CONVERT, text_of(line, constants("[-63.5, 0.0]", "[63.5, 0.0]", "tensor<2xf32>")))
    assert kind_of(module) == "<u8<1:255>:f32:1, {0.5:128, 3.937008e-09:128}>", "a dead channel has a scale"


@pytest.mark.parametrize(("low", "high", "narrow", "scale", "zero"), RECORDED)
def test_parameters_are_those_of_tensorflows_converter(
    low: float, high: float, narrow: bool, scale: float, zero: int
) -> None:
    module = run(CONVERT, text_of(args(low, high, f", narrow_range = {str(narrow).lower()}")))
    kind = module.main.ops[0].result.type.element
    assert isinstance(kind, UniformQuantizedType)
    assert (np.float32(kind.scale), kind.zero_point) == (np.float32(scale), zero)


@pytest.mark.parametrize("bits", range(2, 17))
@pytest.mark.parametrize("narrow", [False, True])
def test_casts_are_the_steps_of_training(bits: int, narrow: bool) -> None:
    """But where a number lies between two steps, to a millionth of one: training computes in float32."""
    rng = np.random.default_rng(bits)
    x = np.concatenate([rng.normal(0, 2, 7998), [0.0, 100.0]]).astype(np.float32).reshape(4000, 2)
    low, high = (float(np.float32(end)) for end in (-rng.uniform(0.1, 3), rng.uniform(0.1, 3)))
    elements = ", ".join(f"[{a!r}, {b!r}]" for a, b in x.tolist())
    line = args(low, high, f", num_bits = {bits} : i64, narrow_range = {str(narrow).lower()}").replace("4x2", "4000x2")
    text = f"""func.func @f() -> tensor<4000x2xf32> {{
      %x = arith.constant dense<[{elements}]> : tensor<4000x2xf32>
      %y = {line}
      return %y : tensor<4000x2xf32>
    }}"""
    (made,) = run(f"{CONVERT},fold{{limit=1000000}}", text).main.outputs
    want = simulated(x, low, high, bits, narrow_range=narrow)
    step = (high - low) / (2**bits - 1 - narrow)
    place = x / np.float64(step)
    tie = np.abs(np.abs(place - np.floor(place)) - 0.5) < 1e-6 * 2**bits
    np.testing.assert_allclose(made.array[~tie], want[~tie], rtol=1e-5, atol=step * 1e-3)
    assert tie.mean() < 0.2


@needs_mlir
def test_mlir_accepts_the_types() -> None:
    lines = [
        *(args(low, high, f", narrow_range = {str(n).lower()}") for low, high, n, _, _ in RECORDED),
        const(PER_AXIS),
    ]
    lines[-1] = lines[-1].replace("fake_quant", "fake_quant_per_axis")
    printed = [print_module(run(CONVERT, text_of(line))) for line in lines]
    assert not [text for text in made_by_mlir(printed) if text.startswith("ERROR")]


def test_fake_quantization_inside_of_other_ops_becomes_casts() -> None:
    text = f"""func.func @f(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {{
      %r = "quant.region"(%x) ({{
      ^bb0(%b: tensor<4x2xf32>):
        %t = "tfl.tanh"(%b) : {ONE}
        %y = "quant.const_fake_quant"(%t) {{min = -1.0 : f32, max = 1.0 : f32, num_bits = 8}} : {ONE}
        "quant.return"(%y) : (tensor<4x2xf32>) -> ()
      }}) {{input_specs = [f32], output_specs = [f32], kernel = "tanh"}} : {ONE}
      return %r : tensor<4x2xf32>
    }}"""
    module = run(CONVERT, text)
    assert [op.short_name for op in walk(module.main.ops)] == ["region", "tanh", "qcast", "dcast", "return"]


def test_legalize_tf_puts_casts_behind_fake_quantization_once() -> None:
    text = text_of(args(-64.0, 63.5))
    module = run("legalize-tf", text)
    assert [op.name for op in module.main.ops] == ["tf.FakeQuantWithMinMaxArgs", "tfl.quantize", "tfl.dequantize"]
    assert kind_of(module) == "<u8:f32, 0.5:128>"
    again = parse_pipeline("legalize-tf").run(parse_module(print_module(module)))
    assert not again.modified
    prepared = parse_pipeline("prepare-tfl").run(again.module).module
    assert [type(op) for op in prepared.main.ops] == [Quantize, Dequantize]
    assert not parse_pipeline("prepare-tfl").run(prepared).modified


def test_prepare_tfl_keeps_casts_to_other_steps() -> None:
    pair = """
  %q = "tfl.quantize"(%p) : (tensor<4x2xf32>) -> tensor<4x2x!quant.uniform<i8:f32, 0.25>>
  %y = "tfl.dequantize"(%q) : (tensor<4x2x!quant.uniform<i8:f32, 0.25>>) -> tensor<4x2xf32>"""
    text = text_of('"tfl.neg"(%y) : ' + ONE, f"\n  %p = {args(-64.0, 63.5)}{pair}").replace(
        '%y = "tfl.neg', '%z = "tfl.neg'
    )
    module = run("prepare-tfl", text.replace("return %y", "return %z"))
    assert [op.short_name for op in module.main.ops] == ["quantize", "dequantize", "quantize", "dequantize", "neg"]


def test_a_result_that_is_returned_keeps_its_value() -> None:
    """The fake quantization is read by a cast of the same steps, and returned, too."""
    text = f"""func.func @f(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2x!quant.uniform<u8:f32, 0.5:128>>) {{
      %y = {args(-64.0, 63.5)}
      %q = "tfl.quantize"(%y) : (tensor<4x2xf32>) -> tensor<4x2x!quant.uniform<u8:f32, 0.5:128>>
      return %y, %q : tensor<4x2xf32>, tensor<4x2x!quant.uniform<u8:f32, 0.5:128>>
    }}"""
    module = run("prepare-tfl", text)
    assert [op.short_name for op in module.main.ops] == ["quantize", "dequantize", "quantize"]
    assert module.main.outputs[0].producer is module.main.ops[1]


@pytest.mark.parametrize("passes", [CONVERT, "legalize-tf", "prepare-tfl"])
def test_a_range_that_the_model_computes_is_refused(passes: str) -> None:
    line = f'"tf.FakeQuantWithMinMaxVars"(%x, %m, %m) {{num_bits = 8 : i64}} : {OF_VARS}'
    with pytest.raises(UnsupportedError, match=r"tf.FakeQuantWithMinMaxVars: its range is computed"):
        run(passes, text_of(line))


def test_other_ops_of_tensorflow_are_refused_by_name() -> None:
    before = '\n  %a = "tf.Relu"(%x) : (tensor<4x2xf32>) -> tensor<4x2xf32>'
    with pytest.raises(UnsupportedError, match="of TensorFlow's ops only fake quantization is known") as caught:
        run("legalize-tf", text_of(f'"tf.Elu"(%a) : {ONE}', before))
    assert [reason.value for reason in caught.value.reasons] == ["tf.Relu", "tf.Elu"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (args(1.0, -1.0), "min must be below max"),
        (args(-1.0, 1.0, ", num_bits = 17 : i64"), "num_bits must be an integer from 2 to 16"),
        (args(-1.0, 1.0, ", narrow_range = 1 : i64"), "'narrow_range' is 1"),
        (f'"tf.FakeQuantWithMinMaxVars"(%x, %x, %x) : {OF_VARS.replace("tensor<f32>", "tensor<4x2xf32>")}', "scalars"),
        (
            f'"tf.FakeQuantWithMinMaxVarsPerChannel"(%x, %m, %m) : {OF_VARS}',
            "one number for each index of the last dim",
        ),
    ],
)
def test_ops_of_tensorflow_are_verified(line: str, reason: str) -> None:
    with pytest.raises(VerificationError, match=reason):
        verify(parse_module(text_of(line)))


def test_fake_quantization_keeps_the_shape() -> None:
    wider = args(-1.0, 1.0).replace("-> tensor<4x2", "-> tensor<4x3")
    with pytest.raises(VerificationError, match="inputs and outputs must be of one shape"):
        verify(parse_module(text_of(args(-1.0, 1.0), f"\n  %z = {wider}")))


def test_the_type_that_mlir_repeats_is_checked() -> None:
    """`qtype` of tfl.quantize is its result's type."""
    line = """
  %q = "tfl.quantize"(%x) {{qtype = tensor<4x2x!quant.uniform<i8:f32, {}>>}}
      : (tensor<4x2xf32>) -> tensor<4x2x!quant.uniform<i8:f32, 0.5>>"""
    back = f'"tfl.dequantize"(%q) : {ONE.replace("4x2xf32>)", "4x2x!quant.uniform<i8:f32, 0.5>>)")}'
    module = parse_module(text_of(back, line.format("0.5")))
    assert "qtype" not in print_module(module)
    with pytest.raises(ParseError, match="'qtype' is"):
        parse_module(text_of(back, line.format("0.25")))


def test_fake_quantization_of_tflite_has_a_type_only_with_a_range() -> None:
    """An operator of a file that says no number of bits."""
    with pytest.raises(UnsupportedError, match=r"tfl.fake_quant: min -1.0, max 1.0 and 0 bits"):
        run(CONVERT, text_of(f'"tfl.fake_quant"(%x) {{min = -1.0 : f32, max = 1.0 : f32}} : {ONE}'))
