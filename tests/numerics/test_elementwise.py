"""Parameters of ADD, SUB and MUL."""

from __future__ import annotations

import pytest

from tflq.numerics.elementwise import addition, multiplication, power_of_two_shifts
from tflq.numerics.fixed_point import Multiplier

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


def test_power_of_two_shifts() -> None:
    assert power_of_two_shifts(2.0**-10, 2.0**-13, 2.0**-10) == (0, 3)
    assert power_of_two_shifts(2.0**-10, 0.3, 2.0**-10) is None
    with pytest.raises(ValueError, match="one operand's must be the result's"):
        power_of_two_shifts(2.0**-9, 2.0**-13, 2.0**-10)
    assert power_of_two_shifts(2.0**-10, 2.0**-26, 2.0**-10) == (0, 16)
