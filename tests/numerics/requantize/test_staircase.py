"""Two roundings that agree with one: staircases with equal thresholds."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.fixed_point import half_away, multiply, quantize_multipliers
from tflq.numerics.requantize.staircase import roundings_agree


@pytest.mark.slow
@pytest.mark.parametrize("powers", [False, True])
def test_two_roundings_agree_with_one(powers: bool) -> None:
    """For every sum of a range: of float64 once, and of a multiplier twice."""
    rng, found = np.random.default_rng(0), set()
    for _ in range(1500):
        scale = 2.0 ** (rng.integers(-6, 2, 5) if powers else rng.uniform(-9, 2, 5))
        low, high = -rng.integers(0, 300, 5), rng.integers(0, 300, 5)
        bottom, top = -int(rng.integers(0, 128)), int(rng.integers(1, 128))
        agree = roundings_agree(scale, scale, low, high, bottom, top)
        for channel, (mantissa, left) in enumerate(zip(*quantize_multipliers(scale), strict=True)):
            x = np.arange(low[channel], high[channel] + 1)
            once = np.clip(half_away(x * scale[channel]), bottom, top)
            twice = np.clip(multiply(x.astype(np.int32), mantissa, left), bottom, top)
            assert agree[channel] == (once == twice).all(), (scale[channel], low, high)
        found.update(agree.tolist())
    assert found == {True, False}


def test_two_roundings_do_not_agree_where_types_end() -> None:
    one = np.ones(1, np.int64)
    for scale in (0.0, np.inf, np.nan, 2.0**31):
        assert not roundings_agree(np.asarray([scale]), np.asarray([scale]), -(one << 20), one << 20, -128, 127).any()
