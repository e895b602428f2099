"""SOFTMAX in fixed point: the tables and constants of the reference kernels.

8-bit operands. For a difference d = x - max, in -255..0, exp is computed once per difference in Q0.31 by the kernels'
polynomial (`exponentials`), so it is a table of 256 entries; so is its contribution to the sum, Q12.19. The
reciprocal of the sum is three Newton steps from 48/17 - 32/17 * s, where s in [1/2, 1) is the sum shifted left to 31
bits: with r the reciprocal, in Q2.29,

    r += 4 * (r * (1 - s * r))        every product round(a * b / 2^31)

int16 operands. Two tables of 513 entries, interpolated: exp on [-10, 0] and 1 / (1 + x) on [0, 1].

Sources: kernels/internal/reference/softmax.h, kernels/activations.cc (SoftmaxPrepare),
kernels/internal/quantization_util.cc (PreprocessSoftmaxScaling, CalculateInputRadius), kernels/internal/common.h
(GetReciprocal), gemmlowp fixedpoint/fixedpoint.h (exp_on_negative_values, one_over_one_plus_x_for_x_in_0_1).
"""

from __future__ import annotations

import math

import numpy as np

from tflq.numerics.fixed_point import (
    Multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from tflq.numerics.tables import table_16bit

__all__ = [
    "ACCUMULATOR_BITS",
    "NEWTON_OFFSET",
    "NEWTON_ONE",
    "NEWTON_SLOPE",
    "NEWTON_STEPS",
    "difference_table",
    "exp_table_16bit",
    "exponentials",
    "multiplier_16bit",
    "reciprocal_table_16bit",
    "scaled_differences",
]

ACCUMULATOR_BITS = 12
"""Integer bits of the sum of exponentials."""
NEWTON_OFFSET = 1515870810  # 48 / 17 in Q2.29
NEWTON_SLOPE = -1010580540  # -32 / 17 in Q2.29
NEWTON_ONE = 1 << 29
NEWTON_STEPS = 3

_INPUT_BITS = 5
_FRACTION_BITS = 31 - _INPUT_BITS
_EXP_OF_EIGHTH = 1895147668  # exp(-1/8) in Q0.31
_THIRD = 715827883
_EXP_OF_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # exp(-2^k), k = -2..4, in Q0.31


def _mul(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    return saturating_rounding_doubling_high_mul(a, b)


def exponentials(x: np.ndarray) -> np.ndarray:
    """exp of non-positive Q5.26 values (int32), in Q0.31: a polynomial on [-1/4, 0), and one factor per bit above."""
    quarter = np.int32(1 << (_FRACTION_BITS - 2))
    within = (x & (quarter - 1)) - quarter
    a = (within << _INPUT_BITS) + np.int32(1 << 28)
    square = _mul(a, a)
    fourth = rounding_divide_by_pot(_mul(square, square), 2)
    tail = rounding_divide_by_pot(_mul(fourth + _mul(square, a), _THIRD) + square, 1)
    eighth = np.asarray(_EXP_OF_EIGHTH, np.int32)
    result = eighth + _mul(a + tail, eighth)
    remainder = within - x
    for k, factor in enumerate(_EXP_OF_POWERS, _FRACTION_BITS - 2):
        result = np.where(remainder & (1 << k), _mul(result, factor), result)
    return np.where(x == 0, np.int32((1 << 31) - 1), result)


def difference_table(beta: float, input_scale: float) -> np.ndarray:
    """exp(beta * scale * d) in Q0.31 for d in -255..0; zero where the kernel leaves a difference out.

    ValueError if beta * scale is too small for the kernel.
    """
    rescaled, counted = _rescaled(beta, input_scale)
    return np.where(counted, exponentials(rescaled), 0).astype(np.int32)


def scaled_differences(beta: float, input_scale: float) -> np.ndarray:
    """beta * scale * d in Q5.26 for d in -255..0; -16 below that, and where the kernel leaves a difference out.

    ValueError as `difference_table`.
    """
    rescaled, counted = _rescaled(beta, input_scale)
    least = -(16 << _FRACTION_BITS)
    return np.where(counted, np.maximum(rescaled, least), least).astype(np.int32)


def _rescaled(beta: float, input_scale: float) -> tuple[np.ndarray, np.ndarray]:
    """beta * scale * d in Q5.26, int32, for d in -255..0, and whether a difference is within what the kernel takes."""
    real = min(float(np.float32(beta)) * float(np.float32(input_scale)) * (1 << _FRACTION_BITS), 2.0**31 - 1.0)
    if real <= 1.0:
        raise ValueError(f"beta * input scale is {real / (1 << _FRACTION_BITS):.3g}, at most 2^-{_FRACTION_BITS}")
    fraction, left = math.frexp(real)
    mantissa = math.floor(fraction * 2.0**31 + 0.5)
    if mantissa == 1 << 31:
        mantissa, left = mantissa // 2, left + 1
    radius = math.floor(((1 << _INPUT_BITS) - 1) * 2.0 ** (31 - _INPUT_BITS) / 2.0**left)
    d = np.arange(-255, 1, dtype=np.int64)
    counted = d >= -radius
    return saturating_rounding_doubling_high_mul(np.where(counted, d, 0) << left, mantissa), counted


def multiplier_16bit(beta: float, input_scale: float) -> Multiplier:
    """What scales int16 differences so that -65535 is -10. ValueError if it is too large for a left shift."""
    return quantize_multiplier(float(np.float32(input_scale) * np.float32(beta)) / (10.0 / 65535.0))


def exp_table_16bit() -> np.ndarray:
    """exp on [-10, 0], 513 entries in Q0.15."""
    return table_16bit(np.exp, 10.0 / 65535, 32767, 2.0 / 65535, 0)


def reciprocal_table_16bit() -> np.ndarray:
    """1 / (1 + x) on [0, 1], 513 entries in Q0.15."""
    return table_16bit(lambda x: 1.0 / (1.0 + x), 1.0 / 65535, -32768, 2.0 / 65535, 0)
