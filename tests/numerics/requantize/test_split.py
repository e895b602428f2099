"""A requantization in two steps of float32 equals the one of integers on every accumulator, with either rounding, and
with c added before or last."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.float_fits import assert_scales_as_integers, fitted

from tflq.numerics.fixed_point import rescale
from tflq.numerics.float_basics import EXACT
from tflq.numerics.requantize import split
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.numpy_ops import NumpyOps
from tflq.numerics.requantize.split import Split
from tflq.numerics.requantize.staircase import float_thresholds, rescale_thresholds

WAYS = tuple(NumpyOps(fused=fused, constants_last=last) for fused, last in product((False, True), repeat=2))
"""MUL and ADD rounded separately or once, c added before or last."""


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    least=st.sampled_from([-128, -255, -10, 0, 3]),
    levels=st.sampled_from([255, 255, 127, 10]),
    bits=st.integers(8, 13),
    double_round=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_accumulator(seed: int, least: int, levels: int, bits: int, double_round: bool) -> None:
    assert_scales_as_integers(
        Split, seed, bits, least, levels, ways=WAYS, double_round=double_round, smallest=0, largest=6
    )


@pytest.mark.parametrize("run", [5, 60, 700, 8000, 30_000])
@pytest.mark.parametrize("zero_point", [-128, 3])
def test_any_slope(run: int, zero_point: int) -> None:
    """Both sides of every threshold and random accumulators, up to where 255 levels have 2^24 of them."""
    rng = np.random.default_rng(run)
    scales = rng.uniform(1 / run, 1.2 / run, 60)
    bound = np.full(60, 250 * run)
    least = -128 - zero_point
    fit, mantissa, shift = fitted(Split, scales, least, least + 255, -bound, bound)
    assert fit is not None
    edges = rescale_thresholds(np.arange(least + 1, least + 256), mantissa, shift)
    random = rng.integers(-bound, bound, (4000, 60))
    steps = np.rint(np.arange(-130, 140)[:, None] * run + rng.integers(-2, 3, (270, 60)))
    x = np.clip(np.concatenate([edges, edges - 1, random, steps.astype(np.int64), [-bound, bound]]), -bound, bound)
    want = np.clip(rescale(x, mantissa, shift, double_round=True), least, least + 255)
    for ops in WAYS:
        np.testing.assert_array_equal(fit(x, ops), want)


def test_levels_of_16_bits() -> None:
    """All accumulators of both ends, and those around every 16th threshold."""
    scales, bound = np.asarray([0.0123456789, 0.0091827364]), np.asarray([4_000_000, 5_000_000])
    levels = np.arange(-32767, 32768)
    thresholds = float_thresholds(levels, scales)
    fit = Split.fit(Climb(thresholds, scales, -bound, bound, -32768))
    assert fit is not None
    assert fit.e is None
    near = (thresholds[::16, None] + np.arange(-3, 3)[:, None]).reshape(-1, 2)
    x = np.clip(
        np.concatenate([near, -bound + np.arange(9999)[:, None], bound - np.arange(9999)[:, None]]), -bound, bound
    )
    scaled = x * scales
    want = np.clip(np.sign(scaled) * np.floor(np.abs(scaled) + 0.5), -32768, 32767)
    for ops in WAYS:
        np.testing.assert_array_equal(fit(x, ops), want)


def test_a_channel_of_one_result_and_one_of_few_accumulators() -> None:
    """They have one line, among others in two steps."""
    low, high = np.asarray([-(1 << 30), -500, -50_000]), np.asarray([-(1 << 29), 500, 50_000])
    fit, mantissa, shift = fitted(Split, np.asarray([1e-6, 0.7, 0.002]), 0, 255, low, high)
    assert fit is not None
    assert (fit.p > 0).tolist() == [False, False, True]
    x = np.clip(np.arange(-50_000, 50_001)[:, None], low, high)
    want = np.clip(rescale(x, mantissa, shift, double_round=True), 0, 255)
    for ops in WAYS:
        np.testing.assert_array_equal(fit(x, ops), want)


def test_ranges_that_cut_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels beyond the range are as far from the next one, which is proof enough."""
    monkeypatch.setattr(split, "_exactly_centred", None)
    bound = np.full(20, 42_000)
    fit, mantissa, shift = fitted(Split, np.linspace(1, 1.2, 20) / 700, -128, 127, -bound, bound // 2)
    assert fit is not None
    assert (fit.p > 0).all()
    x = np.arange(-42_000, 21_001, 7)[:, None] + np.arange(20) % 7
    x = np.minimum(x, 21_000)
    want = np.clip(rescale(x, mantissa, shift, double_round=True), -128, 127)
    for ops in WAYS:
        np.testing.assert_array_equal(fit(x, ops), want)


def test_what_no_line_says_has_no_proof() -> None:
    """Steps of two lengths, and accumulators beyond 2^24."""
    thresholds = np.cumsum(np.where(np.arange(255) % 3, 100, 130))[:, None]
    bound = np.asarray([EXACT])
    assert Split.constants(thresholds, np.asarray([1 / 110]), -bound, bound, 0) == ()
    assert fitted(Split, np.asarray([2.0**-18]), -128, 127, -bound * 4, bound * 4)[0] is None


def test_arrays_are_the_requantization() -> None:
    low, high = np.asarray([-50_000]), np.asarray([50_000])
    for least in (-128, 0):
        fit, mantissa, shift = fitted(Split, np.asarray([0.002]), least, least + 255, low, high)
        assert fit is not None
        thresholds = rescale_thresholds(np.arange(least + 1, least + 256), mantissa, shift)
        constants = Split.constants(thresholds, mantissa / 2.0**shift, low, high, least)
        again = Split.of_constants(constants)
        assert again is not None
        assert [v.tolist() for v in constants] == [[] if v is None else v.tolist() for v in vars(fit).values()]
        assert (again.e is None) == (fit.e is None)
        assert (fit.e is None) == (least == 0)
