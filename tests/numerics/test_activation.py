"""Activations: their bounds and multipliers, SOFTMAX's tables and the gates of recurrent kernels."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tflq.numerics.activation import (
    activation_range,
    difference_table,
    exponentials,
    leaky_multipliers,
    logistic_table,
    relu_range,
    tanh_table,
)
from tflq.numerics.fixed_point import Multiplier, as_int32, wrapped

# Bounds of fused activations where their conversion to int32, or the zero point, leaves int32.


@given(st.floats(2.0**-149, 2.0**100, width=32), st.integers(-128, 127))
@example(6 * 2.0**-31, 0)
@example(6 * 2.0**-31, 127)
@example(2.0**-30, -128)
def test_the_bound_is_converted_and_moved_as_on_x86(scale: float, zero_point: int) -> None:
    with np.errstate(over="ignore"):
        steps = float(np.float32(6.0) / np.float32(scale))
    counts = np.floor(steps + 0.5) if steps < 2.0**52 else steps
    least, most = max(-128, zero_point), min(127, int(wrapped(as_int32(counts) + zero_point)))
    expected = (least, most) if least <= most else (-128 + (most + 128) % 256,) * 2
    assert relu_range("RELU6", -128, 127, scale, zero_point) == expected


@pytest.mark.parametrize(
    ("activation", "scale", "zero_point", "bounds"),
    [
        ("NONE", 0.1, 3, (-128, 127)),
        ("TANH", 0.1, 3, (-128, 127)),
        ("RELU", 0.1, 3, (3, 127)),
        ("RELU6", 0.1, 3, (3, 63)),
        ("RELU6", 0.01, 3, (3, 127)),
        ("RELU_N1_TO_1", 0.1, 3, (-7, 13)),
        ("RELU_N1_TO_1", 0.4, 0, (-3, 3)),
        ("RELU_0_TO_1", 0.1, -128, (-128, -118)),
    ],
)
def test_activation_range(activation: str, scale: float, zero_point: int, bounds: tuple[int, int]) -> None:
    """Halves go away from zero: 1 / 0.4 is 3 steps."""
    assert activation_range(activation, -128, 127, scale, zero_point) == bounds


def test_a_negative_alpha_keeps_a_positive_multiplier() -> None:
    leaky = leaky_multipliers(0.5, 0.5, -0.25)
    assert leaky.alpha == Multiplier(1 << 30, -1)
    assert leaky.negated


# SOFTMAX: tables of exponentials.


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
