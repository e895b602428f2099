"""x m + c rounded once is the real number, rounded; compared with fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tflq.numerics.float_thresholds import float_steps, from_steps
from tflq.numerics.multiply_add import multiply_add

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
