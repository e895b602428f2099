"""Ways of rounding to an integer, and RESCALE with each of them.

    half_away     to nearest, halves away from zero      half_up       to nearest, halves up
    half_even     to nearest, halves to even             toward_zero   the integer part

A rounding is floor, and 1 where these say so of the half bit h, the bits below it (sticky) and the sign:

    half_up  h      half_away  h and (sticky or not negative)      half_even  h and (sticky or odd)
    toward_zero  negative and (h or sticky)

The product of RESCALE, v * multiplier, has up to 63 bits; here it is in five limbs of 15 bits, the last one signed, so
that int32 holds every step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["LIMB", "ROUNDINGS", "Rounding", "half_away", "limbs", "rescale_rounded", "round_float", "saturated"]

Rounding: TypeAlias = Literal["half_away", "half_up", "half_even", "toward_zero"]
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)

LIMB = 15
"""Bits of a limb."""


def limbs(multiplier: npt.ArrayLike) -> list[np.ndarray]:
    """Three limbs of int32s, the lowest first; the last one is signed."""
    m = np.asarray(multiplier, np.int64)
    mask = (1 << LIMB) - 1
    return [m & mask, m >> LIMB & mask, m >> 2 * LIMB]


def rescale_rounded(x: np.ndarray, multiplier: npt.ArrayLike, shift: npt.ArrayLike, rounding: Rounding) -> np.ndarray:
    """int64 x * multiplier / 2^shift of int32 values and multipliers (or 48-bit ones and 16-bit multipliers), rounded
    once; shift from 1 to 62."""
    s = np.asarray(shift, np.int64)
    product = x.astype(np.int64) * np.asarray(multiplier, np.int64)
    whole = product >> s
    half = product >> (s - 1) & 1
    sticky = (product & ((np.int64(1) << (s - 1)) - 1)) != 0
    negative = product < 0
    up = {
        "half_up": half,
        "half_away": half & (sticky | ~negative),
        "half_even": half & (sticky | (whole & 1)),
        "toward_zero": negative & (half | sticky),
    }[rounding]
    return whole + up


def round_float(x: np.ndarray, rounding: Rounding) -> np.ndarray:
    """Floats rounded to whole ones, in their precision."""
    if rounding == "toward_zero":
        return np.trunc(x)
    if rounding == "half_away":
        return half_away(x)
    even = np.rint(x)
    if rounding == "half_even":
        return even
    with np.errstate(invalid="ignore"):
        up = x - even == 0.5  # the difference is exact
    return even + np.where(up, x.dtype.type(1), 0)


def half_away(x: np.ndarray) -> np.ndarray:
    """Floats rounded to nearest, half away from zero, in their precision. Zeros keep their sign."""
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def saturated(x: npt.ArrayLike, low: int, high: int) -> np.ndarray:
    """Floats without their fractions, within bounds of up to 64 bits: int64, or uint64 if `high` is beyond that. NaN
    is 0."""
    whole = np.trunc(np.asarray(x, np.float64))
    wide: type[np.int64 | np.uint64] = np.int64 if high < 1 << 63 else np.uint64
    above = whole >= float(high + 1)
    kept = np.where((whole >= low) & ~above, whole, 0).astype(wide)
    return np.where(above, wide(high), np.where(whole < low, wide(low), kept))
