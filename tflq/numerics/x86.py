"""What x86-64 makes of what C++ leaves undefined, where compiled kernels come to it.

    shift of an int32 to the left by n    n modulo 32
    RoundingDivideByPOT by 2^n,           shifts by n modulo 32; the mask of the remainder has n modulo 64 bits, so that
        n < 0 or n > 31                   from 32 to 63 all of x is remainder, which adds one from 0 up
    a float as int32                      -2^31 where int32 does not hold it, and for what is not a number
    sums and products in int32            the low 32 bits

Measured on the wheels of ai-edge-litert 2.1.6 and 2.3.0 and of tensorflow-cpu 2.20 and 2.21, which agree
(docs/exceptions.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["LANES", "as_int32", "divide_by_pot", "left_shift", "wrapped"]

LANES = 4
"""Elements that a loop over int32 handles at once; what is left over at its end is handled one by one."""


def left_shift(shift: npt.ArrayLike) -> np.ndarray:
    """The bits that an int32 is shifted to the left by, for left shifts; 0 for right ones."""
    return np.maximum(np.asarray(shift, np.int64), 0) & 31


def divide_by_pot(x: np.ndarray, exponent: npt.ArrayLike) -> np.ndarray:
    """RoundingDivideByPOT of integers within int32 by any exponent, element by element; the dtype stays. From 0 to 31:
    round(x / 2^exponent), half away from zero."""
    wide, e = x.astype(np.int64), np.asarray(exponent, np.int64) & 63
    bits = e & 31
    half = np.where(bits > 0, np.int64(1) << np.maximum(bits - 1, 0), 0)
    rounded = (wide + half - ((wide < 0) & (bits > 0))) >> bits
    return np.where(e & 32, (wide >> bits) + (wide >= 0), rounded).astype(x.dtype)


def as_int32(x: npt.ArrayLike) -> np.ndarray:
    """Floats cast to int32, as int64."""
    values = np.asarray(x, np.float64)
    held = (values > -(2.0**31) - 1) & (values < 2.0**31)
    return np.where(held, np.trunc(np.where(held, values, 0)), -(2.0**31)).astype(np.int64)


def wrapped(x: npt.ArrayLike) -> np.ndarray:
    """The low 32 bits of int64s, signed, as int64."""
    return np.asarray(x, np.int64).astype(np.int32).astype(np.int64)
