"""Parameters of activations, ADD, SUB, MUL and comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tflq.numerics.elementwise import (
    activation_range,
    addition,
    checked_log2,
    leaky_multipliers,
    multiplication,
    power_of_two_shifts,
    relu_range,
)
from tflq.numerics.fixed_point import Multiplier, as_int32, wrapped

# Bounds of fused activations where their conversion to int32, or the zero point, leaves int32.


@given(st.floats(2.0**-149, 2.0**100, width=32), st.integers(-128, 127))
@example(6 * 2.0**-31, 0)
@example(6 * 2.0**-31, 127)
@example(2.0**-30, -128)
def test_the_bound_is_converted_and_moved_as_on_x86(scale: float, zero_point: int) -> None:
    with np.errstate(over="ignore"):
        steps = float(np.float32(6.0) / np.float32(scale))
    counts = np.floor(steps + 0.5) if steps < 2.0**52 else steps
    least, most = max(-128, zero_point), min(127, int(wrapped(as_int32(counts) + zero_point)))
    expected = (least, most) if least <= most else (-128 + (most + 128) % 256,) * 2
    assert relu_range("RELU6", -128, 127, scale, zero_point) == expected


# Parameters of ADD, SUB and MUL, and of activations.

HALF = Multiplier(1 << 30, 0)


def test_addition_scales_to_twice_the_larger_input() -> None:
    parameters = addition(0.5, 0.25, 1.0, 8)
    assert parameters.left_shift == 20
    assert (parameters.first, parameters.second) == (HALF, Multiplier(1 << 30, -1))
    assert parameters.sum == Multiplier(1 << 30, -19)
    assert addition(0.5, 0.25, 1.0, 16).left_shift == 15


def test_a_sum_of_one_or_more_is_refused_by_add() -> None:
    tiny = 2.0**-20
    with pytest.raises(ValueError, match=r"multiplier of the sum is 2\.0, not above 0 and below 1"):
        addition(1.0, 1.0, tiny, 8)
    with pytest.raises(ValueError, match=r"multiplier of the sum is 1\.0, not above 0 and below 1"):
        addition(1.0, 1.0, 2 * tiny, 8, subtract=True)
    assert addition(1.0, 1.0, tiny, 8, subtract=True).sum == Multiplier(1 << 30, 2)


def test_multiplication_rounds_in_float32() -> None:
    """0.1f * 0.1f / 0.1f is one float32 above 0.1f, whose mantissa is 1717986944."""
    assert multiplication(0.1, 0.1, 0.1) == Multiplier(1717986944 + 128, -3)


@pytest.mark.parametrize(
    ("scale", "exponent"), [(2.0**-12, -12), (1.0, 0), (2.0**-12 * 1.0005, -12), (0.3, None), (2.0**-12 * 1.01, None)]
)
def test_checked_log2(scale: float, exponent: int | None) -> None:
    assert checked_log2(scale) == exponent


def test_power_of_two_shifts() -> None:
    assert power_of_two_shifts(2.0**-10, 2.0**-13, 2.0**-10) == (0, 3)
    assert power_of_two_shifts(2.0**-10, 0.3, 2.0**-10) is None
    with pytest.raises(ValueError, match="one operand's must be the result's"):
        power_of_two_shifts(2.0**-9, 2.0**-13, 2.0**-10)
    assert power_of_two_shifts(2.0**-10, 2.0**-26, 2.0**-10) == (0, 16)


@pytest.mark.parametrize(
    ("activation", "scale", "zero_point", "bounds"),
    [
        ("NONE", 0.1, 3, (-128, 127)),
        ("TANH", 0.1, 3, (-128, 127)),
        ("RELU", 0.1, 3, (3, 127)),
        ("RELU6", 0.1, 3, (3, 63)),
        ("RELU6", 0.01, 3, (3, 127)),
        ("RELU_N1_TO_1", 0.1, 3, (-7, 13)),
        ("RELU_N1_TO_1", 0.4, 0, (-3, 3)),
        ("RELU_0_TO_1", 0.1, -128, (-128, -118)),
    ],
)
def test_activation_range(activation: str, scale: float, zero_point: int, bounds: tuple[int, int]) -> None:
    """Halves go away from zero: 1 / 0.4 is 3 steps."""
    assert activation_range(activation, -128, 127, scale, zero_point) == bounds


def test_a_negative_alpha_keeps_a_positive_multiplier() -> None:
    leaky = leaky_multipliers(0.5, 0.5, -0.25)
    assert leaky.alpha == Multiplier(1 << 30, -1)
    assert leaky.negated
