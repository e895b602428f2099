"""Functions of one number, and their tables."""

from __future__ import annotations

import zlib
from math import erf

import numpy as np
import pytest

from tflq.numerics.unary import (
    LIMIT,
    difference_table,
    distinct,
    exponentials,
    inner,
    logistic_table,
    outer,
    sigmoid_input_scaling,
    sigmoid_table,
    table_8bit,
    table_16bit,
    tanh_table,
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


# LOGISTIC and TANH in 16 bits: gemmlowp's own results for every int16, by their checksums.

_TANH = (0xA348DAF8, 0xC979DD1D, 0x742F59B7, 0x70B28DFE, 0x215077B2, 0x3A695108, 0x32E074AE)
"""CRC-32 of gemmlowp::tanh of every int16 with 0 to 6 integer bits, compiled from its header, little endian."""


def _checksum(table: np.ndarray) -> int:
    return zlib.crc32(table.astype("<i2").tobytes())


def test_logistic_is_gemmlowps() -> None:
    assert _checksum(logistic_table()) == 0x89B3F38E


@pytest.mark.parametrize("bits", range(7))
def test_tanh_is_gemmlowps(bits: int) -> None:
    assert _checksum(tanh_table(bits)) == _TANH[bits]


def test_near_the_real_functions() -> None:
    x = np.arange(-32768, 32768)
    assert np.abs(logistic_table() - 32768 / (1 + np.exp(-x / 4096))).max() < 7
    for bits in range(7):
        assert np.abs(tanh_table(bits) - 32768 * np.tanh(x / 2.0 ** (15 - bits))).max() < 13


def test_other_widths_are_refused() -> None:
    with pytest.raises(ValueError, match="0 to 6"):
        tanh_table(7)
