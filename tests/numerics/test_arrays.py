"""Array helpers."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.tables import distinct


@pytest.mark.parametrize("size", [0, 1, 5, 1000])
def test_distinct_is_unique_with_its_inverse(size: int) -> None:
    values = np.random.default_rng(size).integers(-5, 5, size)
    want, index = np.unique(values, return_inverse=True)
    got = distinct(values)
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(got[1], index)
