"""LOGISTIC and TANH in 16 bits: gemmlowp's own results for every int16, by their checksums."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tflq.numerics.unary import logistic_table, tanh_table

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
