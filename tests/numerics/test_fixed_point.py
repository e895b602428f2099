"""Fixed-point multiplication, what x86-64 makes of undefined arithmetic, and roundings."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tflq.numerics.fixed_point import (
    LIMB,
    ROUNDINGS,
    Rounding,
    as_int32,
    checked_log2,
    divide_by_pot,
    leaves_float,
    leaves_int32,
    leaves_wide,
    left_shift,
    limbs,
    multiply,
    quantize_multiplier,
    quantize_multipliers,
    quotient,
    reduce_to_16_bits,
    rescale,
    rescale_i64,
    rescale_rounded,
    round_float,
    saturated,
    wide_multipliers,
    wrapped,
)
from tflq.numerics.float_basics import quantize_thresholds

# QuantizeMultiplier of any double, and what the kernels make of shifts that C++ leaves undefined.


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


def test_quotients_by_0() -> None:
    assert quotient(1.0, 0.0) == math.inf
    assert math.isnan(quotient(0.0, 0.0))
    assert quotient(3.0, 2.0) == 1.5


# What x86-64 makes of undefined shifts and conversions, against scalar C as the processor executes it.


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


# Ways of rounding: exhaustively for small products, against fractions.

EXACT: dict[str, Callable[[Fraction], int]] = {
    "half_away": lambda q: math.floor(abs(q) + Fraction(1, 2)) * (1 if q >= 0 else -1),
    "half_up": lambda q: math.floor(q + Fraction(1, 2)),
    "half_even": round,
    "toward_zero": math.trunc,
}


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_every_8_bit_value_by_every_small_multiplier(rounding: Rounding) -> None:
    x = np.arange(-255, 256)
    for multiplier in (*range(-3, 40), 1 << 30):
        for shift in (1, 2, 3, 5, 31):
            wanted = [EXACT[rounding](Fraction(int(v) * multiplier, 1 << shift)) for v in x]
            np.testing.assert_array_equal(rescale_rounded(x, multiplier, shift, rounding), wanted)


def test_half_up_is_one_rounding_of_tosa() -> None:
    x = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, 10000)
    for shift in (2, 31, 33, 62):
        single = rescale(x, 1234567891, shift, double_round=False)
        np.testing.assert_array_equal(rescale_rounded(x, 1234567891, shift, "half_up"), single)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_floats_at_ties_and_beside_them(rounding: Rounding) -> None:
    ties = (np.arange(-300, 300) / 2).astype(np.float32)
    x = np.concatenate([np.nextafter(ties, np.float32(-1e9)), ties, np.nextafter(ties, np.float32(1e9))])
    np.testing.assert_array_equal(round_float(x, rounding), [EXACT[rounding](Fraction(float(v))) for v in x])


def test_limbs_make_the_multiplier() -> None:
    m = np.asarray([0, 1, (1 << 31) - 1, -1, -(1 << 31), 123456789])
    low, middle, high = limbs(m)
    np.testing.assert_array_equal(low + (middle << LIMB) + (high << 2 * LIMB), m)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_thresholds_are_the_least_floats_that_round_up_to_a_level(rounding: Rounding) -> None:
    levels = np.arange(-200, 200)
    for scale in np.asarray([0.1, 1 / 3, 0.25, 1e-30], np.float32):
        least = quantize_thresholds(scale, levels, rounding)
        before = np.nextafter(least, np.float32(-np.inf))
        assert (round_float((least / scale).astype(np.float64), rounding) >= levels).all()
        assert (round_float((before / scale).astype(np.float64), rounding) < levels).all()


def test_halves_go_away_from_zero_and_zeros_keep_their_sign() -> None:
    x = np.array([-1.5, -0.5, -0.25, -0.0, 0.25, 0.49999999999999994, 2.5, np.inf, np.nan])
    wanted = np.array([-2.0, -1.0, -0.0, -0.0, 0.0, 0.0, 3.0, np.inf, np.nan])
    np.testing.assert_array_equal(round_float(x, "half_away"), wanted)
    np.testing.assert_array_equal(np.signbit(round_float(x, "half_away")[:6]), np.signbit(wanted[:6]))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_what_an_integer_type_does_not_hold_saturates(dtype: type[np.integer]) -> None:
    low, high = (int(end) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    x = [np.nan, np.inf, -np.inf, 100.9, 1.5 * 2**62, 1.5 * 2**63]
    wanted = [0, high, low, 100, min(3 << 61, high), min(3 << 62, high)]
    assert saturated(x, low, high).tolist() == wanted


# What the kernels' rescaling gives beyond its types, as C++ on x86-64 cuts whole numbers.

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


def test_scales_that_lose_no_sum_beside_one_that_is_searched_longest() -> None:
    edge = leaves_float([2.0**-60, 2.0**-32 * (1 + 2.0**-50), 1.0], 0)
    assert edge[0] == _I63 - 1
    assert edge[2] == _I31
    assert float(edge[1]) * 2.0**-32 * (1 + 2.0**-50) >= _I31 - 0.5


def test_multipliers_of_int64_sums() -> None:
    mantissa, left = quantize_multipliers([0.5, 2.0**-31, 0.0, 3.0])
    multiplier, shift = wide_multipliers(mantissa, left)
    assert multiplier.tolist() == [1 << 14, 1 << 14, 0, 3 << 13]
    assert shift.tolist() == [15, 45, 15, 13]


@pytest.mark.parametrize(
    ("scale", "exponent"), [(2.0**-12, -12), (1.0, 0), (2.0**-12 * 1.0005, -12), (0.3, None), (2.0**-12 * 1.01, None)]
)
def test_checked_log2(scale: float, exponent: int | None) -> None:
    assert checked_log2(scale) == exponent
