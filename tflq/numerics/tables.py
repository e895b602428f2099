"""Lookup tables of unary functions, filled as the kernels fill them: in float32, with the C library's functions.

    8-bit    table[q] = clamp(int32(round_half_away(f(scale_in * (q - zero_in)) * (1 / scale_out)) + zero_out))

The conversion to int32 gives the smallest integer for NaN and for what int32 does not hold, as x86 does. Where the C library
is accurate to half a unit in the last place (exp, expm1, log), so is a double rounded to float32.
Source: kernels/internal/common.h (LUTPopulateInt8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

__all__ = ["FloatFunction", "logistic", "table_8bit", "tanh"]

FloatFunction: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""A function of a float32 array, in float32."""


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) of a float32 array, each step in float32."""
    one = np.float32(1)
    with np.errstate(over="ignore"):
        return one / (one + np.exp(-x.astype(np.float64)).astype(np.float32))


def tanh(x: np.ndarray) -> np.ndarray:
    """tanh of a float32 array."""
    return np.tanh(x.astype(np.float64)).astype(np.float32)


def table_8bit(
    function: FloatFunction, dtype: np.dtype, input_scale: float, input_zp: int, output_scale: float, output_zp: int
) -> np.ndarray:
    """The table of an 8-bit `dtype`, entry of the smallest value first."""
    info = np.iinfo(dtype)
    inverse = np.float32(1) / np.float32(output_scale)
    with np.errstate(all="ignore"):
        x = np.float32(input_scale) * (np.arange(info.min, info.max + 1) - input_zp).astype(np.float32)
        rescaled = _round(function(x) * inverse) + np.float32(output_zp)
    return np.clip(_to_int32(rescaled), info.min, info.max).astype(dtype)


def _round(x: np.ndarray) -> np.ndarray:
    """round() of a float32 array: half away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _to_int32(x: np.ndarray) -> np.ndarray:
    """Truncation to int32; the smallest one for what does not fit."""
    fits = np.abs(x) < 2.0**31
    return np.where(fits, np.trunc(np.where(fits, x, 0)), -(2.0**31)).astype(np.int32)
