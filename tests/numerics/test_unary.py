"""Functions of one number: erf by polynomials, LOGISTIC and TANH in 16 bits."""

from __future__ import annotations

import zlib
from math import erf

import numpy as np
import pytest

from tflq.numerics.unary import LIMIT, inner, logistic_table, outer, tanh_table

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
