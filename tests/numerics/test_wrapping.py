"""What the kernels' rescaling gives beyond its types, as C++ on x86-64 cuts whole numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tflq.numerics.fixed_point import (
    leaves_float,
    leaves_int32,
    leaves_wide,
    quantize_multipliers,
    reduce_to_16_bits,
    rescale_i64,
    wide_multipliers,
)

_I31, _I63 = 1 << 31, 1 << 63
_INT64 = st.integers(-_I63, _I63 - 1)
_LEFT = st.integers(-31, 140)
_MANTISSA = st.one_of(st.just(0), st.integers(1 << 30, _I31 - 1))


def _wrapped(x: int, bits: int) -> int:
    """What a register of so many bits holds of a whole number."""
    return (x + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _scaled(x: int, mantissa: int, left: int) -> int:
    """MultiplyByQuantizedMultiplier of an int64, a step at a time."""
    total = 15 - left
    half = _wrapped(1 << ((total - 1) & 63), 64)
    summed = _wrapped(_wrapped(x * int(reduce_to_16_bits(mantissa)), 64) + half, 64)
    return _wrapped(summed >> (total & 63), 32)


@given(_INT64, _MANTISSA, _LEFT)
@example(1, 1 << 30, 15)
@example(_I63 - 1, _I31 - 1, 14)
@example(-_I63, _I31 - 1, -31)
def test_int64_sums_keep_their_low_word(x: int, mantissa: int, left: int) -> None:
    multiplier, shift = wide_multipliers(mantissa, left)
    got = rescale_i64(np.asarray([x], np.int64), multiplier, shift)
    assert got.dtype == np.int32
    assert got[0] == _scaled(x, mantissa, left)


@given(_INT64, _INT64, _MANTISSA, _LEFT)
@example(0, 0, 1 << 30, 40)
@example(-1, 1, 1 << 30, 15)
@example(0, (1 << 17) - 1, 1 << 30, 15)
@example(0, 1 << 17, 1 << 30, 15)
def test_int64_sums_that_leave_no_type_are_scaled(a: int, b: int, mantissa: int, left: int) -> None:
    """Where nothing is lost, the result at both ends is the rounded product."""
    low, high = min(a, b), max(a, b)
    ends = np.asarray([low], np.int64), np.asarray([high], np.int64)
    (lost,) = leaves_wide(*ends, np.asarray([mantissa]), np.asarray([left]))
    exact = [
        math.floor(v * int(reduce_to_16_bits(mantissa)) * 2**left + (1 << 14)) >> 15
        if left >= 0
        else (v * int(reduce_to_16_bits(mantissa)) + (1 << (14 - left))) >> (15 - left)
        for v in (low, high)
    ]
    if not lost:
        assert [_scaled(v, mantissa, left) for v in (low, high)] == exact
    elif left <= 14:
        assert mantissa
        assert any(abs(v) >= _I31 - 1 for v in exact) or max(-low, high) >= 1 << 47


@pytest.mark.parametrize(
    ("low", "high", "left", "lost"),
    [
        (0, 1, 30, False),
        (0, 2, 30, True),
        (-2, 0, 30, False),
        (-3, 0, 30, True),
        (-1, 0, 31, False),
        (0, 1, 31, True),
        (0, 0, 32, False),
        (0, 1, 32, True),
        (-_I31, _I31 - 1, 0, False),
        (-_I31, _I31 - 1, -8, False),
    ],
)
def test_int32_sums_leave_by_their_left_shift(low: int, high: int, left: int, lost: bool) -> None:
    ends = np.asarray([low]), np.asarray([high])
    assert leaves_int32(*ends, np.asarray([1 << 30]), np.asarray([left])).tolist() == [lost]
    assert leaves_int32(*ends, np.asarray([0]), np.asarray([left])).tolist() == [False]


@given(st.floats(2.0**-60, 2.0**100), st.integers(-128, 255))
@example(1.0, 0)
@example(1.0, -1)
@example(2.0**-31, 255)
@example(2.0**31, -128)
def test_the_first_sum_that_float64_takes_out_of_int32(scale: float, zero: int) -> None:
    (edge,) = leaves_float(scale, zero).tolist()
    sign = 1 if zero >= 0 else -1

    def lost(magnitude: int) -> bool:
        quotient = sign * magnitude * scale if magnitude < 1 << 53 else sign * float(magnitude) * scale
        whole = math.floor(abs(quotient) + 0.5) * sign
        stored = whole if -_I31 <= whole < _I31 else -_I31
        return not -_I31 <= stored + zero < _I31 or stored != whole

    if edge == _I63 - 1:
        assert not lost(_I63 - 1024)
    else:
        assert lost(edge)
        assert edge == 0 or not lost(edge - 1)


def test_scales_that_are_no_numbers_lose_all_sums() -> None:
    assert leaves_float([np.inf, np.nan, 0.0], 0).tolist() == [0, 0, _I63 - 1]


def test_multipliers_of_int64_sums() -> None:
    mantissa, left = quantize_multipliers([0.5, 2.0**-31, 0.0, 3.0])
    multiplier, shift = wide_multipliers(mantissa, left)
    assert multiplier.tolist() == [1 << 14, 1 << 14, 0, 3 << 13]
    assert shift.tolist() == [15, 45, 15, 13]
