"""Thresholds of QUANTIZE: each is reached by itself and not by the float32 number below it."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.fixed_point import half_away
from tflq.numerics.float_thresholds import float_steps, from_steps, quantize_thresholds

RNG = np.random.default_rng(0)
SCALES = np.concatenate(
    [
        np.exp(RNG.uniform(-12, 6, 40)),
        10.0 ** RNG.uniform(-44, 38, 40),
        2.0 ** RNG.integers(-126, 127, 10).astype(np.float64),
        [np.finfo(np.float32).tiny, np.finfo(np.float32).max, 1e-45],
    ]
).astype(np.float32)


def kernel(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return half_away((x / scale).astype(np.float64))


@pytest.mark.parametrize("levels", [np.arange(-512, 513), np.arange(-65536, 65537, 61), [2**31, -(2**31) + 1]])
def test_thresholds(levels: np.ndarray) -> None:
    thresholds = quantize_thresholds(SCALES[:, None], levels)
    scales = np.broadcast_to(SCALES[:, None], thresholds.shape)
    assert (kernel(thresholds, scales) >= levels).all()
    assert (kernel(from_steps(float_steps(thresholds) - 1), scales) < levels).all()


def test_steps_are_the_order_of_floats() -> None:
    steps = np.asarray([-0x7F800000, -0x7F7FFFFF, -1, 0, 1, 0x3F800000, 0x7F7FFFFF, 0x7F800000])
    floats = from_steps(steps)
    assert floats[0] == -np.inf
    assert floats[-1] == np.inf
    assert floats[5] == 1
    assert (np.diff(floats) > 0).all()
    np.testing.assert_array_equal(float_steps(floats), steps)
    assert float_steps(-0.0) == 0


def test_half_away_from_zero() -> None:
    below = np.nextafter(np.float32(0.5), np.float32(0))
    x = np.asarray([0.5, -0.5, 1.5, -2.5, below, -below, 8388609, np.inf, -np.inf, 0], np.float32)
    want = [1, -1, 2, -3, 0, 0, 8388609, np.inf, -np.inf, 0]
    np.testing.assert_array_equal(half_away(x), np.asarray(want, np.float32))


def test_an_infinite_scale_stores_zeros() -> None:
    found = quantize_thresholds(np.asarray([np.inf, 0.5], np.float32), np.asarray([[0], [1]]))
    np.testing.assert_array_equal(found[:, 0], [-np.inf, np.inf])
    np.testing.assert_array_equal(found[:, 1], quantize_thresholds(0.5, [0, 1]))
