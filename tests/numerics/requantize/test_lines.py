"""What thresholds leave to a line in float32 is exactly what evaluation says, and what is found is in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.float_basics import float_steps, from_steps, level_bounds
from tflq.numerics.requantize import lines
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.gaps import Gaps
from tflq.numerics.requantize.lines import HardestThresholds, added, closed

LEVELS = np.arange(-127, 128)


@given(seed=st.integers(0, 2**32 - 1), gain=st.one_of(st.just(1.0), st.floats(127, 128, exclude_max=True, width=32)))
@settings(max_examples=60, deadline=None)
def test_bounds_are_where_levels_begin(seed: int, gain: float) -> None:
    """The least float32 number to add to a product so that it reaches a level, ties of every rounding included."""
    rng, factor = np.random.default_rng(seed), np.float32(gain)
    bound = level_bounds(LEVELS, np.asarray([factor]))[0, :-2]
    product = (rng.integers(-(1 << 20), 1 << 20, LEVELS.size) * 2.0 ** rng.integers(-26, -19) * 128 / gain).astype("f4")
    least = (bound - product).astype(np.float32)
    near = from_steps(float_steps(least) + np.arange(-3, 4)[:, None])
    reached = np.floor((product + near) * factor) >= LEVELS
    np.testing.assert_array_equal(reached, near >= bound - product)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), odd=st.booleans())
@settings(max_examples=60, deadline=None)
def test_lines_meet_the_thresholds_they_are_made_of(seed: int, odd: bool) -> None:
    met, exists = _lines(seed, odd=odd)
    assert met[..., exists].all()


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_there_are_lines(seed: int, *, odd: bool) -> None:
    """Nearly always: rarely a slope leaves no room for a float32 constant."""
    met, exists = _lines(seed, odd=odd)
    assert exists.all()
    assert met.all()


def _lines(seed: int, *, odd: bool) -> tuple[np.ndarray, np.ndarray]:
    """Whether lines through the thresholds of five drawn staircases meet them, and whether there is a line."""
    rng = np.random.default_rng(seed)
    slope, offset, jump = rng.uniform(1e-3, 0.5, 5), rng.uniform(-20, 20, 5), rng.uniform(0, 0.4, 5) * odd
    x = np.arange(-200_000, 200_000)[:, None]
    levels = np.floor(x * slope + offset + np.sign(x) * jump)
    thresholds = np.stack([-200_000 + np.searchsorted(v, LEVELS) for v in levels.T], 1)
    low, high = np.full(5, -150_000), np.full(5, 150_000)
    climb = Climb(thresholds, slope, low, high, -128)
    steps, near = climb.steps, Gaps.of(climb, slope).nearest(np.arange(5), 1, 2.0**60)
    tight = HardestThresholds.of(near, slope, odd=odd, most=LEVELS.size)
    gain = np.float32(127.5)
    m = (slope / float(gain)).astype(np.float32)
    bounds = level_bounds(LEVELS, np.asarray([gain]))
    line = tight.lines(np.zeros((1, 5)), m[None], bounds, np.zeros((1, 5), np.int64))

    def f(x: np.ndarray) -> np.ndarray:
        total = x.astype(np.float32) * m + (np.sign(x).astype(np.float32) * line.e + line.c)
        return np.floor(total * gain)

    beyond = 1e3 * odd  # zero has neither sign
    reached, missed = f(steps.reached), f(steps.missed)
    met = steps.meets_thresholds(reached + beyond * (steps.reached == 0), missed - beyond * (steps.missed == 0))
    return np.asarray(met), line.any


@pytest.mark.parametrize("sides", [1, 2])
def test_no_room_is_no_line(sides: int) -> None:
    """An interval without a float32 number in it, an empty one, and one that is open to one side."""
    at_least = np.asarray([1.0 + 2.0**-26, 1.0, -np.inf])[None].repeat(sides, 0)
    below = np.asarray([1.0 + 2.0**-25, 0.5, 3.0])[None].repeat(sides, 0)
    width, c, _ = added(*closed(at_least, below, np.full(3, 0.5)))
    np.testing.assert_array_equal(width > -np.inf, [False, False, True])
    assert 2.5 <= c[2] < 3.0


@pytest.mark.parametrize("rounding", ["separate", "either"])
@pytest.mark.parametrize("odd", [False, True])
def test_the_first_thresholds_tell_the_widest_line(
    rounding: Any, *, odd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among many lines it is that of all thresholds."""
    rng = np.random.default_rng(odd)
    slope = rng.uniform(1e-4, 2e-3, 9)
    thresholds = np.ceil((LEVELS[:, None] - rng.uniform(0.4, 0.6, 9)) / slope).astype(np.int64)
    high = np.full(9, 1 << 22)
    climb = Climb(thresholds, slope, -high, high, -128)
    tight = HardestThresholds.of(Gaps.of(climb, slope).nearest(np.arange(9), 5, climb.size), slope, odd=odd)
    gains = np.linspace(127, 127.9, 90).astype(np.float32)
    bounds, index = level_bounds(LEVELS, gains), np.repeat(np.arange(90)[:, None], 9, 1)
    m = (slope / gains[:, None].astype(np.float64)).astype(np.float32)
    results = []
    for many in (0, 1 << 30):
        monkeypatch.setattr(lines, "_MANY", many)
        results.append(tight.lines(np.zeros((1, 9)), m, bounds, index, rounding=rounding))
    for few, whole in zip(*results, strict=True):
        np.testing.assert_array_equal(few[results[1].any], whole[results[1].any])
    assert results[0].any.sum() > 2
