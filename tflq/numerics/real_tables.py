"""Tables of real functions of two 8-bit values, for operators that no kernel computes on them.

    clamp(round_half_away(f(scale_1 * (q_1 - zero_1), scale_2 * (q_2 - zero_2)) / scale) + zero)

The operands are rounded to float32, as DEQUANTIZE does. Where f has no value, the zero point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["REAL_FUNCTIONS_OF_TWO", "Stored", "real_table_of_two"]

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
    x, y = _values(first)[:, None], _values(second)[None]
    with np.errstate(all="ignore"):
        real = np.nan_to_num(function(x, y) / result.scale, nan=0.0, posinf=np.inf, neginf=-np.inf)
    bounded = np.clip(real, -(2.0**32), 2.0**32)
    rounded = np.sign(bounded) * np.floor(np.abs(bounded) + 0.5)
    info = np.iinfo(result.dtype)
    return np.clip(rounded + result.zero_point, info.min, info.max).astype(result.dtype)


def _values(stored: Stored) -> np.ndarray:
    info = np.iinfo(stored.dtype)
    whole = (np.arange(info.min, info.max + 1) - stored.zero_point).astype(np.float32)
    return (np.float32(stored.scale) * whole).astype(np.float64)
