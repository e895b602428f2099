"""Ways of rounding: exhaustively for small products, against fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tflq.numerics.fixed_point import LIMB, ROUNDINGS, Rounding, limbs, rescale, rescale_rounded, round_float, saturated
from tflq.numerics.float_thresholds import quantize_thresholds

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
