"""A division that passes for a requantization equals it on every accumulator it may meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.division_fit import Division, fit_division
from tflq.numerics.fixed_point import quantize_multipliers, rescale
from tflq.numerics.staircase import Staircase, float_staircase, rescale_staircase


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
