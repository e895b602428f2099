"""Divisions, RESCALEs, sums of scaled integers and products of limbs that equal a requantization."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tflq.numerics.division_fit import (
    Division,
    LongProduct,
    RescaleFit,
    drifting,
    fit_division,
    fit_long_product,
    fit_rescale,
    fit_terms,
    fit_wide_product,
    nearest,
    saturation_bounds,
)
from tflq.numerics.fixed_point import quantize_multipliers, rescale
from tflq.numerics.staircase import Staircase, float_staircase, float_thresholds, rescale_staircase

# A division that passes for a requantization equals it on every accumulator it may meet.


def climb(fit: Division, x: np.ndarray) -> np.ndarray:
    """trunc((a x + sign(x) c) / b), and that nothing leaves int32 on the way."""
    numerator = fit.a * x + np.sign(x) * fit.c
    assert np.abs(numerator).max() <= 2**31 - 1
    return np.sign(numerator) * (np.abs(numerator) // fit.b)


def samples(stairs: Staircase, reach: int, seed: int) -> np.ndarray:
    """Random accumulators, and both sides of every threshold of every channel."""
    rng = np.random.default_rng(seed)
    thresholds = stairs.thresholds(stairs.levels).ravel()
    edges = np.concatenate([thresholds, thresholds - 1, [0, 1, -1, reach, -reach]])
    return np.unique(np.concatenate([rng.integers(-reach, reach + 1, 5000), np.clip(edges, -reach, reach)]))[:, None]


@given(
    seed=st.integers(0, 2**32 - 1),
    zero_point=st.integers(-128, 127),
    bits=st.floats(8, 24),
    powers=st.booleans(),
    double_round=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_division_equals_rescale(seed: int, zero_point: int, bits: float, powers: bool, double_round: bool) -> None:
    rng, reach = np.random.default_rng(seed), int(2**bits)
    scales = 2.0 ** (rng.integers(-14, -1, 32) if powers else rng.uniform(-16, -0.01, 32))
    mantissa, left = quantize_multipliers(scales)
    shift = 31 - left.astype(np.int64)
    levels = np.arange(-128 - zero_point + 1, 127 - zero_point + 1)
    stairs = rescale_staircase(levels[0], levels.size, mantissa, shift, double_round=double_round)
    bound = np.full(scales.shape, reach)
    fit = fit_division(stairs, -bound, bound)
    if fit is None:
        return  # no proof, another form is used
    x = samples(stairs, reach, seed)
    want = np.clip(rescale(x, mantissa, shift, double_round=double_round), levels[0] - 1, levels[-1])
    np.testing.assert_array_equal(np.clip(climb(fit, x), levels[0] - 1, levels[-1]), want)


@pytest.mark.parametrize("bits", [12, 16, 18])
def test_most_layers_have_a_division(bits: int) -> None:
    scales = 2.0 ** np.random.default_rng(bits).uniform(-bits, 2 - bits, 500)
    mantissa, left = quantize_multipliers(scales)
    stairs = rescale_staircase(-127, 255, mantissa, 31 - left.astype(np.int64))
    bound = np.full(scales.shape, 1 << bits)
    assert fit_division(stairs, -bound, bound) is not None


@given(seed=st.integers(0, 2**32 - 1), zero_point=st.integers(-128, 127), bits=st.floats(8, 20))
@settings(max_examples=40, deadline=None)
def test_division_equals_float64(seed: int, zero_point: int, bits: float) -> None:
    rng, reach = np.random.default_rng(seed), int(2**bits)
    scales = 2.0 ** rng.uniform(-14, -0.01, 16)
    levels = np.arange(-128 - zero_point + 1, 127 - zero_point + 1)
    stairs = float_staircase(levels[0], levels.size, scales)
    bound = np.full(scales.shape, reach)
    fit = fit_division(stairs, -bound, bound)
    if fit is None:
        return
    x = samples(stairs, reach, seed)
    product = x.astype(np.float64) * scales
    want = np.clip(np.sign(product) * np.floor(np.abs(product) + 0.5), levels[0] - 1, levels[-1])
    np.testing.assert_array_equal(np.clip(climb(fit, x), levels[0] - 1, levels[-1]), want)


# What is known without a list of all levels is what the list says.


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["any", "few places", "short steps"])
def test_corners_are_what_all_levels_say(kind: str) -> None:
    rng, channels = np.random.default_rng(len(kind)), 20_000
    first = rng.integers(0, 1 << 32, channels).astype(np.uint32)
    step = {
        "any": rng.integers(0, 1 << 32, channels),
        "few places": rng.integers(0, 64, channels) << 26,
        "short steps": rng.integers(-(1 << 20), 1 << 20, channels),
    }[kind].astype(np.uint32)
    last, drift = rng.integers(1, 256, channels), rng.normal(0, 10.0 ** rng.uniform(-12, 0, channels))
    order = np.arange(255, dtype=np.uint32)[:, None]
    places = np.where(order < last, first + order * step, first)
    below, above = nearest(first, step, last)
    np.testing.assert_array_equal(below, places.min(axis=0) * 2.0**-32)
    np.testing.assert_array_equal(above, 1.0 - places.max(axis=0) * 2.0**-32)
    sums = drift * np.where(order < last, order + 1.0, 1.0) + places * 2.0**-32
    least, most = drifting(first, step, last.astype(np.float64), drift)
    np.testing.assert_array_equal(least, sums.min(axis=0))
    np.testing.assert_array_equal(most, sums.max(axis=0))


# RESCALEs that are a scale by a double: at every threshold, and on every value of a range.


def rounded(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    product = x * scale
    whole = np.trunc(product)
    return whole + np.where(np.abs(product - whole) >= 0.5, np.sign(product), 0)


def differences(fit: RescaleFit, x: np.ndarray, scale: np.ndarray, lows: int, highs: int) -> int:
    """How many of x int64 [n, C] the RESCALE has another result of; it stays within what TOSA takes."""
    scaled = x * fit.factor
    assert (np.abs(scaled) <= np.left_shift(np.int64(1), fit.shift - 1)).all()
    got = (scaled * fit.multiplier + (np.int64(1) << (fit.shift - 1))) >> fit.shift
    return int((np.clip(got, lows, highs) != np.clip(rounded(x, scale), lows, highs)).sum())


@pytest.mark.parametrize("scale", [2.0**-8, 3 * 2.0**-9, 0.0123, 0.75, 1.0, 2.5, 1 / 3, 17.3])
@pytest.mark.parametrize("bounds", [(-128, 127), (0, 255), (-251, 4)])
def test_every_value(scale: float, bounds: tuple[int, int]) -> None:
    for reach in (100, 40000):
        d = np.asarray([scale])
        fit = fit_rescale(d, *bounds, -reach, reach)
        if fit is None:
            low, high = saturation_bounds(d, *bounds)
            reach = max(-low, high)
            fit = fit_rescale(d, *bounds, -reach, reach)
        assert fit is not None
        assert not differences(fit, np.arange(-reach, reach + 1)[:, None], d, *bounds)


@pytest.mark.parametrize("exponent", [-4, -10, -14, -17])
@pytest.mark.parametrize("sides", [(1, 1), (0, 1), (1, 0)])
def test_random_scales(exponent: int, sides: tuple[int, int]) -> None:
    rng = np.random.default_rng(exponent + 40)
    scale = 2.0**exponent * rng.uniform(0.5, 1, 300)
    reach = int(400 / scale.min())
    lows, highs, least, most = -133, 122, -reach * sides[0], reach * sides[1]
    fit = fit_rescale(scale, lows, highs, least, most)
    assert fit is not None
    thresholds = float_thresholds(np.arange(lows + 1, highs + 1), scale)
    x = np.concatenate([thresholds, thresholds - 1, thresholds + 1, rng.integers(least, most, (400, 300))])
    assert not differences(fit, np.clip(x, least, most), scale, lows, highs)


def test_none_beyond_its_precision() -> None:
    scale = 2.0**-24 * np.random.default_rng(0).uniform(0.5, 1, 50)
    assert fit_rescale(scale, -128, 127, -(1 << 31), (1 << 31) - 1) is None


def test_beyond_the_bounds_nothing_changes() -> None:
    scale = np.asarray([0.013, 0.002])
    low, high = saturation_bounds(scale, -100, 27)
    x = np.asarray([[low, high], [low - 9, high + 9], [low - 100000, high + 100000]])
    assert (np.clip(rounded(x[:, :1], scale), -100, 27) == -100).all()
    assert (np.clip(rounded(x[:, 1:], scale), -100, 27) == 27).all()


def test_a_thousand_channels_are_soon_found() -> None:
    scale = 2.0**-12 * np.random.default_rng(0).uniform(0.5, 1, 1000)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        assert fit_rescale(scale, -128, 127, -(1 << 23), 1 << 23) is not None
        times.append(time.perf_counter() - start)
    assert min(times) < 0.5


# Sums of scaled integers.

RATIOS = st.floats(2.0**-12, 2.0**8)


@given(st.lists(RATIOS, min_size=2, max_size=2), st.sampled_from([255, 32768]), st.integers(0, 1 << 30))
def test_within_what_is_said(ratios: list[float], reach: int, seed: int) -> None:
    terms, bits, off = fit_terms([np.asarray([r]) for r in ratios], [reach, reach])
    assume(bits >= 0)
    rng = np.random.default_rng(seed)
    xs = [np.append(rng.integers(-reach, reach, 200, endpoint=True), [-reach, reach]) for _ in ratios]
    total = np.zeros(202, np.int64)
    for x, term in zip(xs, terms, strict=True):
        assert int(term.multiplier.max()) < 1 << 31
        half = 1 << term.shift >> 1
        total += (x * term.multiplier + half) >> term.shift
    assert np.abs(total).max() < 1 << 31
    real = sum(x * r for x, r in zip(xs, ratios, strict=True))
    assert np.abs(total / 2.0**bits - real).max() <= off * (1 + 1e-9)


def test_8_bits_need_no_shifts() -> None:
    terms, _, off = fit_terms([np.asarray([0.5]), np.asarray([0.7])], [255, 255])
    assert [t.shift for t in terms] == [0, 0]
    assert off < 1e-2


# The product of limbs equals the double's, on both sides of every tie.


def _reference(x: np.ndarray, scale: np.ndarray, lows: int, highs: int) -> np.ndarray:
    product = x.astype(np.float64) * scale
    whole = np.trunc(product)
    return np.clip(whole + np.where(np.abs(product - whole) >= 0.5, np.sign(product), 0), lows, highs).astype(np.int64)


@given(
    seed=st.integers(0, 2**32 - 1),
    log2=st.lists(st.floats(-36, 16), min_size=1, max_size=3),
    bits=st.sampled_from([8, 16]),
    kind=st.sampled_from(["any", "power of two", "float32"]),
    reach=st.floats(0, 52),
)
@settings(max_examples=60, deadline=None)
def test_equals_the_double(seed: int, log2: list[float], bits: int, kind: str, reach: float) -> None:
    rng = np.random.default_rng(seed)
    scale = 2.0 ** (np.round(log2) if kind == "power of two" else np.asarray(log2))
    scale = scale.astype(np.float32).astype(np.float64) if kind == "float32" else scale
    most, zero = int(2.0**reach), int(rng.integers(-(1 << (bits - 1)), 1 << (bits - 1)))
    lows, highs = -(1 << (bits - 1)) - zero, (1 << (bits - 1)) - 1 - zero
    fit = fit_wide_product(scale, lows, highs, -most, most)
    assert fit is not None
    ties = np.ceil((rng.integers(lows, highs + 1, (500, scale.size)) - 0.5) / scale).astype(np.int64)
    near = np.concatenate([ties + step for step in range(-2, 3)])
    ends = np.multiply.outer(np.asarray([0, 1, -1, most, -most]), np.ones(scale.size, np.int64))
    x = np.clip(np.concatenate([near, rng.integers(-most, most + 1, (500, scale.size)), ends]), -most, most)
    np.testing.assert_array_equal(np.clip(fit.of(x), lows, highs), _reference(x, scale, lows, highs))


def test_a_product_that_float64_rounds_up_to_a_tie() -> None:
    """Half a last place is not the same for all results: a fixed correction of ties is not enough."""
    scale = np.asarray([2.0**-34 * 1.3])
    fit = fit_wide_product(scale, -32768, 32767, -(1 << 49), 1 << 49)
    assert fit is not None
    ties = np.ceil((np.arange(-32767, 32768) - 0.5) / scale).astype(np.int64)[:, None]
    x = np.concatenate([ties - 1, ties])
    np.testing.assert_array_equal(fit.of(x), _reference(x, scale, -32768, 32767))


@pytest.mark.parametrize("reach", [1 << 54, 1 << 62])
def test_sums_that_a_double_does_not_hold_are_refused(reach: int) -> None:
    assert fit_wide_product(np.asarray([2.0**-44]), -32768, 32767, -reach, reach) is None


# The two-limb product equals the double's, on both sides of every result.


def _product(fit: LongProduct, x: np.ndarray) -> np.ndarray:
    x = np.clip(x, fit.first, fit.last)
    below = (x * fit.low + np.sign(x) * fit.correction) >> 32
    return (x * fit.high + below + (1 << (fit.shift - 1))) >> fit.shift


@given(seed=st.integers(0, 2**32 - 1), log2=st.floats(-20, -1), bits=st.sampled_from([8, 16]), tie=st.booleans())
@settings(max_examples=20, deadline=None)
def test_long_products_equal_the_double(seed: int, log2: float, bits: int, tie: bool) -> None:
    rng = np.random.default_rng(seed)
    scale = np.full(3, 2.0 ** int(log2)) if tie else 2.0 ** (log2 + rng.random(3) * 0.9)
    lows, highs, reach = -(1 << (bits - 1)), (1 << (bits - 1)) - 1, 1 << 30
    fit = fit_long_product(scale, lows, highs, -reach, reach)
    assert fit is not None
    ends = float_thresholds(rng.integers(lows + 1, highs, 500), scale)
    x = np.concatenate([rng.integers(-reach, reach, (2000, 3)), ends, ends - 1, [[0] * 3, [1] * 3, [-1] * 3]])
    x = np.clip(x, -reach, reach)
    np.testing.assert_array_equal(np.clip(_product(fit, x), lows, highs), _reference(x, scale, lows, highs))


def test_ties_need_the_sign() -> None:
    fit = fit_long_product(np.asarray([2.0**-4]), -128, 127, -(1 << 20), 1 << 20)
    assert fit is not None
    assert fit.correction > 0


@pytest.mark.parametrize("reach", [1 << 40, 1 << 46])
def test_wide_accumulators_without_saturation_are_refused(reach: int) -> None:
    assert fit_long_product(np.asarray([2.0**-40]), -32768, 32767, -reach, reach) is None
