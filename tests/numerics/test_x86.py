"""What x86-64 makes of undefined shifts and conversions, against scalar C as the processor executes it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tflq.numerics.fixed_point import as_int32, divide_by_pot, left_shift, wrapped


def signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def compiled(x: int, exponent: int) -> int:
    """RoundingDivideByPOT on an int32, the shifts taken modulo 64 (of an int64) and 32."""
    mask = signed((1 << (exponent % 64)) - 1)
    threshold = (mask >> 1) + (x < 0)
    return signed((x >> (exponent % 32)) + (signed(x & mask) > threshold))


@pytest.mark.parametrize("exponent", [*range(-70, 70), -119, -200, 130])
def test_division_by_any_power(exponent: int) -> None:
    rng = np.random.default_rng(exponent % 97)
    x = np.concatenate([np.arange(-40, 41), rng.integers(-(1 << 31), 1 << 31, 200), [-(1 << 31), (1 << 31) - 1]])
    got = divide_by_pot(x.astype(np.int32), exponent)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, [compiled(int(v), exponent) for v in x])


def test_shifts_to_the_left() -> None:
    np.testing.assert_array_equal(left_shift([-3, 0, 5, 31, 32, 77]), [0, 0, 5, 31, 0, 13])


def test_floats_as_int32() -> None:
    given = [0.0, -0.9, 1.9, 2147483520.0, 2.0**31, 1e30, math.inf, math.nan, -(2.0**31), -2147483904.0, -math.inf]
    least = -(1 << 31)
    np.testing.assert_array_equal(
        as_int32(np.asarray(given, np.float32)),
        [0, 0, 1, 2147483520, least, least, least, least, least, least, least],
    )


def test_sums_wrap() -> None:
    np.testing.assert_array_equal(wrapped([(1 << 31) + 5, -(1 << 31) - 3, 7]), [5 - (1 << 31), (1 << 31) - 3, 7])
