"""Floats rounded to whole ones, and what else is exact of one float."""

from __future__ import annotations

from tflq.dialects.core_floats import OfFloat

__all__ = ["AbsF", "Ceil", "Floor", "Round", "RoundEven", "Trunc"]


class AbsF(OfFloat, name="math.absf"):
    """|input|"""

    __slots__ = ()


class Ceil(OfFloat, name="math.ceil"):
    """rounded up"""

    __slots__ = ()


class Floor(OfFloat, name="math.floor"):
    """rounded down"""

    __slots__ = ()


class Round(OfFloat, name="math.round"):
    """rounded to the nearest, halves away from zero"""

    __slots__ = ()


class RoundEven(OfFloat, name="math.roundeven"):
    """rounded to the nearest, halves to even"""

    __slots__ = ()


class Trunc(OfFloat, name="math.trunc"):
    """rounded toward zero"""

    __slots__ = ()
