"""The two workflows of the `quant` dialect's specification, multiply_add and division, step by step as printed there,
and on to a file that computes the specification's pseudo-code for all 8-bit inputs, under each rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.harness import interpret

import tflq
from tflq.conversion.extensions import extension_of
from tflq.dialects.quant import Scast
from tflq.ir.facts import walk
from tflq.ir.module import Module, difference
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.numerics.fixed_point import Rounding, round_float
from tflq.tools.opt import parse_pipeline
from tflq.transforms.pass_manager import Pass

ROUNDINGS: list[Rounding | None] = [None, "half_even", "half_away", "half_up", "toward_zero"]

MULTIPLY_ADD = """!q = !quant.uniform<i8:f32:0, {2.0, 3.0, 4.0}>
func.func @multiply_add(%arg0: tensor<3x!q>, %arg1: tensor<3x!q>, %arg2: tensor<3x!q>) -> tensor<3x!q> {
  %product = "ml.mul"(%arg0, %arg1) : (tensor<3x!q>, tensor<3x!q>) -> tensor<3x!q>
  %sum = "ml.add"(%product, %arg2) : (tensor<3x!q>, tensor<3x!q>) -> tensor<3x!q>
  return %sum : tensor<3x!q>
}"""
DEQUANTIZED = """!q = !quant.uniform<i8:f32:0, {2.0, 3.0, 4.0}>
func.func @multiply_add(%arg0: tensor<3x!q>, %arg1: tensor<3x!q>, %arg2: tensor<3x!q>) -> tensor<3x!q> {
  %arg0_f32 = "quant.dcast"(%arg0) : (tensor<3x!q>) -> tensor<3xf32>
  %arg1_f32 = "quant.dcast"(%arg1) : (tensor<3x!q>) -> tensor<3xf32>
  %product_f32 = arith.mulf %arg0_f32, %arg1_f32 : tensor<3xf32>
  %product = "quant.qcast"(%product_f32) : (tensor<3xf32>) -> tensor<3x!q>
  %product_f32_1 = "quant.dcast"(%product) : (tensor<3x!q>) -> tensor<3xf32>
  %arg2_f32 = "quant.dcast"(%arg2) : (tensor<3x!q>) -> tensor<3xf32>
  %sum_f32 = arith.addf %product_f32_1, %arg2_f32 : tensor<3xf32>
  %sum = "quant.qcast"(%sum_f32) : (tensor<3xf32>) -> tensor<3x!q>
  return %sum : tensor<3x!q>
}"""
CANONICALIZED = """!q = !quant.uniform<i8:f32:0, {2.0, 3.0, 4.0}>
func.func @multiply_add(%arg0: tensor<3x!q>, %arg1: tensor<3x!q>, %arg2: tensor<3x!q>) -> tensor<3x!q> {
  %arg0_f32 = "quant.dcast"(%arg0) : (tensor<3x!q>) -> tensor<3xf32>
  %arg1_f32 = "quant.dcast"(%arg1) : (tensor<3x!q>) -> tensor<3xf32>
  %product_f32 = arith.mulf %arg0_f32, %arg1_f32 : tensor<3xf32>
  %arg2_f32 = "quant.dcast"(%arg2) : (tensor<3x!q>) -> tensor<3xf32>
  %sum_f32 = arith.addf %product_f32, %arg2_f32 : tensor<3xf32>
  %sum = "quant.qcast"(%sum_f32) : (tensor<3xf32>) -> tensor<3x!q>
  return %sum : tensor<3x!q>
}"""
DIVISION = """!q = !quant.uniform<i8:f32, 2.0>
func.func @division(%arg0: tensor<3x!q>, %arg1: tensor<3x!q>) -> (tensor<3x!q>, tensor<3x!q>) {
  %quotient = "ml.div"(%arg0, %arg1) : (tensor<3x!q>, tensor<3x!q>) -> tensor<3x!q>
  %remainder = "ml.mod"(%arg0, %arg1) : (tensor<3x!q>, tensor<3x!q>) -> tensor<3x!q>
  return %quotient, %remainder : tensor<3x!q>, tensor<3x!q>
}"""
MERGED = """!q = !quant.uniform<i8:f32, 2.0>
func.func @division(%arg0: tensor<3x!q>, %arg1: tensor<3x!q>) -> (tensor<3x!q>, tensor<3x!q>) {
  %arg0_f32 = "quant.dcast"(%arg0) : (tensor<3x!q>) -> tensor<3xf32>
  %arg1_f32 = "quant.dcast"(%arg1) : (tensor<3x!q>) -> tensor<3xf32>
  %quotient_f32 = arith.divf %arg0_f32, %arg1_f32 : tensor<3xf32>
  %quotient = "quant.qcast"(%quotient_f32) : (tensor<3xf32>) -> tensor<3x!q>
  %remainder_f32 = arith.remf %arg0_f32, %arg1_f32 : tensor<3xf32>
  %remainder = "quant.qcast"(%remainder_f32) : (tensor<3xf32>) -> tensor<3x!q>
  return %quotient, %remainder : tensor<3x!q>, tensor<3x!q>
}"""

LOWERING = Path(__file__).parents[1] / "examples" / "ml_dialect" / "ml_dialect" / "lowering.py"


def converted_to_arith(text: str) -> Module:
    kind: type[Pass] = extension_of(LOWERING).passes[0]
    return kind().run(parse_module(text)).module


def run(module: Module, passes: str) -> Module:
    return parse_pipeline(passes).run(module).module


def lowered(module: Module, rounding: Rounding | None) -> Module:
    """The steps from casts to integers, each with what the specification says of it."""
    option = "" if rounding is None else f"{{rounding={rounding}}}"
    module = run(module, f"lower-quant-ops{option}")
    quant = [op for op in walk(module.main.ops) if op.name.startswith("quant.")]
    assert quant
    assert all(isinstance(op, Scast) for op in quant)
    module = run(module, "strip-func-quant-types")
    assert not any(v.type.quantized for v in (*module.main.inputs, *module.main.outputs))
    module = run(module, "canonicalize,cse,dce")
    assert not any(op.name.startswith("quant.") for op in walk(module.main.ops))
    return module


def converted(module: Module) -> bytes:
    """The text of a module as a file."""
    return tflq.convert(print_module(module).encode()).data


def dequantize(stored: np.ndarray, scale: np.ndarray, zero_point: int) -> np.ndarray:
    return (stored.astype(np.float32) - np.float32(zero_point)) * scale


def quantize(x: np.ndarray, scale: np.ndarray, zero_point: int, rounding: Rounding | None, low: int) -> np.ndarray:
    """The specification's steps; what is beyond the storage type, which they leave open, saturates, and NaN is 0."""
    scaled = x / scale
    if rounding is not None:
        scaled = round_float(scaled, rounding)
    value = np.trunc(scaled + np.float32(zero_point))
    return np.clip(np.where(np.isnan(value), 0, value), low, low + 255)


def all_pairs() -> tuple[np.ndarray, np.ndarray]:
    """All pairs of 8-bit integers, for each of three channels: [3, 65536]."""
    a, b = np.meshgrid(np.arange(256), np.arange(256))
    rows = [np.stack([x.reshape(-1)] * 3).astype(np.uint8) for x in (a, b)]
    return rows[0], rows[1]


def large(text: str) -> str:
    return text.replace("tensor<3x", "tensor<3x65536x")


def test_multiply_add_step_by_step() -> None:
    module = converted_to_arith(MULTIPLY_ADD)
    assert difference(module, parse_module(DEQUANTIZED)) is None
    module = run(module, "canonicalize,dce")
    assert difference(module, parse_module(CANONICALIZED)) is None
    assert [op.name for op in lowered(module, None).main.ops if op.name.startswith("arith.")] == [
        "arith.mulf",
        "arith.addf",
    ]


def test_division_step_by_step() -> None:
    module = run(converted_to_arith(DIVISION), "cse,dce")
    assert difference(module, parse_module(MERGED)) is None


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_multiply_add_is_the_pseudo_code(rounding: Rounding | None) -> None:
    data = converted(lowered(run(converted_to_arith(large(MULTIPLY_ADD)), "canonicalize,dce"), rounding))
    a, b = (x.view(np.int8) for x in all_pairs())
    scale = np.array([[2], [3], [4]], np.float32)
    batches = [[a, b, np.full_like(a, c)] for c in (-128, -127, -50, -3, -1, 0, 1, 2, 64, 127)]
    for batch, (found,) in zip(batches, interpret(data, batches), strict=True):
        real = [dequantize(x, scale, 0) for x in batch]
        wanted = quantize(real[0] * real[1] + real[2], scale, 0, rounding, -128)
        assert np.array_equal(found, wanted.astype(np.int8))


TYPES = [("!quant.uniform<i8:f32, 2.0>", 2.0, 0, -128), ("!quant.uniform<u8:f32, 0.3:7>", 0.3, 7, 0)]


@pytest.mark.parametrize("resolver", ["BUILTIN_REF", "BUILTIN"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(("kind", "step", "zero", "low"), TYPES)
def test_division_is_the_pseudo_code(
    kind: str, step: float, zero: int, low: int, rounding: Rounding | None, resolver: str
) -> None:
    text = large(DIVISION).replace(TYPES[0][0], kind)
    data = converted(lowered(run(converted_to_arith(text), "canonicalize,cse,dce"), rounding))
    pairs, scale = all_pairs(), np.array(step, np.float32)
    view: Callable[[np.ndarray], np.ndarray] = lambda x: x.view(np.int8) if low < 0 else x  # noqa: E731
    ((quotient, remainder),) = interpret(data, [[x.view(np.int8) for x in pairs]], resolver)
    with np.errstate(all="ignore"):
        x, y = (dequantize(view(v), scale, zero) for v in pairs)
        wanted = [quantize(made, scale, zero, rounding, low) for made in (x / y, np.fmod(x, y))]
    for found, expected in zip((quotient, remainder), wanted, strict=True):
        assert np.array_equal(found, expected.astype(np.int64).astype(np.int8))


@pytest.mark.parametrize("rounding", ROUNDINGS[1:])
def test_casts_are_converted_as_they_are(rounding: Rounding) -> None:
    """Without lowering them first, and with the quantized types at the file's edges: `conversion` states a rounding."""
    text = large(CANONICALIZED).replace(
        '"quant.qcast"(%sum_f32)', f'"quant.qcast"(%sum_f32) {{rounding = "{rounding}"}}'
    )
    a, b = (x.view(np.int8) for x in all_pairs())
    scale = np.array([[2], [3], [4]], np.float32)
    c = np.resize(np.arange(256, dtype=np.uint8).view(np.int8)[::-1], a.shape)
    ((found,),) = interpret(tflq.convert(text.encode()).data, [[a, b, c]])
    real: Sequence[np.ndarray] = [dequantize(x, scale, 0) for x in (a, b, c)]
    wanted = quantize(real[0] * real[1] + real[2], scale, 0, rounding, -128)
    assert np.array_equal(found, wanted.astype(np.int8))
