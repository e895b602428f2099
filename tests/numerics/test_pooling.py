"""Pooling: TOSA's AVG_POOL2D is the kernels' average, and windows hang over the edges without being counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tflq.numerics.convolution import (
    average_is_exact,
    average_pool,
    max_pool,
    reciprocal_average_pool,
    reciprocal_scale,
    window_counts,
)


@pytest.mark.parametrize(
    ("reach", "counts"),
    [
        (255, range(1, 4097)),
        (32768, range(1, 17)),
        (32768, (99, 100, 127, 128, 1000, 4095, 4096, 4097, 16381, 16383)),
    ],
)
def test_tosa_reciprocal_is_the_division(reach: int, counts: Sequence[int]) -> None:
    """Both are monotone, so that they agree on all sums if they do on either side of every half."""
    means = np.arange(-reach, reach + 1)
    for count in counts:
        assert average_is_exact((1, count), -reach, reach, 0)
        half = means * count + (count + 1) // 2
        total = np.concatenate([half + step for step in range(-2, 3)])
        multiplier, shift = reciprocal_scale(count)
        tosa = (total * multiplier + (1 << (shift - 1))) >> shift
        np.testing.assert_array_equal(tosa, np.sign(total) * ((np.abs(total) + count // 2) // count))


def test_padding_is_not_counted() -> None:
    x = np.asarray([[1, -2], [-4, 8]], np.int8).reshape(1, 2, 2, 1)
    average = average_pool(x, (2, 2), (1, 1), (1, 1, 1, 1)).reshape(3, 3)
    np.testing.assert_array_equal(average, [[1, -1, -2], [-2, 1, 3], [-4, 2, 8]])


def test_greatest() -> None:
    x = np.arange(12, dtype=np.uint8).reshape(1, 3, 4, 1)
    np.testing.assert_array_equal(max_pool(x, (2, 3), (2, 2), (0, 1, 0, 1)).reshape(2, 2), [[6, 7], [10, 11]])


def test_padding_is_never_the_greatest() -> None:
    x = np.full((1, 1, 1, 1), -128, np.int8)
    assert max_pool(x, (3, 3), (1, 1), (1, 1, 1, 1)).item() == -128


def test_both_averages_are_the_same_number_also_where_windows_hang_over() -> None:
    x = np.random.default_rng(0).integers(-128, 128, (2, 7, 6, 3), np.int8)
    window = ((3, 4), (2, 1), (1, 2, 0, 3))
    np.testing.assert_array_equal(reciprocal_average_pool(x, *window), average_pool(x, *window))


def test_elements_of_windows() -> None:
    counts = window_counts((3, 2), (2, 2), (1, 1), (1, 0, 0, 1))
    np.testing.assert_array_equal(counts, [[2, 1], [4, 2], [4, 2]])


def test_the_average_of_floats_is_the_quotient() -> None:
    x = np.asarray([[1, 2], [4, 8]], np.float32).reshape(1, 2, 2, 1)
    assert average_pool(x, (2, 2), (1, 1), (0, 0, 0, 0)).item() == 3.75
