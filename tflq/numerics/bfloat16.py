"""bfloat16 as numpy has it not: bits in uint16, values in float32. It is the upper half of a float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["bfloat16_bits", "bfloat16_values"]

_TIE = np.uint32(0x8000)


def bfloat16_bits(values: npt.ArrayLike) -> np.ndarray:
    """The bits, uint16, of the nearest bfloat16, ties to even, of real numbers given in float64 or less."""
    real = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        single = real.astype(np.float32)
    bits = single.view(np.uint32)
    rest, odd = bits & np.uint32(0xFFFF), (bits >> np.uint32(16)) & np.uint32(1)
    rounded = np.abs(single.astype(np.float64))
    above, even = np.abs(real) > rounded, np.abs(real) == rounded
    up = (rest > _TIE) | ((rest == _TIE) & (above | (even & (odd == 1))))
    upper = (bits >> np.uint32(16)) + up
    return np.where(np.isnan(real), np.uint32(0x7FC0), upper).astype(np.uint16)


def bfloat16_values(bits: np.ndarray) -> np.ndarray:
    """The values, float32, of bits in uint16."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
