"""Tables of real functions of one stored value, or of two of 8 bits, for operators that no kernel computes on them.

    clamp(round_half_away(f(scale_1 * (q - zero_1)) / scale) + zero)

    clamp(round_half_away(f(scale_1 * (q_1 - zero_1), scale_2 * (q_2 - zero_2)) / scale) + zero)

The operands are rounded to float32, as DEQUANTIZE does. Where f has no value, the zero point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tflq.numerics.tables import FloatFunction

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["REAL_FUNCTIONS_OF_TWO", "RealFunction", "Stored", "real_table", "real_table_of_two"]

RealFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]

REAL_FUNCTIONS_OF_TWO: dict[str, RealFunction] = {
    "ATAN2": np.arctan2,
    "POW": np.power,
    "SQUARED_DIFFERENCE": lambda x, y: np.square(x - y),
}
"""By TFLite's name, in double."""


class Stored(NamedTuple):
    """How real numbers are stored in 8 bits."""

    dtype: np.dtype
    scale: float
    zero_point: int


def real_table_of_two(function: RealFunction, first: Stored, second: Stored, result: Stored) -> np.ndarray:
    """[256, 256]: the stored result of every pair of stored values, smallest first."""
    x, y = _values(*first)[:, None], _values(*second)[None]
    with np.errstate(all="ignore"):
        return _stored(function(x, y) / result.scale, result.zero_point, result.dtype)


def real_table(
    function: FloatFunction,
    dtype: np.dtype,
    input_scale: npt.ArrayLike,
    input_zp: npt.ArrayLike,
    output_scale: npt.ArrayLike,
    output_zp: npt.ArrayLike,
    result: np.dtype | None = None,
) -> np.ndarray:
    """The stored result, of the operand's dtype or another, of every value of an integer type, smallest first. Arrays
    of parameters, their last dim 1, give a table for each set."""
    with np.errstate(all="ignore"):
        y = function(_values(dtype, input_scale, input_zp)) / np.asarray(output_scale, np.float64)
    return _stored(y, output_zp, dtype if result is None else result)


def _values(dtype: np.dtype, scale: npt.ArrayLike, zero_point: npt.ArrayLike) -> np.ndarray:
    """What every value of an integer type stands for, in double."""
    info = np.iinfo(dtype)
    whole = (np.arange(info.min, info.max + 1) - np.asarray(zero_point)).astype(np.float32)
    return (np.asarray(scale, np.float32) * whole).astype(np.float64)


def _stored(counts: np.ndarray, zero_point: npt.ArrayLike, dtype: np.dtype) -> np.ndarray:
    """Real counts rounded, plus the zero point, clamped."""
    bounded = np.clip(np.nan_to_num(counts, nan=0.0, posinf=np.inf, neginf=-np.inf), -(2.0**32), 2.0**32)
    rounded = np.sign(bounded) * np.floor(np.abs(bounded) + 0.5)
    info = np.iinfo(dtype)
    return np.clip(rounded + np.asarray(zero_point), info.min, info.max).astype(dtype)
