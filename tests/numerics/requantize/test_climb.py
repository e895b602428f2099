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
    slope = climb.slope.astype(np.float32).astype(np.float64)
    found = climb.nearest(slope, 3, climb.size)
    m = from_steps(float_steps(slope.astype(np.float32)) + step)
    a = np.clip(climb.thresholds[-1], -bound, bound).astype(np.float64)
    for some in (np.arange(20), *found.groups()):
        near, steps = found.steps(some), climb.of_channels(some).steps
        for rounding in ("separate", "either"):
            got, want = (v.left(a[some], m[some], rounding) for v in (near, steps))
            np.testing.assert_array_equal(got, want)
        np.testing.assert_allclose(
            climb.of_channels(some).room(slope[some]),
            [v.max(0) if i == 0 else v.min(0) for i, v in enumerate(steps.room(slope[some]))],
            atol=1e-9,
        )


@pytest.mark.parametrize("bound", [1 << 23, 30000])
@pytest.mark.parametrize(("bottom", "rounding"), [(0, "separate"), (0, "either"), (-128, "either")])
def test_lines_in_the_middle_of_much_room_are_proven(bottom: int, bound: int, rounding: Any) -> None:
    """Those that no rounding decides about meet every threshold, and so do not those of little room."""
    climb = climb_of(np.exp(np.random.default_rng(bound).uniform(0, 7, 2000)), bottom, bound)
    top = np.clip(climb.thresholds[-1], climb.low, climb.high)
    task = falling._Task(climb, top, np.ones_like(top), rounding)
    room = climb.room(climb.slope.astype(np.float32).astype(np.float64))
    fit, sure = falling._middle(task, room)
    proven = task.proves(fit, climb.steps)
    assert 500 < sure.sum() < proven.sum() < 2000
    assert proven[sure].all()
    assert not falling._middle(task, room + 0.01)[1].all()


@pytest.mark.parametrize("bound", [1 << 23, 3000])
def test_steps_on_both_sides_of_a_level_decide_by_themselves(bound: int) -> None:
    """Thresholds that jump at 0: the nearest ones of the levels up to 0 and of those above it."""
    run = np.geomspace(3.7, 300, 300)
    mantissa, left = quantize_multipliers(1 / run)
    shift = 31 - left.astype(np.int64)
    thresholds = rescale_thresholds(np.arange(-127, 128), mantissa, shift)
    climb = Climb(thresholds, mantissa / np.exp2(shift), np.full(300, -bound), np.full(300, bound), -128)
    found = climb.nearest(climb.slope, 1, 1.0, 128)
    near, steps = found.steps(np.arange(300)), climb.steps
    for rows, above in ((slice(128), False), (slice(128, None), True)):
        at_least, below = (v[rows] for v in steps.room(climb.slope))
        for got, want, least in zip(near.room(climb.slope), (at_least, below), (True, False), strict=True):
            side = np.where((near.level[0 if least else 1] > 0) == above, got, -np.inf if least else np.inf)
            np.testing.assert_array_equal(side.max(0) if least else side.min(0), want.max(0) if least else want.min(0))


def test_few_steps_are_near() -> None:
    climb = climb_of(np.linspace(50, 300, 100), -128, 1 << 23)
    near = climb.nearest(climb.slope, 3, climb.size)
    assert sum(np.isfinite(near.steps(some).reached).sum() for some in near.groups()) < climb.thresholds.size // 8
    assert sum(some.size for some in near.groups()) == 100


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
