"""How much two results differ: counts of the stored integers (LSB), or the absolute difference of floats."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["Difference", "difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two results. `largest` is in `unit`; `problem` says why they cannot be compared, if so.

    `largest` is infinite where only one of two floats is finite.
    """

    elements: int
    differing: int
    largest: float
    unit: str  # "LSB" or "absolute"
    problem: str = ""

    @property
    def equal(self) -> bool:
        return not self.differing and not self.problem

    @property
    def share(self) -> float:
        """Share of the elements that differ."""
        return self.differing / self.elements if self.elements else 0.0

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        if self.equal:
            return f"equal, {self.elements} elements"
        size = f"{self.largest:g} LSB" if self.unit == "LSB" else f"{self.largest:.3g}"
        return f"up to {size}, {self.differing} of {self.elements} elements ({self.share:.2%})"

    def to_json(self) -> dict[str, Any]:
        largest = self.largest if math.isfinite(self.largest) else None
        return asdict(self) | {"largest": largest, "equal": self.equal, "share": self.share}

    def __add__(self, other: Difference) -> Difference:
        """Both together: elements add up, the larger difference counts."""
        largest = max(self.largest, other.largest) if not (self.problem or other.problem) else math.nan
        counts = self.elements + other.elements, self.differing + other.differing
        return Difference(*counts, largest, self.unit, self.problem or other.problem)


def difference(got: np.ndarray, want: np.ndarray) -> Difference:
    """Difference of `got` from `want`. NaN equals NaN; arrays of other shape or dtype do not compare."""
    unit = "absolute" if want.dtype.kind in "fc" else "LSB"
    if got.shape != want.shape:
        return Difference(want.size, want.size, float("nan"), unit, f"shape {got.shape} instead of {want.shape}")
    if got.dtype != want.dtype and not (got.dtype.kind == want.dtype.kind == "S"):
        return Difference(want.size, want.size, float("nan"), unit, f"{got.dtype} instead of {want.dtype}")
    same = got == want
    if unit == "absolute":
        same |= np.isnan(got) & np.isnan(want)
    differing = int(want.size - np.count_nonzero(same))
    return Difference(want.size, differing, _largest(got, want, same) if differing else 0.0, unit)


def _largest(got: np.ndarray, want: np.ndarray, same: np.ndarray) -> float:
    a, b = got[~same], want[~same]
    if want.dtype.kind == "S":
        return 1.0
    if want.dtype.kind in "biu":
        integers = np.int64 if want.dtype.itemsize < 8 else np.float64
        return float(np.abs(a.astype(integers) - b.astype(integers)).max())
    floats = np.complex128 if want.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        gap = np.abs(a.astype(floats) - b.astype(floats))
    return float(np.where(np.isnan(gap), np.inf, gap).max())
