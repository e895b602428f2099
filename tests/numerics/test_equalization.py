"""Factors of channels: activations and weights reach equally far."""

from __future__ import annotations

import numpy as np

from tflq.numerics.equalization import equalizing_factors, relative


def test_activations_and_weights_reach_equally_far() -> None:
    ranges, weights = np.array([1e3, 1.0, 1e-3]), np.array([1e-3, 0.25, 1e3])
    factors = equalizing_factors([ranges], [(ranges, weights)])
    np.testing.assert_allclose(relative(ranges * factors), relative(weights / factors))
    np.testing.assert_allclose(relative(ranges * factors), [1, 0.5, 1])


def test_weights_with_scales_of_their_own_do_not_count() -> None:
    ranges = np.array([8.0, 0.5])
    np.testing.assert_allclose(np.ptp(ranges * equalizing_factors([ranges], [(ranges, 1 / ranges)])), 0, atol=1e-12)


def test_channels_without_a_range_have_weights_like_others() -> None:
    ranges, weights = np.array([4.0, 1.0, 0.0, 0.0]), np.array([1.0, 4.0, 1e6, 0.0])
    factors = equalizing_factors([ranges], [(ranges, weights)])
    assert (weights / factors)[2] == (weights / factors)[:2].max()
    assert factors[3] == 1
    np.testing.assert_array_equal(equalizing_factors([np.zeros(2)], [(np.zeros(2), np.ones(2))]), [1, 1])
