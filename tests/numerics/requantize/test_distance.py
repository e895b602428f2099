"""A requantization by distances in float32 equals the one of integers on every accumulator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.float_fits import assert_scales_as_integers, fitted

from tflq.numerics.fixed_point import rescale
from tflq.numerics.float_basics import EXACT
from tflq.numerics.requantize.distance import Distance
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
    assert_scales_as_integers(Distance, seed, bits, least, levels)


@pytest.mark.parametrize("scale", [0.004, 0.03, 0.4])
def test_layers_as_they_are(scale: float) -> None:
    """Both sides of every threshold, random accumulators, and those of 2^24, most of the layers."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(4):
        scales, bound = rng.uniform(scale, 1.5 * scale, 20), np.full(20, EXACT << 2)
        fit, mantissa, shift = fitted(Distance, scales, 0, 255, -bound, bound)
        if fit is None:
            continue
        found += 1
        edges = rescale_thresholds(np.arange(1, 256), mantissa, shift)
        x = np.concatenate([edges, edges - 1, rng.integers(-70000, 70000, (4000, 20)), [bound, -bound, bound // 4]])
        want = np.clip(rescale(x, mantissa, shift, double_round=True), 0, 255)
        np.testing.assert_array_equal(fit(x), want)
        total = fit.q - np.maximum(fit.h - x, 0)  # float64
        inside = (total >= 0) & (x <= fit.h)
        exact = total.astype(np.float32) == total
        assert exact[inside].all()
    assert found >= 3


def test_a_channel_with_one_result() -> None:
    low, high = np.asarray([-(1 << 30), -500, 1 << 29]), np.asarray([-(1 << 29), 500, 1 << 30])
    fit, _, _ = fitted(Distance, np.asarray([1e-6, 0.3, 1.0]), 0, 255, low, high)
    assert fit is not None
    assert fit.live.tolist() == [False, True, False]
    assert fit(np.stack([low, high]))[:, [0, 2]].tolist() == [[0, 255], [0, 255]]


def test_what_no_line_says_has_no_proof() -> None:
    """Steps of two lengths, ranges beyond what is exact, and levels of too many accumulators."""
    thresholds = np.cumsum(np.where(np.arange(255) % 3, 100, 130))[:, None]
    bound = np.asarray([EXACT])
    assert Distance.constants(thresholds, np.asarray([1 / 110]), -bound, bound, 0) == ()
    assert fitted(Distance, np.asarray([2.0**-20]), -128, 127, -bound * 4, bound * 4)[0] is None
    assert fitted(Distance, np.asarray([1 / 60_001]), -128, 127, -bound, bound)[0] is None
