"""kernel-fusion, inline-regions, quant-materialize and quant-codegen, on text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tflq.base.errors import OptionError, UnsupportedError
from tflq.dialects.regions import Region
from tflq.ir.module import Module
from tflq.ir.ops import constant
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import ElementType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32
from tflq.ir.verifier import verify
from tflq.targets.constraints import CONSTRAINTS, Constraint, quant_function
from tflq.tools.opt import named_passes, parse_pipeline
from tflq.tools.quantize.regions.fusion import patterns
from tflq.tools.quantize.regions.lookup import quantized_constant

QUANTIZED = """
!q = !quant.uniform<i8:f32, 0.5:-3>
!r = !quant.uniform<i8:f32, 2.0:7>
func.func @f(%a: tensor<4x!q>, %b: tensor<4x!q>) -> tensor<4x!r> {
  %0 = "tfl.add"(%a, %b) {fused_activation_function = "NONE"} : (tensor<4x!q>, tensor<4x!q>) -> tensor<4x!r>
  %1 = "tfl.relu"(%0) : (tensor<4x!r>) -> tensor<4x!r>
  return %1 : tensor<4x!r>
}
"""
CONV = """
func.func @f(%a: tensor<1x4x4x2xf32>) -> tensor<1x4x4x3xf32> {
  %w = "tfl.pseudo_const"() {value = dense<0.5> : tensor<3x1x1x2xf32>} : () -> tensor<3x1x1x2xf32>
  %c = "tfl.pseudo_const"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %none = "tfl.no_value"() {value} : () -> none
  %q = quant.qcast %w : tensor<3x1x1x2xf32> to tensor<3x1x1x2x!quant.uniform<i8<-127:127>:f32:0, {0.1, 0.2, 0.3}>>
  %d = quant.dcast %q : tensor<3x1x1x2x!quant.uniform<i8<-127:127>:f32:0, {0.1, 0.2, 0.3}>> to tensor<3x1x1x2xf32>
  %s = "quant.stats"(%a) {layerStats = dense<[-1.0, 1.0]> : tensor<2xf32>}
      : (tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  %0 = "tfl.conv_2d"(%s, %d, %none) {padding = "SAME", stride_h = 1 : i32, stride_w = 1 : i32,
      dilation_h_factor = 1 : i32, dilation_w_factor = 1 : i32, fused_activation_function = "NONE"}
      : (tensor<1x4x4x2xf32>, tensor<3x1x1x2xf32>, none) -> tensor<1x4x4x3xf32>
  %1 = "tfl.add"(%0, %c) {fused_activation_function = "NONE"}
      : (tensor<1x4x4x3xf32>, tensor<3xf32>) -> tensor<1x4x4x3xf32>
  %2 = "tfl.relu"(%1) : (tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  %3 = "quant.stats"(%2) {layerStats = dense<[0.0, 6.0]> : tensor<2xf32>}
      : (tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  return %3 : tensor<1x4x4x3xf32>
}
"""
COARSE = """
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "quant.region"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    %1 = "tfl.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    INNER
    %3 = "tfl.tanh"(%2) : (tensor<4xf32>) -> tensor<4xf32>
    "quant.return"(%3) : (tensor<4xf32>) -> ()
  }) {input_specs = [!quant.uniform<i8:f32, 0.5>], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "two"}
      : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
STATED = """%q = quant.qcast %1 : tensor<4xf32> to tensor<4x!quant.uniform<i8:f32, 0.125>>
    %2 = quant.dcast %q : tensor<4x!quant.uniform<i8:f32, 0.125>> to tensor<4xf32>"""
RESHAPED = '%2 = "tfl.abs"(%1) : (tensor<4xf32>) -> tensor<4xf32>'


def run(passes: str, text: str) -> Module:
    module = parse_module(text)
    verify(module)
    return parse_pipeline(passes, named_passes()).run(module).module


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "example.toml"
    path.write_text(
        '[target]\nname = "example"\n[kernels]\nadd = "qi8 qi8 -> qi8"\n'
        'conv_2d = "qi8 qi8<-127:127>/axis0:0 qi32/axis0:0? -> qi8; multiplier_accumulator_scale"\n'
    )
    return path


def test_quantized_operators_become_kernels_and_come_back() -> None:
    fused = run("kernel-fusion", QUANTIZED)
    assert [op.kernel for op in fused.main.ops if isinstance(op, Region)] == ["add", "relu"]
    back = run("kernel-fusion,quant-materialize,canonicalize,dce", QUANTIZED)
    assert print_module(back) == print_module(parse_module(QUANTIZED))


def test_a_chain_of_quantized_operators_keeps_the_types_between_them() -> None:
    text = QUANTIZED.replace("tfl.add", "tfl.mul").replace('"tfl.relu"(%0) :', '"tfl.add"(%0, %0) {} :')
    text = text.replace("{} : (tensor<4x!r>)", '{fused_activation_function = "NONE"} : (tensor<4x!r>, tensor<4x!r>)')
    chained = text.replace("(%0, %0)", "(%0, %c)").replace(", %b: tensor<4x!q>", ", %b: tensor<4x!q>, %c: tensor<4x!r>")
    assert sum(isinstance(op, Region) for op in run("kernel-fusion", chained).main.ops) == 1
    back = run("kernel-fusion,quant-materialize,canonicalize,dce", chained)
    assert print_module(back) == print_module(parse_module(chained))


def test_only_kernels_of_the_target_are_made(target: Path) -> None:
    fused = run(f"kernel-fusion{{target={target}}}", QUANTIZED)
    assert [op.name for op in fused.main.ops if op.name.startswith(("tfl.", "quant.region"))] == [
        "quant.region",
        "tfl.relu",
    ]


def test_a_convolution_with_bias_and_activation_is_one_kernel_and_one_operator(target: Path) -> None:
    passes = f"kernel-fusion{{target={target}}},quant-propagate{{target={target}}}"
    fused = run(passes, CONV)
    (region,) = fused.main.ops
    assert isinstance(region, Region)
    assert [op.short_name for op in region.regions[0].block.ops] == ["conv_2d", "add", "relu", "return"]
    made = run(f"{passes},quant-materialize{{target={target} casts=tfl}},dce", CONV)
    assert [op.name for op in made.main.ops] == ["tfl.quantize", "tfl.conv_2d", "tfl.dequantize"]
    conv = made.main.ops[1]
    assert conv.attributes["fused_activation_function"] == "RELU"
    assert conv.operand(1).array.reshape(3, 2).tolist() == [[5, 5], [3, 3], [2, 2]]
    assert conv.operand(2).array.tolist() == [1275, 1275, 1275]


def test_what_the_target_lacks_is_computed_in_floats(target: Path) -> None:
    made = run(f"kernel-fusion,quant-materialize{{target={target}}},canonicalize,dce", QUANTIZED)
    assert [op.result.type.quantized for op in made.main.ops if op.name.startswith("tfl.")] == [True, False]


def test_fusion_twice_changes_nothing() -> None:
    once = run("kernel-fusion", CONV)
    assert not parse_pipeline("kernel-fusion").run(once).modified


def test_inlined_statistics_stay_if_asked_for() -> None:
    fused = "kernel-fusion,inline-regions"
    assert not any(op.name == "quant.stats" for op in run(fused, CONV).main.ops)
    assert [op.name for op in run(fused + "{annotations=true}", CONV).main.ops].count("quant.stats") == 2


def test_inner_tensors_take_what_is_stated_inside() -> None:
    made = run("quant-materialize", COARSE.replace("INNER", STATED))
    scales = [op.result.type.element.scale for op in made.main.ops if op.name == "tfl.tanh"]  # type: ignore[union-attr]
    assert scales == [0.125, 0.25]


def test_inner_tensors_of_which_nothing_is_known_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"kernel 'two': nothing says how the result of tfl\.tanh inside"):
        run("quant-materialize", COARSE.replace("INNER", RESHAPED))


def test_code_is_generated_on_integers() -> None:
    text = print_module(run("kernel-fusion,quant-codegen", QUANTIZED))
    assert "tosa.rescale" in text
    assert "tfl." not in text
    assert "quant.region" not in text


def test_constants_are_rounded_half_away_in_float32() -> None:
    weights = constant(np.array([0.25, -0.25, 0.75, 100.0], np.float32))
    made = quantized_constant(weights, UniformQuantizedType.of(i8, 0.5, storage_min=-127))
    assert made is not None
    assert made.array.tolist() == [1, -1, 2, 127]
    scales = np.array([0.1, 0.3], np.float32)
    bias = np.array([1e6, 1e6], np.float32)
    made = quantized_constant(constant(bias), UniformQuantizedPerAxisType.of(i32, 0, scales))
    assert made is not None
    product = (bias * (np.float32(1) / scales)).astype(np.float64)
    assert made.array.tolist() == np.trunc(product + 0.5).tolist()


def test_patterns_are_read_with_their_faults(tmp_path: Path) -> None:
    assert {p.kernel for p in patterns()} >= {"matmul_add", "conv_2d", "mul_add"}
    path = tmp_path / "fusion.toml"
    path.write_text('[[pattern]]\nkernel = "a"\nops = ["add:odd"]\n')
    with pytest.raises(OptionError, match="':odd' is not known"):
        patterns(path)


COMPOSITE = """
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "tfl.stablehlo_composite"(%a) {name = "my.gelu", decomposition_subgraph_index = 1}
      : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "tfl.logistic"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "tfl.mul"(%x, %0) {fused_activation_function = "NONE"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


def test_a_composite_is_a_kernel_of_its_decomposition() -> None:
    (region,) = run("kernel-fusion", COMPOSITE).main.ops
    assert isinstance(region, Region)
    assert region.kernel == "my.gelu"
    assert [op.short_name for op in region.regions[0].block.ops] == ["logistic", "mul", "return"]
    assert [op.short_name for op in run("kernel-fusion,inline-regions", COMPOSITE).main.ops] == ["logistic", "mul"]


def test_a_constraint_of_a_program_gives_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONSTRAINTS, "twice_the_scale", Constraint(lambda _: None))

    @quant_function("twice_the_scale")
    def twice(inputs: list[ElementType], outputs: list[ElementType]) -> tuple[list[int], list[int]]:
        kind = inputs[0]
        if not isinstance(kind, UniformQuantizedType):
            return [], []
        made = UniformQuantizedType.of(kind.storage, 2 * kind.scale, kind.zero_point)
        changed = [] if outputs[0] == made else [0]
        outputs[0] = made
        return [], changed

    path = tmp_path / "own.toml"
    path.write_text('[target]\nname = "own"\n[kernels]\ntwo = "qi8 -> qi8; twice_the_scale"\n')
    text = COARSE.replace("INNER", STATED).replace(
        "output_specs = [!quant.uniform<i8:f32, 0.25>]", "output_specs = [f32]"
    )
    (region,) = run(f"quant-propagate{{target={path}}}", text).main.ops
    assert region.attributes["tflq.origins"] == ["annotation", "twice_the_scale"]
    assert region.attributes["output_specs"] == [UniformQuantizedType.of(i8, 1.0)]
