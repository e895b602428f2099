"""Steps: the nearest ones decide about lines, and a search that cannot succeed ends at the hardest channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.fixed_point import quantize_multipliers
from tflq.numerics.float_basics import float_steps, from_steps, level_bounds
from tflq.numerics.requantize import falling
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.gaps import Gaps
from tflq.numerics.requantize.lines import HardestThresholds
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
    slope = climb.slope.astype(np.float32).astype(np.float64)
    gaps, channels = Gaps.of(climb, slope), np.arange(20)
    m = from_steps(float_steps(slope.astype(np.float32)) + step)
    a = np.clip(climb.thresholds[-1], -bound, bound).astype(np.float64)
    near, every = (gaps.nearest(channels, 3, size) for size in (climb.size, 2.0**60))
    bounds = level_bounds(climb.levels, np.ones(1, np.float32))
    for some in (channels, channels[5:9]):
        for rounding in ("separate", "either"):
            got, want = (
                HardestThresholds.of(steps.of_channels(some), slope[some], odd=False, most=255).intervals(
                    a[some], m[some], bounds, np.zeros(some.size, np.int64), rounding
                )
                for steps in (near, every)
            )
            np.testing.assert_array_equal(got, want)
    ends = every.ends(every.offsets(slope))
    np.testing.assert_allclose(gaps.room(), [v[0] for v in ends], atol=1e-9)


@pytest.mark.parametrize("bound", [1 << 23, 30000])
@pytest.mark.parametrize(("bottom", "rounding"), [(0, "separate"), (0, "either"), (-128, "either")])
def test_lines_in_the_middle_of_much_room_are_proven(bottom: int, bound: int, rounding: Any) -> None:
    """Those that no rounding decides about meet every threshold, and so do not those of little room."""
    climb = climb_of(np.exp(np.random.default_rng(bound).uniform(0, 7, 2000)), bottom, bound)
    top = np.clip(climb.thresholds[-1], climb.low, climb.high)
    gaps = Gaps.of(climb, climb.slope.astype(np.float32).astype(np.float64))
    task = falling._Task(gaps.nearest(np.arange(2000), 3, 2.0**60), climb.slope, top, np.ones_like(top), rounding)
    at_least, below = gaps.room()
    fit, sure = falling._middle(gaps, at_least, below, top)
    proven = task.proves(fit)
    assert 500 < sure.sum() < proven.sum() < 2000
    assert proven[sure].all()
    assert not falling._middle(gaps, at_least + 0.01, below + 0.01, top)[1].all()


@pytest.mark.parametrize("bound", [1 << 23, 3000])
def test_steps_on_both_sides_of_a_level_decide_by_themselves(bound: int) -> None:
    """Thresholds that jump at 0: the nearest ones of the levels up to 0 and of those above it."""
    run = np.geomspace(3.7, 300, 300)
    mantissa, left = quantize_multipliers(1 / run)
    shift = 31 - left.astype(np.int64)
    thresholds = rescale_thresholds(np.arange(-127, 128), mantissa, shift)
    climb = Climb(thresholds, mantissa / np.exp2(shift), np.full(300, -bound), np.full(300, bound), -128)
    gaps = Gaps.of(climb, climb.slope)
    near, every = (gaps.nearest(np.arange(300), 1, size, 128) for size in (1.0, 2.0**60))
    assert near.x.size < every.x.size / 4
    got, want = (steps.ends(steps.offsets(climb.slope), steps.level > 0, 2) for steps in (near, every))
    np.testing.assert_array_equal(got, want)


def test_few_steps_are_near() -> None:
    climb = climb_of(np.linspace(50, 300, 100), -128, 1 << 23)
    near = Gaps.of(climb, climb.slope).nearest(np.arange(100), 3, climb.size)
    assert 100 <= near.reached < climb.thresholds.size // 8


def test_a_search_ends_with_the_hardest_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight channels in 400 that have no line: others are not searched for further lines."""
    run = np.linspace(900, 1100, 400)
    run[70:78] = np.linspace(9000.3, 12000.7, 8)
    tried, search = [], falling._tried

    def counted(task: Any, *arguments: Any) -> Any:
        tried.append(task.slope.size)
        return search(task, *arguments)

    monkeypatch.setattr(falling, "_tried", counted)
    assert falling.Falling.fit(climb_of(run, 0, 1 << 25)) is None
    assert max(tried) <= 8
