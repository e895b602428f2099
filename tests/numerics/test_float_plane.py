"""A plane in float32 that passes its proof has every entry of the table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.float_product import fit_float_plane

NUMBERS = np.arange(-128, 128)


def summed(m: float, n: float, offset: float, low: int = 0, high: int = 255) -> np.ndarray:
    """The levels of x m + y n + offset, rounded half away from zero, as ADD does."""
    total = NUMBERS[:, None] * m + NUMBERS[None, :] * n
    rounded = np.sign(total) * np.floor(np.abs(total) + 0.5)
    return np.clip(rounded + offset, low, high).astype(np.int64) - low


@given(
    m=st.floats(0.02, 3),
    n=st.floats(-3, 3),
    zero_point=st.integers(0, 255),
    start=st.sampled_from([-255, -128, 0]),
)
@settings(max_examples=30, deadline=None)
def test_every_pair(m: float, n: float, zero_point: int, start: int) -> None:
    """If one is found: by the very operations of the kernels, for any offset of the numbers."""
    table = summed(m, n, zero_point)
    table -= table.min()
    numbers = start + np.arange(256)
    fit = fit_float_plane(table, numbers, numbers)
    if fit is None:
        return  # a table of its own is used
    x, y = numbers.astype(np.float32)[:, None], numbers.astype(np.float32)
    total = np.float32(np.float32(x * fit.m) + np.float32(y * fit.n)) + fit.c
    got = np.floor(np.minimum(np.maximum(total, np.float32(0)), np.float32(6)) * fit.gain)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, table)


def test_most_sums_are_planes() -> None:
    rng = np.random.default_rng(0)
    tables = [
        summed(m, n, z) for m, n, z in zip(*rng.uniform(0.3, 1.2, (2, 10)), rng.integers(100, 150, 10), strict=True)
    ]
    found = [fit_float_plane(table, NUMBERS, NUMBERS) is not None for table in tables if np.ptp(table) == 255]
    assert sum(found) >= 8


def test_difference_with_a_fused_activation() -> None:
    table = summed(0.7071, -0.4142, 3, 3, 100)
    fit = fit_float_plane(table, NUMBERS, NUMBERS)
    assert fit is not None
    np.testing.assert_array_equal(fit(NUMBERS[:, None], NUMBERS), table)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_equal_scales(scale: float) -> None:
    """A plane that is far from every bound, and one with sums in the middle of two levels, a little steeper."""
    table = summed(scale, scale, 128)
    fit = fit_float_plane(table, NUMBERS, NUMBERS)
    assert fit is not None
    np.testing.assert_array_equal(fit(NUMBERS[:, None], NUMBERS), table)


def test_products_and_constants_are_no_planes() -> None:
    product = np.clip(NUMBERS[:, None] * NUMBERS // 64, -128, 127) + 128
    assert fit_float_plane(product, NUMBERS, NUMBERS) is None
    assert fit_float_plane(np.zeros((256, 256), np.int64), NUMBERS, NUMBERS) is None


def test_one_count_off_is_found() -> None:
    table = summed(0.71, 0.4, 120)
    table[200, 17] += 1 if table[200, 17] < 255 else -1
    assert fit_float_plane(table, NUMBERS, NUMBERS) is None
