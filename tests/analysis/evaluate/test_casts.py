"""Evaluators of `quant.qcast` and `quant.dcast` whose expressed type is f16 or bf16, and their folding."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tflq.analysis.evaluate.registry import evaluate_op, float_array, floats
from tflq.ir.ops import Op, Value
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, bf16, f16, i8, i16, ui8
from tflq.transforms.canonicalize import Fold

DIGITS = {f16: (11, -13), bf16: (8, -125)}
"""Of each type: binary digits, and the exponent of the least normal number, as numpy.frexp counts."""
PARAMETERS = [(i8, 0.5, 3), (i8, 0.0123, -128), (ui8, 3.7, 130), (i16, 0.001, 0), (i16, 0.3, 1000)]


def nearest(x: np.ndarray, element: ScalarType) -> np.ndarray:
    """Doubles to the nearest number of a type, ties to even."""
    digits, least = DIGITS[element]
    step = np.exp2(np.maximum(np.frexp(x)[1], least) - digits).astype(np.float64)
    largest = (2.0 - 2.0 ** (1 - digits)) * 2.0 ** (-least + 2)
    with np.errstate(invalid="ignore"):
        rounded = np.rint(x / step) * step
        return np.where(np.abs(rounded) > largest, np.copysign(np.inf, x), rounded)


def evaluated(name: str, array: np.ndarray, source: TensorType, result: TensorType, **attributes: str) -> np.ndarray:
    op = Op(name, [Value(source)], [Value(result)], attributes)
    return (evaluate_op(op, [array]) or [])[0]


@pytest.mark.parametrize("element", DIGITS)
@pytest.mark.parametrize(("storage", "scale", "zero"), PARAMETERS)
def test_every_stored_integer_is_dequantized_step_by_step(
    element: ScalarType, storage: ScalarType, scale: float, zero: int
) -> None:
    kind = UniformQuantizedType.of(storage, scale, zero, expressed=element)
    stored = np.arange(storage.minimum, storage.maximum + 1)
    plain = TensorType(stored.shape, element)
    got = evaluated("quant.dcast", stored.astype(storage.dtype), plain.with_element(kind), plain)
    scales = nearest(np.asarray(scale), element)
    assert kind.scale == scales
    numbers, point = nearest(stored.astype(np.float64), element), nearest(np.asarray(float(zero)), element)
    want = nearest(nearest(numbers - point, element) * scales, element)
    np.testing.assert_array_equal(floats(plain, got).astype(np.float64), want)
    np.testing.assert_array_equal(got, float_array(plain, want))


@pytest.mark.parametrize("attributes", [{}, {"rounding": "half_away"}, {"sum_rounding": "half_even"}])
@pytest.mark.parametrize("element", DIGITS)
@pytest.mark.parametrize(("storage", "scale", "zero"), PARAMETERS)
def test_every_number_is_quantized_step_by_step(
    element: ScalarType, storage: ScalarType, scale: float, zero: int, attributes: dict[str, str]
) -> None:
    kind = UniformQuantizedType.of(storage, scale, zero, expressed=element)
    held = np.arange(1 << 16).astype(np.uint16)
    plain = TensorType(held.shape, element)
    held = held if element is bf16 else held.view(np.float16)
    with np.errstate(invalid="ignore"):
        numbers = floats(plain, held).astype(np.float64)
    got = evaluated("quant.qcast", held, plain, plain.with_element(kind), **attributes)
    with np.errstate(invalid="ignore"):
        quotient = nearest(numbers / kind.scale, element)
        if "sum_rounding" in attributes:
            whole = np.rint(nearest(quotient + nearest(np.asarray(float(zero)), element), element))
        elif "rounding" in attributes:
            whole = np.trunc(quotient + np.copysign(0.5, quotient)) + zero
        else:
            whole = np.rint(quotient) + zero
    want = np.clip(whole, storage.minimum, storage.maximum)
    np.testing.assert_array_equal(got, np.where(np.isnan(numbers), zero, want))


TEXT = """
func.func @f() -> (tensor<4x!quant.uniform<i8:T, 0.5:3>>, tensor<4xT>) {
  %0 = arith.constant dense<[-100.0, 0.25, 0.75, 63.5]> : tensor<4xT>
  %1 = "quant.qcast"(%0) : (tensor<4xT>) -> tensor<4x!quant.uniform<i8:T, 0.5:3>>
  %2 = "quant.dcast"(%1) : (tensor<4x!quant.uniform<i8:T, 0.5:3>>) -> tensor<4xT>
  return %1, %2 : tensor<4x!quant.uniform<i8:T, 0.5:3>>, tensor<4xT>
}
"""


@pytest.mark.parametrize("expressed", ["f16", "bf16", "f32", "f64"])
def test_casts_of_constants_fold(expressed: str) -> None:
    module = Fold().run(parse_module(TEXT.replace("T", expressed))).module
    text = print_module(module)
    assert "cast" not in text
    assert re.findall(r"dense<\[(.*?)\]>", text) == ["-128, 3, 5, 127", "-65.5, 0.0, 1.0, 62.0"]


def test_ops_on_the_numbers_of_bf16_do_not_fold_on_its_bits() -> None:
    text = """
    func.func @f() -> (tensor<2xbf16>, tensor<1x2xbf16>) {
      %a = arith.constant dense<0> : tensor<1xi32>
      %0 = "tosa.const"() {values = dense<[1.0, 2.0]> : tensor<2xbf16>} : () -> tensor<2xbf16>
      %1 = "tosa.add"(%0, %0) : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2xbf16>
      %2 = "tfl.expand_dims"(%0, %a) : (tensor<2xbf16>, tensor<1xi32>) -> tensor<1x2xbf16>
      return %1, %2 : tensor<2xbf16>, tensor<1x2xbf16>
    }
    """
    module = Fold().run(parse_module(text)).module
    assert [op.name for op in module.functions[0].ops] == ["tosa.add"]
    assert "dense<[[1.0, 2.0]]>" in print_module(module)


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ('const_fake_quant"(%0) {min = -64.0 : f32, max = 63.5 : f32, num_bits = 8}', "[-64.0, 0.5], [0.0, 63.5]"),
        (
            'const_fake_quant"(%0) {min = -64.0 : f32, max = 63.5 : f32, num_bits = 8, narrow_range = true}',
            "[-63.75, 0.5019685], [0.0, 63.75]",
        ),
        (
            'const_fake_quant_per_axis"(%0) {min = [-64.0, -1.0], max = [63.5, 1.0], axis = 1, num_bits = 8}',
            "[-64.0, 0.29803923], [0.0, 1.0039216]",
        ),
    ],
)
def test_fake_quantization_of_constants_folds(op: str, want: str) -> None:
    text = f"""func.func @f() -> tensor<2x2xf32> {{
  %0 = arith.constant dense<[[-100.0, 0.3], [0.0, 1000.0]]> : tensor<2x2xf32>
  %1 = "quant.{op} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}}"""
    (stated,) = re.findall(r"dense<\[(.*?)\]> : tensor", print_module(Fold().run(parse_module(text)).module))
    assert stated == want
