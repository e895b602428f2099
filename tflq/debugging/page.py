"""The page of a debugging: the errors of all operators, and ranges and histograms of the worst."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

import tflq
from tflq.debugging.outcome import Debugging, DebugRow, decibels, shortened
from tflq.numerics.ranges import edges
from tflq.pages.layers import render

WORST: Final = 20
"""Rows with a histogram."""
BARS: Final = 64
MARGIN: Final = 0.04
"""Of the width, at either side of all numbers."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A number on the axis, and where it is, in percent of the width."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Two histograms on one axis, bars in percent of the highest.

    Attributes:
        floats: The float network's numbers.
        quantized: The quantized network's.
        span: Where the range of the quantized type begins and ends, in percent; None for floats.
        marks: The float network's least and largest number, below the axis.
    """

    floats: Sequence[float]
    quantized: Sequence[float]
    span: tuple[float, float] | None
    marks: Sequence[Mark]


@dataclass(frozen=True, slots=True)
class Shown:
    """A row, its texts, and its histograms if it is one of the worst."""

    row: DebugRow
    name: str
    own: str
    step: str
    cosine: str
    reached: str
    clipped: str
    unused: str
    share: str
    holds: str
    picture: Picture | None


def debug_page(result: Debugging) -> str:
    """The page, as HTML. TflqError without jinja2."""
    rows = [_shown(row, place < WORST) for place, row in enumerate(result.rows)]
    return render(
        "debug.html",
        result=result,
        rows=rows,
        bars=BARS,
        outputs=None if result.decibels is None else decibels(result.decibels),
        advice=[(each, shortened(each.tensor)) for each in result.advice],
        version=tflq.__version__,
    )


def _shown(row: DebugRow, worst: bool) -> Shown:
    own, step = row.own, None if row.own is None else row.own.rmse_per_scale
    return Shown(
        row,
        shortened(row.tensor),
        row.why if own is None else decibels(own.snr_db),
        "–" if step is None else f"{step:.3g}",
        "–" if own is None else f"{own.cosine:.6f}",
        decibels(row.reached.snr_db),
        f"{row.clipped:.2%}" if row.range else "–",
        "–" if row.bits_unused is None else f"{row.bits_unused:.1f}",
        "–" if row.share is None else f"{row.share:.1%}",
        "" if row.range is None else "{:.4g} to {:.4g}".format(*row.range),
        picture(row) if worst else None,
    )


def picture(row: DebugRow) -> Picture | None:
    """The histograms of a row; None if it has no finite numbers."""
    if row.float_range is None:
        return None
    ends = [*row.float_range, *chain.from_iterable(map(_ends, row.histograms)), *(row.range or ())]
    low, high = min(ends), max(ends)
    margin = (high - low) * MARGIN or max(abs(low), 1.0) * MARGIN
    low, high = low - margin, high + margin

    def at(number: float) -> float:
        return round(100 * (number - low) / (high - low), 2)

    floats, quantized = (_bars(histogram, low, high) for histogram in row.histograms)
    highest = max(*floats, *quantized) or 1.0
    heights = [[round(100 * math.sqrt(bar / highest), 1) for bar in bars] for bars in (floats, quantized)]
    first, last = row.float_range
    marks = [Mark(at(number), f"{number:.4g}") for number in dict.fromkeys((first, last))]
    span = None if row.range is None else (at(row.range[0]), at(row.range[1]))
    return Picture(heights[0], heights[1], span, marks)


def _ends(histogram: Mapping[int, int]) -> tuple[float, float]:
    low, high = edges(np.fromiter(histogram, np.int64))
    return float(low.min()), float(high.max())


def _bars(histogram: Mapping[int, int], low: float, high: float) -> list[float]:
    """A histogram in equal bins from one number to another: each of its bins is spread evenly over what it covers."""
    starts, stops = edges(np.fromiter(histogram, np.int64))
    counts = np.fromiter(histogram.values(), np.float64)
    order = np.argsort(starts)
    cumulated = np.concatenate([[0.0], np.cumsum(counts[order])])
    places = np.column_stack([starts[order], np.maximum(stops[order], np.nextafter(starts[order], np.inf))]).reshape(-1)
    levels = np.column_stack([cumulated[:-1], cumulated[1:]]).reshape(-1)
    bounds = np.linspace(low, high, BARS + 1)
    return [float(bar) for bar in np.diff(np.interp(bounds, places, levels))]
