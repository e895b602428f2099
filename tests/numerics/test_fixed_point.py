"""QuantizeMultiplier of any double, and what the kernels make of shifts that C++ leaves undefined."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tflq.numerics.fixed_point import (
    left_shift,
    multiply,
    quantize_multiplier,
    quantize_multipliers,
    quotient,
    require_defined,
    rescale,
)


@pytest.mark.parametrize("real", [0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**-33, 5e-324, -(2.0**-33)])
def test_what_is_multiplied_by_as_0(real: float) -> None:
    assert quantize_multiplier(real) == (0, 0)


@given(st.floats(2.0**-32, 1.7e308, allow_nan=False))
def test_mantissa_and_shift_are_the_nearest(real: float) -> None:
    mantissa, shift = quantize_multiplier(real)
    assert 1 << 30 <= mantissa < 1 << 31
    assert abs(Fraction(mantissa) * Fraction(2) ** (shift - 31) - Fraction(real)) <= Fraction(2) ** (shift - 32)


def test_negative_multipliers_keep_their_sign() -> None:
    reals = np.asarray([0.3, 1e9, 2.0**-31])
    mantissas, shifts = quantize_multipliers(reals)
    negative, same = quantize_multipliers(-reals)
    np.testing.assert_array_equal(negative, -mantissas)
    np.testing.assert_array_equal(same, shifts)
    assert quantize_multiplier(-(1 - 2.0**-40)) == (-(1 << 31), 0)  # int32 holds it, so it is not halved
    assert quantize_multiplier(1 - 2.0**-40) == (1 << 30, 1)


@given(st.floats())
@example(1 - 2.0**-40)
@example(-(1 - 2.0**-40))
@example(2.0**-32)
def test_one_multiplier_is_as_an_array_of_one(real: float) -> None:
    mantissas, shifts = quantize_multipliers([real])
    assert quantize_multiplier(real) == (mantissas[0], shifts[0])


def test_rescaling_leaves_its_operand_as_it_is() -> None:
    x = np.asarray([-7, -1, 0, 1, 5], np.int64)
    rescale(x, [1 << 30, 3 << 29, 1 << 30, 1 << 30, 1 << 30], [32, 31, 33, 30, 40])
    np.testing.assert_array_equal(x, [-7, -1, 0, 1, 5])


def test_shifts_beyond_31_are_taken_modulo_32() -> None:
    np.testing.assert_array_equal(left_shift([-40, -1, 0, 1, 31, 32, 33, 100, 258]), [0, 0, 0, 1, 31, 0, 1, 4, 2])
    x = np.asarray([-7, -1, 0, 1, 5], np.int32)
    mantissa = 0x60000000
    for shift in (32, 33, 64 + 5):
        np.testing.assert_array_equal(multiply(x, mantissa, shift), multiply(x, mantissa, shift % 32))
    np.testing.assert_array_equal(multiply(x, 1 << 30, 31), np.where(x % 2, -(1 << 30), 0))


def test_shifts_that_cpp_defines() -> None:
    require_defined([-31, 0, 30])
    with pytest.raises(ValueError, match="2\\^40 or more needs a left shift of 41"):
        require_defined([3, 41])


def test_quotients_by_0() -> None:
    assert quotient(1.0, 0.0) == math.inf
    assert math.isnan(quotient(0.0, 0.0))
    assert quotient(3.0, 2.0) == 1.5
