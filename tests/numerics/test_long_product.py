"""The two-limb product equals the double's, on both sides of every result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.staircase import float_thresholds
from tflq.numerics.wide_product import LongProduct, fit_long_product


def _reference(x: np.ndarray, scale: np.ndarray, lows: int, highs: int) -> np.ndarray:
    product = x.astype(np.float64) * scale
    whole = np.trunc(product)
    return np.clip(whole + np.where(np.abs(product - whole) >= 0.5, np.sign(product), 0), lows, highs).astype(np.int64)


def _product(fit: LongProduct, x: np.ndarray) -> np.ndarray:
    x = np.clip(x, fit.first, fit.last)
    below = (x * fit.low + np.sign(x) * fit.correction) >> 32
    return (x * fit.high + below + (1 << (fit.shift - 1))) >> fit.shift


@given(seed=st.integers(0, 2**32 - 1), log2=st.floats(-20, -1), bits=st.sampled_from([8, 16]), tie=st.booleans())
@settings(max_examples=20, deadline=None)
def test_equals_the_double(seed: int, log2: float, bits: int, tie: bool) -> None:
    rng = np.random.default_rng(seed)
    scale = np.full(3, 2.0 ** int(log2)) if tie else 2.0 ** (log2 + rng.random(3) * 0.9)
    lows, highs, reach = -(1 << (bits - 1)), (1 << (bits - 1)) - 1, 1 << 30
    fit = fit_long_product(scale, lows, highs, -reach, reach)
    assert fit is not None
    ends = float_thresholds(rng.integers(lows + 1, highs, 500), scale)
    x = np.concatenate([rng.integers(-reach, reach, (2000, 3)), ends, ends - 1, [[0] * 3, [1] * 3, [-1] * 3]])
    x = np.clip(x, -reach, reach)
    np.testing.assert_array_equal(np.clip(_product(fit, x), lows, highs), _reference(x, scale, lows, highs))


def test_ties_need_the_sign() -> None:
    fit = fit_long_product(np.asarray([2.0**-4]), -128, 127, -(1 << 20), 1 << 20)
    assert fit is not None
    assert fit.correction > 0


@pytest.mark.parametrize("reach", [1 << 40, 1 << 46])
def test_wide_accumulators_without_saturation_are_refused(reach: int) -> None:
    assert fit_long_product(np.asarray([2.0**-40]), -32768, 32767, -reach, reach) is None
