"""Products of many integers as sums of logarithms, in int32: REDUCE_PROD where no kernel computes it.

    product of d_i times a scale = sign * 2^(sum of log2 |d_i| s_i)

Each value of the storage type has log2(|d| s) with `bits` behind the point, as many as the sum leaves. The sum's upper
16 bits behind the point choose 2^fraction from 65536 entries of 30 bits, its whole part shifts that to the right. A
second sum counts negative factors, and zeros as 2^20 of them. For n factors the result is off by n 2^-bits / 2 + 2^-17
of itself, at most.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.light import dataclass

__all__ = ["FRACTION_BITS", "MANTISSA_BITS", "ZERO", "LogTable", "log_table", "powers_of_two"]

ZERO = 1 << 20
"""What a zero counts among the negative factors."""
FRACTION_BITS = 16
MANTISSA_BITS = 29


@dataclass(frozen=True, slots=True)
class LogTable:
    """Per stored value: log2 of its magnitude, int32; 1 if it is negative, `ZERO` if it is zero. Bits behind the point,
    and what the sum of all logarithms may be off."""

    logs: np.ndarray
    signs: np.ndarray
    bits: int
    off: float


def log_table(values: np.ndarray, scales: np.ndarray, count: int) -> LogTable:
    """The table for stored values less their zero points [..., n], each times its scale [..., 1]; `count` of them are
    multiplied."""
    magnitude = np.where(values == 0, 1, np.abs(values)) * scales
    logs = np.where(values == 0, 0.0, np.log2(magnitude))
    bits = min(30 - math.frexp(count * max(float(np.abs(logs).max()), 1.0))[1], 24)
    signs = np.where(values == 0, ZERO, values < 0).astype(np.int32)
    return LogTable(np.rint(np.ldexp(logs, bits)).astype(np.int32), signs, bits, count * 2.0 ** (-bits - 1))


def powers_of_two() -> np.ndarray:
    """2^(f / 65536) * 2^29 for f in 0..65535, int32; the middle of each step."""
    steps = (np.arange(1 << FRACTION_BITS) + 0.5) / (1 << FRACTION_BITS)
    return np.rint(2.0 ** (steps + MANTISSA_BITS)).astype(np.int32)
