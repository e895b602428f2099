"""Bounds of partial sums hold for every subset in any order, and runs of inputs keep them below 2^24."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.float_lines import EXACT, ProductBounds


@given(seed=st.integers(0, 2**32 - 1), low=st.integers(-255, 0), span=st.integers(0, 255))
@settings(max_examples=50, deadline=None)
def test_every_subset_is_within_the_bounds(seed: int, low: int, span: int) -> None:
    weights = np.random.default_rng(seed).integers(-127, 128, (3, 5)).astype(np.float64)
    bounds = ProductBounds.of(np.maximum(weights, 0), np.minimum(weights, 0), low, low + span)
    least, most = (v.sum(1) for v in bounds)
    for taken in itertools.product((0, low, low + span), repeat=5):  # left out, and the ends
        sums = weights @ np.asarray(taken)
        assert (sums >= least).all()
        assert (sums <= most).all()


def uniform(inputs: int, weight: float, low: int, high: int) -> ProductBounds:
    """One output with weights of both signs."""
    signs = np.where(np.arange(inputs) % 2, -weight, weight)[None]
    return ProductBounds.of(np.maximum(signs, 0), np.minimum(signs, 0), low, high)


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
