"""Pooling: TOSA's AVG_POOL2D is the kernels' average, and windows hang over the edges without being counted."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.pooling import average_pool, max_pool


@pytest.mark.parametrize(
    ("reach", "counts"), [(128, range(1, 200)), (255, (49, 64, 100, 1000, 4096)), (32768, (1, 2, 3, 7, 9, 49))]
)
def test_tosa_reciprocal_is_the_division(reach: int, counts: range | tuple[int, ...]) -> None:
    for count in counts:
        total = np.arange(-reach * count, reach * count + 1)
        k = (count - 1).bit_length()
        tosa = (total * ((((1 << 30) + 1) << k) // count) + (1 << (29 + k))) >> (30 + k)
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
