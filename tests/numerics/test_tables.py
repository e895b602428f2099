"""Lookup tables, and distinct elements."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.unary import (
    difference_table,
    distinct,
    exponentials,
    sigmoid_input_scaling,
    sigmoid_table,
    table_8bit,
    table_16bit,
)

# Tables of exponentials and sigmoids.


def test_exponentials_are_within_a_millionth() -> None:
    x = -np.linspace(0, 31.9, 5000)
    got = exponentials(np.round(x * 2.0**26).astype(np.int32)) / 2.0**31
    np.testing.assert_allclose(got, np.exp(x), atol=1e-6)


def test_difference_table_ends_at_one_and_leaves_out_what_vanishes() -> None:
    table = difference_table(1.0, 0.5)
    assert table[-1] == (1 << 31) - 1
    assert not table[: 255 - 31].any()
    assert table[255 - 31] > 0
    np.testing.assert_array_equal(difference_table(1.0, 1e9)[:-1], 0)


def test_sigmoid_table() -> None:
    table = sigmoid_table()
    assert table[[0, 1, 100, 254, 255]].tolist() == [32768, 33451, 64514 + 22, 65534, 65535]
    assert (np.diff(table) >= 0).all()


@pytest.mark.parametrize(
    ("scale", "exact", "expected"),
    [(2.0**-12, (0,), (3, 0)), (2.0**-11, (0, 1), (6, 0)), (2.0**-11, (0,), (24576, 12)), (0.001, (0,), (25165, 11))],
)
def test_sigmoid_input_scaling(scale: float, exact: tuple[int, ...], expected: tuple[int, int]) -> None:
    assert sigmoid_input_scaling(float(np.float32(scale)), exact) == expected


def test_an_8_bit_table_saturates() -> None:
    table = table_8bit(np.exp, np.dtype(np.int8), 1.0, 0, 0.001, 0)
    assert table[0] == 0
    assert (table[133:] == 127).all()


def test_a_16_bit_table_of_a_line_is_the_line() -> None:
    """But for its steps, which are 65536 in the range of 65535."""
    table = table_16bit(lambda x: x, 0.5, 0, 0.5, 0)
    np.testing.assert_allclose(table[:-1], np.arange(-32768, 32768, 128), atol=1)
    assert table[-1] == 32767


# Array helpers.


@pytest.mark.parametrize("size", [0, 1, 5, 1000])
def test_distinct_is_unique_with_its_inverse(size: int) -> None:
    values = np.random.default_rng(size).integers(-5, 5, size)
    want, index = np.unique(values, return_inverse=True)
    got = distinct(values)
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(got[1], index)
