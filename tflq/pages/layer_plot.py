"""The plot of a layers page: a bar for each operator result, as high as its largest difference, with axes that are
scaled to the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tflq.pages.layers import Row

__all__ = ["Axis", "Plot", "Tick", "axis_for", "plots"]

LABELS: Final = 6  # of an axis, at most
DECADES: Final = 12  # of floats: what is smaller is as low as the plot
LOWEST: Final = 2.0  # percent, of a bar that has a difference


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis, and where it is, in percent of the axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale of logarithms to a base, from one power of it to another."""

    base: int
    low: int
    high: int

    def height(self, value: float) -> float:
        """Where a value is, in percent; what is no number is at the top."""
        at = math.log(value, self.base) if math.isfinite(value) else self.high
        return round(min(max(100 * (at - self.low) / (self.high - self.low), LOWEST), 100.0), 1)

    @property
    def ticks(self) -> list[Tick]:
        """Whole powers above the lowest, the highest among them."""
        step = -(-(self.high - self.low) // LABELS)
        powers = range(self.high, self.low, -step)
        return [Tick(100 * (p - self.low) / (self.high - self.low), _power(self.base, p)) for p in powers]


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars of one unit. heights: of each row in percent, None where it has no difference in this unit. across: labels
    of operators, from left to right.
    """

    title: str
    axis: Axis
    heights: Sequence[float | None]
    across: Sequence[Tick]


def plots(rows: Sequence[Row]) -> list[Plot]:
    """A plot for the integers that differ, and one for the floats; none where all are equal."""
    found = []
    for title, integers in (("in LSB", True), ("in floats", False)):
        own = [_largest(row, integers) for row in rows]
        values = [value for value in own if value is not None]
        if values:
            axis = axis_for(values, integers=integers)
            heights = [None if value is None else axis.height(value) for value in own]
            found.append(Plot(f"Largest difference {title}, layer by layer", axis, heights, _across(rows)))
    return found


def axis_for(values: Sequence[float], *, integers: bool) -> Axis:
    """The axis of some differences, none of which is 0: counts from 1/2 to a power of two, floats between powers of
    ten."""
    finite = [value for value in values if math.isfinite(value)] or [1.0]
    if integers:
        return Axis(2, -1, max(1, math.ceil(math.log2(max(finite)))))
    high = math.ceil(math.log10(max(finite)))
    low = max(math.ceil(math.log10(min(finite))) - 1, high - DECADES)
    return Axis(10, min(low, high - 1), high)


def _largest(row: Row, integers: bool) -> float | None:
    """The largest difference of a row, if it has one in this unit; infinity where there is no number for it."""
    found = row.difference
    if found is None or found.equal or (found.unit == "LSB") != integers:
        return None
    return math.inf if found.problem or not found.largest > 0 else found.largest


def _across(rows: Sequence[Row]) -> list[Tick]:
    """Labels of operators below their bars."""
    step = -(-len(rows) // LABELS)
    return [Tick(100 * (i + 0.5) / len(rows), rows[i].place) for i in range(0, len(rows), step)]


def _power(base: int, power: int) -> str:
    if base == 2:
        return f"{1 << power:,}" if 0 <= power <= 20 else f"2^{power}"
    return f"{10.0**power:g}" if -3 <= power <= 3 else f"1e{power}"
