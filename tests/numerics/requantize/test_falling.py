"""Falling and clipped requantizations in float32 equal the one of integers on every accumulator, if proven."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.float_fits import assert_scales_as_integers, fitted

from tflq.numerics.fixed_point import rescale
from tflq.numerics.float_basics import EXACT
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.falling import Clipped, Falling
from tflq.numerics.requantize.numpy_ops import NUMPY, NUMPY_FUSED
from tflq.numerics.requantize.staircase import rescale_thresholds


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    least=st.sampled_from([0, 0, 0, -3, -128]),
    levels=st.sampled_from([255, 255, 127, 10, 1]),
    bits=st.integers(1, 14),
)
@settings(max_examples=80, deadline=None)
def test_every_accumulator(seed: int, least: int, levels: int, bits: int) -> None:
    assert_scales_as_integers(Falling, seed, bits, least, levels)


@pytest.mark.parametrize("scale", [0.004, 0.03, 0.4])
def test_layers_as_they_are(scale: float) -> None:
    """What a rectifier follows has a proof: both sides of every threshold, random accumulators, and those of 2^24."""
    rng = np.random.default_rng(0)
    scales, bound = rng.uniform(scale, 1.5 * scale, 100), np.full(100, EXACT << 2)
    fit, mantissa, shift = fitted(Falling, scales, 0, 255, -bound, bound)
    assert fit is not None
    edges = rescale_thresholds(np.arange(1, 256), mantissa, shift)
    x = np.concatenate([edges, edges - 1, rng.integers(-70000, 70000, (4000, 100)), [bound, -bound, bound // 4]])
    want = np.clip(rescale(x, mantissa, shift, double_round=True), 0, 255)
    np.testing.assert_array_equal(fit(x), want)


def test_a_channel_with_one_result() -> None:
    low, high = np.asarray([-(1 << 30), -500, 1 << 29]), np.asarray([-(1 << 29), 500, 1 << 30])
    fit, _, _ = fitted(Falling, np.asarray([1e-6, 0.3, 1.0]), 0, 255, low, high)
    assert fit is not None
    assert fit.m[[0, 2]].tolist() == [0, 0]
    assert fit(np.stack([low, high]))[:, [0, 2]].tolist() == [[0, 255], [0, 255]]


# The same for lines of clipped numbers, with MUL and ADD rounded separately and once.


@given(
    seed=st.integers(0, 2**32 - 1),
    least=st.sampled_from([0, 0, -3, -128]),
    levels=st.sampled_from([255, 255, 127, 10, 1]),
    bits=st.integers(1, 13),
)
@settings(max_examples=60, deadline=None)
def test_every_accumulator_of_either_rounding(seed: int, least: int, levels: int, bits: int) -> None:
    assert_scales_as_integers(Clipped, seed, bits, least, levels, ways=(NUMPY, NUMPY_FUSED))


@pytest.mark.parametrize("scale", [0.004, 0.03, 0.4])
def test_clipped_layers_as_they_are(scale: float) -> None:
    """Where the clamp ends too, and with the last bit of c another."""
    rng = np.random.default_rng(0)
    scales, bound = rng.uniform(scale, 1.5 * scale, 100), np.full(100, EXACT << 2)
    fit, mantissa, shift = fitted(Clipped, scales, 0, 255, -bound, bound)
    assert fit is not None
    edges = rescale_thresholds(np.arange(1, 256), mantissa, shift)
    x = np.concatenate([edges, edges - 1, rng.integers(-70000, 70000, (4000, 100)), [bound, -bound, bound // 4]])
    want = np.clip(rescale(x, mantissa, shift, double_round=True), 0, 255)
    for ops in (NUMPY, NUMPY_FUSED):
        np.testing.assert_array_equal(fit(x, ops), want)
    u = np.maximum(fit.h.astype(np.float64) - x, 0).astype(np.float32)
    np.testing.assert_array_equal(np.floor(np.maximum(fit.c - u * fit.m, 0)), want)


def test_separate_rounding_alone_is_no_proof() -> None:
    """Of layers as they are, some have a falling line that another rounding breaks: those of either rounding differ."""
    rng, bound = np.random.default_rng(3), np.full(400, EXACT)
    scales = rng.uniform(0.004, 0.006, 400)
    fall, mantissa, shift = fitted(Falling, scales, 0, 255, -bound, bound)
    assert fall is not None
    edges = rescale_thresholds(np.arange(1, 256), mantissa, shift)
    x = np.concatenate([edges, edges - 1])
    span = (fall.c - np.float32(0.5)) / fall.m
    once = Clipped(fall.h, span, fall.m, fall.c)
    want = np.clip(rescale(x, mantissa, shift, double_round=True), 0, 255)
    assert (once(x) == want).all()
    assert (once(x, NUMPY_FUSED) != want).any()


def test_accumulators_beyond_float32_whose_distances_are_not() -> None:
    thresholds = (EXACT * np.asarray([2, -3]) + np.asarray([1, 77]))[:, None] + np.arange(255) * 30
    low, high = thresholds[:, 0] - 500, thresholds[:, -1] + 500
    fit = Clipped.fit(Climb(thresholds.T, np.full(2, 1 / 30), low, high, -128))
    assert fit is not None
    x = np.arange(-500, 255 * 30 + 200)[:, None] + thresholds[:, 0]
    for ops in (NUMPY, NUMPY_FUSED):
        np.testing.assert_array_equal(fit(x, ops), np.clip((x - thresholds[:, 0]) // 30 + 1, 0, 255) - 128)
