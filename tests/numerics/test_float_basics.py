"""x m + c as kernels round it, lines, exact sums, and thresholds of QUANTIZE, against exact numbers and float32."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tflq.numerics.fixed_point import half_away
from tflq.numerics.float_basics import (
    EXACT,
    ProductBounds,
    float_steps,
    from_steps,
    multiply_add,
    quantize_thresholds,
    signed_sums,
)

FLOATS = st.floats(-1e6, 1e6, width=32).filter(lambda v: v == 0 or abs(v) > 1e-6)


def nearest(exact: Fraction) -> np.float32:
    """The float32 number nearest to a fraction; of two, the even one."""
    near = float_steps(np.float32(float(exact))) + np.arange(-2, 3)
    numbers = from_steps(near)
    apart = [abs(Fraction(float(v)) - exact) for v in numbers]
    best = [i for i, v in enumerate(apart) if v == min(apart)]
    return np.float32(numbers[next((i for i in best if near[i] % 2 == 0), best[0])])


@given(x=FLOATS, m=FLOATS, c=FLOATS)
@example(x=4097.0, m=4097.0, c=2.0**-60)  # beyond a tie by less than float64 holds
@example(x=4097.0, m=4097.0, c=-(2.0**-60))
@settings(max_examples=500, deadline=None)
def test_rounded_once(x: float, m: float, c: float) -> None:
    got = multiply_add(*(np.asarray([v], np.float32) for v in (x, m, c)), fused=True)
    assert got[0] == nearest(Fraction(x) * Fraction(m) + Fraction(np.float32(c).item()))


def test_next_to_ties() -> None:
    """Sums a little beside the middle of two float32 numbers, which float64 rounds to that middle."""
    x, m = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-12)  # the product has 2^-24, a tie
    tiny = np.asarray([2.0**-70, 0, -(2.0**-70)], np.float32)
    got = multiply_add(np.full(3, x), np.full(3, m), tiny, fused=True)
    above, even = np.float32(1 + 2.0**-11 + 2.0**-23), np.float32(1 + 2.0**-11)
    np.testing.assert_array_equal(got, [above, even, even])


@pytest.mark.parametrize("seed", range(3))
def test_both_roundings_differ(seed: int) -> None:
    """Of random numbers, in many; and by a unit in the last place at most where nothing cancels."""
    rng = np.random.default_rng(seed)
    x, m, c = rng.uniform(1, 2, (3, 10_000)).astype(np.float32)
    separate, once = multiply_add(x, m, c), multiply_add(x, m, c, fused=True)
    assert separate.dtype == once.dtype == np.float32
    assert 0.05 < (separate != once).mean() < 0.5
    assert (np.abs(float_steps(separate) - float_steps(once)) <= 1).all()


RNG = np.random.default_rng(0)
SCALES = np.concatenate(
    [
        np.exp(RNG.uniform(-12, 6, 40)),
        10.0 ** RNG.uniform(-44, 38, 40),
        2.0 ** RNG.integers(-126, 127, 10).astype(np.float64),
        [np.finfo(np.float32).tiny, np.finfo(np.float32).max, 1e-45],
    ]
).astype(np.float32)


def kernel(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return half_away((x / scale).astype(np.float64))


@pytest.mark.parametrize("levels", [np.arange(-512, 513), np.arange(-65536, 65537, 61), [2**31, -(2**31) + 1]])
def test_thresholds(levels: np.ndarray) -> None:
    thresholds = quantize_thresholds(SCALES[:, None], levels)
    scales = np.broadcast_to(SCALES[:, None], thresholds.shape)
    assert (kernel(thresholds, scales) >= levels).all()
    assert (kernel(from_steps(float_steps(thresholds) - 1), scales) < levels).all()


def test_steps_are_the_order_of_floats() -> None:
    steps = np.asarray([-0x7F800000, -0x7F7FFFFF, -1, 0, 1, 0x3F800000, 0x7F7FFFFF, 0x7F800000])
    floats = from_steps(steps)
    assert floats[0] == -np.inf
    assert floats[-1] == np.inf
    assert floats[5] == 1
    assert (np.diff(floats) > 0).all()
    np.testing.assert_array_equal(float_steps(floats), steps)
    assert float_steps(-0.0) == 0


def test_half_away_from_zero() -> None:
    below = np.nextafter(np.float32(0.5), np.float32(0))
    x = np.asarray([0.5, -0.5, 1.5, -2.5, below, -below, 8388609, np.inf, -np.inf, 0], np.float32)
    want = [1, -1, 2, -3, 0, 0, 8388609, np.inf, -np.inf, 0]
    np.testing.assert_array_equal(half_away(x), np.asarray(want, np.float32))


def test_an_infinite_scale_stores_zeros() -> None:
    found = quantize_thresholds(np.asarray([np.inf, 0.5], np.float32), np.asarray([[0], [1]]))
    np.testing.assert_array_equal(found[:, 0], [-np.inf, np.inf])
    np.testing.assert_array_equal(found[:, 1], quantize_thresholds(0.5, [0, 1]))


# Bounds of partial sums hold for every subset in any order, and runs of inputs keep them below 2^24.


@given(seed=st.integers(0, 2**32 - 1), low=st.integers(-255, 0), span=st.integers(0, 255))
@settings(max_examples=50, deadline=None)
def test_every_subset_is_within_the_bounds(seed: int, low: int, span: int) -> None:
    weights = np.random.default_rng(seed).integers(-127, 128, (3, 5)).astype(np.float64)
    bounds = ProductBounds(np.maximum(weights, 0), np.minimum(weights, 0), low, low + span)
    least, most = bounds.ends
    for taken in itertools.product((0, low, low + span), repeat=5):  # left out, and the ends
        sums = weights @ np.asarray(taken)
        assert (sums >= least).all()
        assert (sums <= most).all()


def uniform(inputs: int, weight: float, low: int, high: int) -> ProductBounds:
    """One output with weights of both signs."""
    signs = np.where(np.arange(inputs) % 2, -weight, weight)[None]
    return ProductBounds(np.maximum(signs, 0), np.minimum(signs, 0), low, high)


@pytest.mark.parametrize(
    ("inputs", "low", "high", "count"),
    [(1024, 0, 255, 1), (1024, -128, 127, 1), (1024, -255, 0, 1), (1040, 0, 255, 2), (2100, -128, 127, 3)],
)
def test_inputs_of_one_sign_reach_half_as_far(inputs: int, low: int, high: int, count: int) -> None:
    runs = uniform(inputs, 127, low, high).runs()
    assert runs is not None
    assert len(runs) == count
    assert [run.start for run in runs] + [inputs] == [0] + [run.stop for run in runs]


def test_the_bias_is_in_the_first_run() -> None:
    bounds = uniform(100, 127, -128, 127)
    assert bounds.runs(np.asarray([float(EXACT - 2_000_000)])) == [slice(0, 100)]
    runs = bounds.runs(np.asarray([1_000_000.0 - EXACT]))
    assert runs is not None
    assert len(runs) == 2
    assert bounds.runs(float(EXACT)) is None
    assert uniform(1, EXACT, 0, 1).runs() is None


@pytest.mark.parametrize("window", [1, 3])
def test_weights_by_sign(window: int) -> None:
    """Sums of windows, and windows of one weight as they are, have the same bounds as in float64."""
    filters = np.random.default_rng(window).integers(-128, 128, (4, window, 2000)).astype(np.float32)
    positive, negative = signed_sums(filters, (1,))
    wide = filters.astype(np.float64)
    want = np.maximum(wide, 0).sum(1), np.minimum(wide, 0).sum(1)
    np.testing.assert_array_equal([positive, negative], want)
    runs = ProductBounds(positive, negative, -3, 511).runs()
    assert runs is not None
    assert runs == ProductBounds(*want, -3, 511).runs()
    assert len(runs) > 1


def test_one_row_of_bounds_is_that_of_each_output() -> None:
    """Weights that are computed have the bounds of their type, whatever the output."""
    one, bias = uniform(1040, 127, 0, 255), np.array([0.0, 1e6, -1e6])
    positive, negative = (np.repeat(v, 3, axis=0) for v in (one.positive, one.negative))
    assert one.runs(bias) == ProductBounds(positive, negative, 0, 255).runs(bias) is not None
