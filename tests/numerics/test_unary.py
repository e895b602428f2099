"""Functions of one number, and their tables."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest

from tflq.numerics.unary import (
    LIMIT,
    distinct,
    inner,
    outer,
    sigmoid_input_scaling,
    sigmoid_table,
    table_8bit,
    table_16bit,
)

# Tables of sigmoids, and of any function.


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


# The polynomials of erf: evaluated in float32, within three units in the last place.


def horner(x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def test_erf_in_float32() -> None:
    x = np.concatenate([np.linspace(0, 6, 60001), np.logspace(-30, 0, 2001)]).astype(np.float32)
    near, far = np.minimum(x, np.float32(1)), np.clip(x, np.float32(1), np.float32(LIMIT))
    below = near + near * horner(near * near, inner())
    got = np.where(x < 1, below, np.float32(1) - np.exp(horner(far, outer())))
    want = np.asarray([erf(v) for v in x.astype(np.float64)])
    error = np.abs(got - want) / np.spacing(want.astype(np.float32))
    assert error.max() < 3


def test_it_is_one_from_the_limit_on() -> None:
    assert np.float32(erf(LIMIT)) == 1
