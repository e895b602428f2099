"""What `fxpmath` computes: real numbers rounded once, integers exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from support.core_ops import of_text

LEAST, MOST = -(1 << 31), (1 << 31) - 1


def binary(op: str, lhs: str, rhs: str, result: str, attributes: str = "") -> str:
    return f"""func.func @f(%x: {lhs}, %y: {rhs}) -> {result} {{
  %r = "fxpmath.{op}"(%x, %y) {{{attributes}}} : ({lhs}, {rhs}) -> {result}
  return %r : {result}
}}"""


def test_the_high_multiply_of_two_minima_saturates() -> None:
    x = np.array([LEAST, LEAST, MOST, 1 << 30, -(1 << 30), 3, -3, 1], np.int32)
    y = np.array([LEAST, MOST, MOST, 1, 1, 1 << 30, 1 << 30, -1], np.int32)
    t = "tensor<8xi32>"
    (made,) = of_text(binary("saturating_rounding_doubling_high_mul", t, t, t), x, y)
    wanted = [
        min(math.floor(Fraction(int(a) * int(b), 1 << 31) + Fraction(1, 2)), MOST) for a, b in zip(x, y, strict=True)
    ]
    assert made.tolist() == wanted
    assert made.tolist() == [MOST, -MOST, MOST - 1, 1, 0, 2, -1, 0]


@pytest.mark.parametrize(("kind", "bits"), [("i8", 8), ("i16", 16)])
def test_the_high_multiply_of_narrow_integers(kind: str, bits: int) -> None:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    x = np.array([low, low, high, 3, -3], kind.replace("i", "int"))
    y = np.array([low, high, high, 1 << (bits - 2), 1 << (bits - 2)], x.dtype)
    t = f"tensor<5x{kind}>"
    (made,) = of_text(binary("saturating_rounding_doubling_high_mul", t, t, t), x, y)
    assert made.tolist() == [high, -high, high - 1, 2, -1]


@pytest.mark.parametrize("exponent", [0, 1, 4, 8, 31])
def test_division_rounds_half_away_from_zero(exponent: int) -> None:
    x = np.array([LEAST, LEAST + 1, -24, -8, -1, 0, 1, 8, 24, MOST], np.int32)
    text = f"""func.func @f(%x: tensor<10xi32>) -> tensor<10xi32> {{
  %r = "fxpmath.rounding_divide_by_pot"(%x) {{exponent = {exponent} : i32}} : (tensor<10xi32>) -> tensor<10xi32>
  return %r : tensor<10xi32>
}}"""
    (made,) = of_text(text, x)
    away = [math.floor(abs(Fraction(int(v), 1 << exponent)) + Fraction(1, 2)) * (1 if v >= 0 else -1) for v in x]
    assert made.tolist() == away


def test_sums_are_those_of_wider_integers_clamped() -> None:
    x, y = np.array([MOST, LEAST, 5, -5], np.int32), np.array([MOST, LEAST, 4, 4], np.int32)
    t = "tensor<4xi32>"
    (made,) = of_text(binary("saturating_add", t, t, t, f"clamp_min = {LEAST} : i32, clamp_max = 8 : i32"), x, y)
    assert made.tolist() == [8, LEAST, 8, -1]


def test_division_by_zero() -> None:
    x, y = np.array([1, -1, 0, 2], np.float32), np.array([0, 0, 0, 4], np.float32)
    t = "tensor<4xf32>"
    (made,) = of_text(binary("real_div_ew", t, t, t), x, y)
    np.testing.assert_array_equal(made, [np.inf, -np.inf, np.nan, 0.5])


def test_quantized_division_by_zero_is_an_end_of_the_range_and_of_zero_the_zero_point() -> None:
    q, r = "tensor<4x!quant.uniform<i8:f32, 0.5:3>>", "tensor<4x!quant.uniform<u8<1:250>:f32, 0.25:7>>"
    x, y = np.array([4, 2, 3, 5], np.int8), np.array([3, 3, 3, 11], np.int8)
    (made,) = of_text(binary("real_div_ew", q, q, r), x, y)
    assert (made.tolist(), made.dtype) == ([250, 1, 7, 8], np.uint8)
    (made,) = of_text(binary("real_div_ew", q, q, r, "clamp_min = 0.5 : f64, clamp_max = 10.0 : f64"), x, y)
    assert made.tolist() == [47, 9, 9, 9]


def test_results_are_rounded_half_away_from_zero() -> None:
    q, r = "tensor<4x!quant.uniform<i8:f32, 0.5>>", "tensor<4x!quant.uniform<i8:f32, 1.0>>"
    (made,) = of_text(binary("real_add_ew", q, q, r), np.array([1, -1, 2, 3], np.int8), np.zeros(4, np.int8))
    assert made.tolist() == [1, -1, 1, 2]


def test_floats_and_quantized_operands_mix_and_broadcast() -> None:
    q = "tensor<3x!quant.uniform<i16:f32:0, {0.5, 0.25:4, 1.0}>>"
    (made,) = of_text(
        binary("real_mul_ew", "tensor<2x1xf32>", q, "tensor<2x3xf32>"),
        np.array([[2.0], [-1.5]], np.float32),
        np.array([1, 6, 3], np.int16),
    )
    np.testing.assert_array_equal(made, [[1.0, 1.0, 6.0], [-0.75, -0.75, -4.5]])


@pytest.mark.parametrize("kind", ["bf16", "f16", "f64"])
def test_other_floats(kind: str) -> None:
    text = f"""func.func @f() -> tensor<3x{kind}> {{
  %x = arith.constant dense<[1.5, -2.0, 3.0]> : tensor<3x{kind}>
  %r = "fxpmath.real_unary"(%x) {{opcode = "SQUARE", clamp_max = 8.0 : f64}} : (tensor<3x{kind}>) -> tensor<3x{kind}>
  %s = "fxpmath.real_add_ew"(%r, %x) : (tensor<3x{kind}>, tensor<3x{kind}>) -> tensor<3x{kind}>
  return %s : tensor<3x{kind}>
}}"""
    (made,) = of_text(text)
    values = (made.astype(np.uint32) << 16).view(np.float32) if kind == "bf16" else made
    assert values.tolist() == [3.75, 2.0, 11.0]


def test_matrix_products() -> None:
    text = """func.func @f(%x: tensor<2x2xf32>, %y: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %r = "fxpmath.real_matmul_bias"(%x, %y, %b) {clamp_min = 0.0 : f64}
    : (tensor<2x2xf32>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}"""
    x, y = np.array([[1, 2], [-3, 1]], np.float32), np.array([[1, 0, 2], [0, 1, 1]], np.float32)
    bias = np.array([0.5, 1, -1], np.float32)
    np.testing.assert_array_equal(of_text(text, x, y, bias)[0], np.maximum(x @ y + bias, 0))
