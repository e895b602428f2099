"""Scales of constant weights: against plain formulas, one channel at a time."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.ranges import WEIGHT_RANGES, block_scales, bounds, clips, stored_weights

BITS = [4, 8]
AXES = (1,)


def weights(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_t(4, (16, 200)).astype(np.float32)


def error(row: np.ndarray, clip: float, bits: int) -> float:
    low, high = bounds(bits)
    scale = clip / high
    return float(((np.clip(np.rint(row / scale), low, high) * scale - row) ** 2).sum())


@pytest.mark.parametrize("bits", BITS)
def test_min_max_reaches_the_largest_magnitude(bits: int) -> None:
    w = weights()
    found = clips(w, AXES, bits, "minmax")
    np.testing.assert_array_equal(found[:, 0], np.abs(w).max(axis=1).astype(np.float64))
    stored = stored_weights(w, found / bounds(bits)[1], bits)
    assert (np.abs(stored.astype(int)).max(axis=1) == bounds(bits)[1]).all()


@pytest.mark.parametrize("bits", BITS)
def test_the_least_squared_error_is_that_of_all_fractions(bits: int) -> None:
    w = weights(1).astype(np.float64)
    for row, clip in zip(w, clips(w, AXES, bits, "mse")[:, 0], strict=True):
        tried = [error(row, np.abs(row).max() * k / 100, bits) for k in range(1, 101)]
        assert error(row, clip, bits) == pytest.approx(min(tried))
        assert error(row, clip, bits) <= error(row, np.abs(row).max(), bits)


@pytest.mark.parametrize("bits", BITS)
def test_octav_is_the_fixed_point_of_its_equation(bits: int) -> None:
    w = weights(2).astype(np.float64)
    for row, clip in zip(np.abs(w), clips(w, AXES, bits, "octav")[:, 0], strict=True):
        beyond = row > clip
        right = row[beyond].sum() / (4.0**-bits / 3 * (~beyond).sum() + beyond.sum()) if beyond.any() else row.max()
        assert clip == pytest.approx(right, rel=1e-6)


def test_octav_has_a_smaller_error_on_long_tails() -> None:
    w = weights(3).astype(np.float64)
    sums = {m: sum(error(r, c, 4) for r, c in zip(w, clips(w, AXES, 4, m)[:, 0], strict=True)) for m in WEIGHT_RANGES}
    assert sums["mse"] <= sums["octav"] < 0.8 * sums["minmax"]


@pytest.mark.parametrize("method", WEIGHT_RANGES)
def test_weights_that_are_all_zero_have_a_scale(method: str) -> None:
    found = clips(np.zeros((2, 3), np.float32), AXES, 4, method)
    assert (found > 0).all()
    assert not stored_weights(np.zeros((2, 3), np.float32), found / 7, 4).any()


def test_scales_of_blocks_have_eight_bits_of_precision() -> None:
    scales = np.exp(np.random.default_rng(0).uniform(-8, 8, 1000))
    rounded = block_scales(scales).astype(np.float64)
    exponent = np.floor(np.log2(scales))
    np.testing.assert_array_equal(rounded, np.rint(scales / 2.0 ** (exponent - 7)) * 2.0 ** (exponent - 7))
    assert block_scales(np.array([0.0]))[0] > 0
    assert np.isfinite(block_scales(np.array([1e9]))[0])
