"""A requantization in float32 that passes its proof equals the one of integers on every accumulator it may meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.fixed_point import quantize_multipliers, rescale
from tflq.numerics.float_basics import EXACT
from tflq.numerics.requantize.clamped import Clamped, ClampedToOne, ClampedToSix
from tflq.numerics.requantize.climb import Climb, line_slope, table_climb
from tflq.numerics.requantize.staircase import float_thresholds, rescale_thresholds

FORMS = [ClampedToSix, ClampedToOne]


def fitted(
    scales: np.ndarray,
    zero_point: int,
    low: np.ndarray,
    high: np.ndarray,
    form: type[Clamped],
    *,
    double_round: bool,
) -> tuple[Clamped | None, np.ndarray, np.ndarray]:
    """The requantization of int8 by scales, with multiplier and shift."""
    mantissa, left = quantize_multipliers(scales)
    shift = 31 - left.astype(np.int64)
    thresholds = rescale_thresholds(
        np.arange(-127 - zero_point, 128 - zero_point), mantissa, shift, double_round=double_round
    )
    return form.fit(Climb(thresholds, mantissa / 2.0**shift, low, high)), mantissa, shift


def wanted(
    x: np.ndarray, mantissa: np.ndarray, shift: np.ndarray, zero_point: int, *, double_round: bool
) -> np.ndarray:
    """Levels 0 ... 255."""
    return np.clip(rescale(x, mantissa, shift, double_round=double_round) + zero_point, -128, 127) + 128


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    zero_point=st.sampled_from([-128, -127, -7, 0, 127]),
    bits=st.integers(1, 14),
    double_round=st.booleans(),
    form=st.sampled_from(FORMS),
)
@settings(max_examples=80, deadline=None)
def test_every_accumulator(seed: int, zero_point: int, bits: int, double_round: bool, form: type[Clamped]) -> None:
    rng, bound = np.random.default_rng(seed), np.full(8, 1 << bits)
    scales = 2.0 ** rng.uniform(-bits - 1, min(8 - bits, 3), 8)
    low, high = -bound - rng.integers(0, 9, 8), bound + rng.integers(0, 9, 8)
    fit, mantissa, shift = fitted(scales, zero_point, low, high, form, double_round=double_round)
    if fit is None:
        return  # no proof, another form is used
    x = np.clip(np.arange(low.min(), high.max() + 1)[:, None], low, high)
    want = wanted(x, mantissa, shift, zero_point, double_round=double_round)
    np.testing.assert_array_equal(fit(x) + form.clamp.middle, want)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("zero_point", [-128, 3])
def test_layers_as_they_are(zero_point: int, form: type[Clamped]) -> None:
    """Both sides of every threshold and random accumulators, of scales and sums as networks have them."""
    rng = np.random.default_rng(zero_point % 7)
    scales = 2.0 ** rng.uniform(-9, -3, 100)
    low, high = -rng.integers(1 << 16, 1 << 22, 100), rng.integers(1 << 16, 1 << 22, 100)
    fit, mantissa, shift = fitted(scales, zero_point, low, high, form, double_round=True)
    assert fit is not None
    edges = rescale_thresholds(np.arange(-127 - zero_point, 128 - zero_point), mantissa, shift)
    near = np.concatenate([edges, edges - 1, rng.integers(low, high, (4000, 100)), low[None], high[None]])
    x = np.clip(near, low, high)
    want = wanted(x, mantissa, shift, zero_point, double_round=True)
    np.testing.assert_array_equal(fit(x) + form.clamp.middle, want)


@pytest.mark.parametrize("zero_point", [-85, 4])
def test_dense_thresholds(zero_point: int) -> None:
    """3,000 accumulators to each level, of both signs."""
    rng, bound = np.random.default_rng(1), np.full(200, 1 << 22)
    scales = rng.uniform(3.2e-4, 3.6e-4, 200)
    fit, mantissa, shift = fitted(scales, zero_point, -bound, bound, ClampedToOne, double_round=True)
    assert fit is not None
    assert fit.e is not None
    edges = rescale_thresholds(np.arange(-127 - zero_point, 128 - zero_point), mantissa, shift)
    x = np.concatenate([edges, edges - 1, rng.integers(-bound, bound, (4000, 200)), [-bound, bound], 0 * edges[:1]])
    want = wanted(x, mantissa, shift, zero_point, double_round=True)
    np.testing.assert_array_equal(fit(x) + 128, want)


def test_accumulators_that_are_exact_less_by_their_middle() -> None:
    """Those of the levels are beyond 2^24, and their distances are not."""
    steps = np.arange(255) * 3000
    thresholds = (EXACT * np.asarray([2, -3]) + np.asarray([1, 77]))[:, None] + steps
    low, high, slope = thresholds[:, 0] - 5000, thresholds[:, -1] + 5000, np.full(2, 1 / 3000)
    climb = Climb(thresholds.T, slope, low, high)
    assert ClampedToSix.fit(climb) is None
    fit = ClampedToOne.fit(climb)
    assert fit is not None
    x = np.arange(-5000, 255 * 3000 + 2000)[:, None] + thresholds[:, 0]
    np.testing.assert_array_equal(fit(x) + 128, np.clip((x - thresholds[:, 0]) // 3000 + 1, 0, 255))


def test_rounding_in_double() -> None:
    """A FULLY_CONNECTED rounds the product of doubles half away from zero, and has no second rounding to be odd for."""
    scales, bound = np.asarray([0.5, 0.125, 0.0173, 0.25]), np.full(4, 3000)
    thresholds = float_thresholds(np.arange(-127, 128), scales)
    fit = ClampedToOne.fit(Climb(thresholds, scales, -bound, bound))
    assert fit is not None
    x = np.arange(-3000, 3001)[:, None]
    product = x * scales
    want = np.clip(np.sign(product) * np.floor(np.abs(product) + 0.5), -128, 127)
    np.testing.assert_array_equal(fit(x), want)


@pytest.mark.parametrize("form", FORMS)
def test_one_result_needs_no_exact_sums(form: type[Clamped]) -> None:
    """A channel whose bias saturates it is a constant, however large its sums."""
    low, high = np.asarray([-(1 << 30), -500]), np.asarray([-(1 << 29), 500])
    fit, _, _ = fitted(np.asarray([1e-6, 0.3]), -128, low, high, form, double_round=True)
    assert fit is not None
    assert fit.m[0] == 0
    assert (fit(np.stack([low, high]))[:, 0] + form.clamp.middle == 0).all()


def test_levels_beyond_float32_have_no_proof() -> None:
    """Those of a scale of 2^-17 end at 2^24."""
    bound = np.asarray([EXACT])
    assert fitted(np.asarray([1e-6]), 0, -bound, bound, ClampedToOne, double_round=False)[0] is None
    assert fitted(np.asarray([2.0**-17]), -128, -bound, bound + 1, ClampedToSix, double_round=False)[0] is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-3, 2.0**-9])
def test_sums_beyond_float32_are_beyond_all_levels(scale: float, form: type[Clamped]) -> None:
    """They are rounded to float32, and stay where the clamp ends."""
    scales, bound = np.asarray([scale]), np.asarray([1 << 27])
    fit, mantissa, shift = fitted(scales, -3, -bound, bound, form, double_round=False)
    assert fit is not None
    near = EXACT + np.arange(-40, 1000)
    x = np.concatenate([near, -near, np.random.default_rng(0).integers(-bound[0], bound[0], 100_000)])[:, None]
    np.testing.assert_array_equal(fit(x) + form.clamp.middle, wanted(x, mantissa, shift, -3, double_round=False))


def test_fewer_levels_are_those_of_relu6() -> None:
    """A range of 10 levels, as a fused activation leaves: RELU_N1_TO_1 has 256 and no other."""
    thresholds, bound = float_thresholds(np.arange(1, 11), np.asarray([0.37])), np.asarray([200])
    climb = Climb(thresholds, np.asarray([0.37]), -bound, bound)
    assert ClampedToOne.fit(climb) is None
    fit = ClampedToSix.fit(climb)
    assert fit is not None
    x = np.arange(-200, 201)[:, None]
    np.testing.assert_array_equal(fit(x), np.clip(np.floor(x * 0.37 + 0.5), 0, 10))


@pytest.mark.parametrize("scale", [0.013, 0.37, 1.0, 1.7, 40.0])
def test_slope_of_a_line(scale: float) -> None:
    """A line of that slope climbs as the 256 entries of a table do, and they say no more about it."""
    entries = np.clip(np.floor(np.arange(256) * scale + 0.3123), 0, 255)
    levels = np.arange(1, int(entries[-1]) + 1)
    climb = table_climb(entries.astype(np.int64), np.arange(256))
    assert climb is not None
    thresholds, slope = climb.thresholds[:, 0], climb.slope[0]
    np.testing.assert_array_equal(thresholds, np.searchsorted(entries, levels))
    assert (levels - thresholds * slope).max() < (levels - (thresholds - 1) * slope).min()


def test_no_line_of_a_table_with_too_many_levels() -> None:
    """Each two levels are compared, so that these would be terabytes."""
    assert table_climb(np.arange(-128, 128) << 23, np.arange(256)) is None


def test_no_line_has_two_slopes() -> None:
    below, above = np.arange(-100, 0, 10), np.arange(1, 100, 3)
    assert line_slope(np.concatenate([below, above])) is None
