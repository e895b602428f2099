"""A product in float32 that passes its proof has every entry of the table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.fixed_point import multiply, quantize_multiplier
from tflq.numerics.float_product import fit_float_product, product_of

PLACES = np.arange(256)


def multiplied(scale: float, a: int, b: int, zero_point: int, low: int = 0, high: int = 255) -> np.ndarray:
    """MUL of 8 bits as its kernel rounds, levels of its result."""
    mantissa, left = quantize_multiplier(scale)
    products = np.multiply.outer(PLACES - a, PLACES - b)
    return np.clip(multiply(products, mantissa, left) + zero_point, low, high).astype(np.int64) - low


@given(
    scale=st.floats(2.0**-10, 0.2),
    a=st.integers(0, 255),
    b=st.integers(0, 255),
    zero_point=st.integers(0, 255),
)
@settings(max_examples=40, deadline=None)
def test_every_pair(scale: float, a: int, b: int, zero_point: int) -> None:
    table = multiplied(scale, a, b, zero_point)
    table -= table.min()
    product = product_of(table)
    if product is None:
        return  # no climb is left
    fit = fit_float_product(table, product)
    if fit is None:
        return  # a table of its own is used
    x, y = (PLACES - fit.a).astype(np.float32)[:, None], (PLACES - fit.b).astype(np.float32)
    got = fit.g((x * y)[..., None])[..., 0]
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, table)


@pytest.mark.parametrize("seed", range(4))
def test_most_products_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(5):
        a, b, zero_point = (int(v) for v in rng.integers(0, 256, 3))
        table = multiplied(float(2 ** rng.uniform(-8, -3)), a, b, zero_point)
        table -= table.min()
        product = product_of(table)
        found += product is not None and fit_float_product(table, product) is not None
    assert found >= 4


def test_zero_points_are_found() -> None:
    product = product_of(multiplied(0.01, 3, 250, 100))
    assert product is not None
    assert (product.a, product.b) == (3, 250)


def test_fused_activation() -> None:
    table = multiplied(0.013, 100, 0, 7, 7, 90)
    product = product_of(table)
    assert product is not None
    assert fit_float_product(table, product) is not None


def test_one_count_off_is_found() -> None:
    table = multiplied(0.013, 100, 30, 7)
    table[200, 40] += 1 if table[200, 40] < 255 else -1
    product = product_of(table)
    assert product is None or fit_float_product(table, product) is None


def test_sums_and_constants_are_no_products() -> None:
    assert product_of(np.clip(np.add.outer(PLACES, PLACES) // 2, 0, 255)) is None
    assert product_of(np.zeros((256, 256), np.int64)) is None
