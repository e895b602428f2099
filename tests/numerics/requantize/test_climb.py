"""Steps: the nearest ones decide about lines, and a search that cannot succeed ends at the hardest channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.fixed_point import quantize_multipliers
from tflq.numerics.float_basics import float_steps, from_steps
from tflq.numerics.requantize import falling
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.staircase import rescale_thresholds


def climb_of(run: np.ndarray, bottom: int, bound: int) -> Climb:
    """The levels of 8 bits from `bottom` on, of channels with so many accumulators to a level."""
    mantissa, left = quantize_multipliers(1 / run)
    shift = 31 - left.astype(np.int64)
    thresholds = rescale_thresholds(np.arange(bottom + 1, bottom + 256), mantissa, shift, double_round=False)
    low, high = np.full(run.size, -bound), np.full(run.size, bound)
    return Climb(thresholds, mantissa / np.exp2(shift), low, high, bottom)


@given(
    seed=st.integers(0, 2**32 - 1),
    bottom=st.sampled_from([0, -128]),
    bound=st.sampled_from([1 << 23, 30000]),
    step=st.sampled_from([0, 1, -1]),
)
@settings(max_examples=40, deadline=None)
def test_nearest_steps_leave_the_interval_that_all_leave(seed: int, bottom: int, bound: int, step: int) -> None:
    rng = np.random.default_rng(seed)
    climb = climb_of(np.exp(rng.uniform(0, 8, 20)), bottom, bound)
    steps, slope = climb.steps, climb.slope.astype(np.float32).astype(np.float64)
    near = steps.nearest(*steps.room(slope), 3)
    m = from_steps(float_steps(slope.astype(np.float32)) + step)
    a = np.clip(climb.thresholds[-1], -bound, bound).astype(np.float64)
    for fused in (False, True):
        for want, got in zip(steps.left(a, m, fused=fused), near.left(a, m, fused=fused), strict=True):
            np.testing.assert_array_equal(got, want)


def test_few_steps_are_near() -> None:
    climb = climb_of(np.linspace(50, 300, 100), -128, 1 << 23)
    steps = climb.steps
    near = steps.nearest(*steps.room(climb.slope), 3)
    assert np.isfinite(near.reached).sum() < steps.reached.size // 8


def test_a_search_ends_with_the_hardest_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight channels in 400 that have no line: others are not searched for further lines."""
    run = np.linspace(900, 1100, 400)
    run[70:78] = np.linspace(9000.3, 12000.7, 8)
    tried, search = [], falling._tried

    def counted(task: Any, *arguments: Any) -> Any:
        tried.append(task.climb.slope.size)
        return search(task, *arguments)

    monkeypatch.setattr(falling, "_tried", counted)
    assert falling.Falling.fit(climb_of(run, 0, 1 << 25)) is None
    assert max(tried) <= 8
