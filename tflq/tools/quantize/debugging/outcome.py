"""The outcome of debugging: the errors of each operator, advice, and their forms as JSON, CSV and a page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np

from tflq.base.version import __version__
from tflq.numerics.ranges import edges
from tflq.tools.quantize.debugging.pairing import Unpaired
from tflq.tools.verify.metrics import Score

JSON_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class TensorError:
    """Error of numbers q against floats f, over all samples.

    Attributes:
        snr_db: 10 log10(Σf² / Σ(f-q)²); infinite where they are equal.
        cosine: Σfq / sqrt(Σf² Σq²).
        rmse: The root of the mean of (f-q)².
        rmse_per_scale: The same in steps of the quantized type; None for floats.
    """

    snr_db: float
    cosine: float
    rmse: float
    rmse_per_scale: float | None


@dataclass(frozen=True, slots=True)
class DebugRow:
    """The result of an operator of the quantized network.

    Attributes:
        operator: The kernel's name; "input" for an input that is stored integers.
        number: The operator's place in its function; -1 for an input.
        tensor: The result's name in the quantized network.
        partner: The name of the float network's tensor.
        type: The result's type, as text.
        stands_for: How many float operators it stands for; 0 for a cast.
        own: Its own error: against the float operators, with float weights, on the numbers that it got. None if these
            do not run alone.
        reached: The error that has reached it: against the float network's tensor.
        elements: How many were compared.
        clipped: The share of the float operators' results that lie more than half a step beyond what the type can hold.
        bits_unused: log2 of the type's steps over those between the least and the largest result; None for floats.
        share: The share of the outputs' error that it makes, as predicted; None where that is unknown.
        float_range: The least and the largest of the float network's numbers.
        range: What the type can hold, from its least to its largest number; None for floats.
        why: Why the float operators do not run alone; empty if they do.
        histograms: Of the float network's numbers and of the quantized network's, by bin (`numerics.ranges`).
        requantized: Whether an operator reads the result as stored integers: if it had more bits, or were float, a
            QUANTIZE would round it for that one.
    """

    operator: str
    number: int
    tensor: str
    partner: str
    type: str
    stands_for: int
    own: TensorError | None
    reached: TensorError
    elements: int
    clipped: float
    bits_unused: float | None
    share: float | None
    float_range: tuple[float, float] | None
    range: tuple[float, float] | None
    why: str = ""
    histograms: tuple[Mapping[int, int], Mapping[int, int]] = field(default=({}, {}), repr=False)
    requantized: bool = False

    @property
    def badness(self) -> float:
        """Noise-to-signal ratio in decibels; rows are sorted by it, the worst first."""
        return -math.inf if self.own is None else -self.own.snr_db

    def to_json(self) -> dict[str, Any]:
        """A row of what `tflq debug --json` prints: docs/json.md."""
        return {key: value for key, value in asdict(self).items() if key != "histograms"}


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for an operator.

    Attributes:
        operator: The kernel's name.
        tensor: The float network's name of its result: what `--keep-float` takes.
        action: "float", or "16 bits": where nearly all of its error is the rounding of its result.
        gain_db: By how much the outputs' signal-to-noise ratio rises, as predicted, if nothing else is changed.
    """

    operator: str
    tensor: str
    action: str
    gain_db: float


@dataclass(frozen=True)
class Debugging:
    """Differences of a quantized network from its float original.

    Attributes:
        floats: The path of the float network.
        quantized: The path of the quantized one.
        samples: How many samples ran.
        decibels: The signal-to-noise ratio of the outputs; None if none of them is real.
        rows: The results of the quantized network's operators, the worst own error first.
        advice: What to do, the largest gain first.
        only_float: Results of float operators that have no partner.
        only_quantized: Results of the quantized network's operators that have none.
        left_out: How many elements were compared with nothing, since one of the two is NaN or infinite.
        scores: Metrics of the outputs, of both networks.
    """

    floats: str
    quantized: str
    samples: int
    decibels: float | None
    rows: tuple[DebugRow, ...]
    advice: tuple[Advice, ...]
    only_float: tuple[Unpaired, ...]
    only_quantized: tuple[Unpaired, ...]
    left_out: int = 0
    scores: tuple[Score, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Output of `tflq debug --json`: docs/json.md."""
        return {
            "format": "tflq.debugging",
            "version": JSON_VERSION,
            "float": self.floats,
            "quantized": self.quantized,
            "samples": self.samples,
            "decibels": self.decibels,
            "rows": [row.to_json() for row in self.rows],
            "advice": [asdict(each) for each in self.advice],
            "only_float": [asdict(each) for each in self.only_float],
            "only_quantized": [asdict(each) for each in self.only_quantized],
            "left_out": self.left_out,
            "scores": [each.to_json() for each in self.scores],
        }

    def to_csv(self) -> str:
        """The rows as CSV, with a header."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        errors = [f"{side}_{name}" for side in ("own", "reached") for name in TensorError.__slots__]
        plain = [name for name in DebugRow.__slots__ if name not in _NESTED]
        writer.writerow([*plain, *errors, "float_least", "float_largest", "least", "largest"])
        for row in self.rows:
            values: list[Any] = [getattr(row, name) for name in plain]
            for error in (row.own, row.reached):
                values += [None if error is None else getattr(error, name) for name in TensorError.__slots__]
            for ends in (row.float_range, row.range):
                values += ends or (None, None)
            writer.writerow(values)
        return stream.getvalue()


_NESTED: Final = ("own", "reached", "float_range", "range", "histograms")


def decibels(ratio: float) -> str:
    """A signal-to-noise ratio for people."""
    return "equal" if ratio == math.inf else "nothing left" if ratio == -math.inf else f"{ratio:.1f} dB"


def shortened(name: str) -> str:
    """A name that a converter has made of many, by its last part: a pattern, as `--keep-float` takes it."""
    parts = name.split(";")
    return name if len(parts) == 1 else f"*;{parts[-1]}"


# The page: the errors of all operators, and ranges and histograms of the worst.


WORST: Final = 20
"""Rows with a histogram."""
BARS: Final = 64
MARGIN: Final = 0.04
"""Of the width, at either side of all numbers."""


def debug_page(result: Debugging) -> str:
    """The page, as HTML. TflqError without jinja2."""
    from tflq.tools.pages import render

    rows = [_shown(row, place < WORST) for place, row in enumerate(result.rows)]
    return render(
        "debug.html",
        result=result,
        rows=rows,
        bars=BARS,
        outputs=None if result.decibels is None else decibels(result.decibels),
        advice=[(each, shortened(each.tensor)) for each in result.advice],
        version=__version__,
    )


def _shown(row: DebugRow, worst: bool) -> dict[str, Any]:
    """Fields of a row for the template: its texts, and its histograms if it is one of the worst."""
    holds = "" if row.range is None else "{:.4g} to {:.4g}".format(*row.range)
    return {"row": row, **texts(row, "–"), "holds": holds, "picture": picture(row) if worst else None}


def texts(row: DebugRow, nothing: str) -> dict[str, str]:
    """The numbers of a row for people. nothing: what stands for one that is not there."""
    error, step = row.own, None if row.own is None else row.own.rmse_per_scale
    return {
        "name": shortened(row.tensor),
        "own": row.why if error is None else decibels(error.snr_db),
        "step": nothing if step is None else f"{step:.3g}",
        "cosine": nothing if error is None else f"{error.cosine:.6f}",
        "reached": decibels(row.reached.snr_db),
        "clipped": f"{row.clipped:.2%}" if row.range else nothing,
        "unused": nothing if row.bits_unused is None else f"{row.bits_unused:.1f}",
        "share": nothing if row.share is None else f"{row.share:.1%}",
    }


def picture(row: DebugRow) -> dict[str, Any] | None:
    """The histograms of a row on one axis; None if it has no finite numbers.

    Bars of both networks' numbers, in percent of the highest. In percent of the width, where the range of the quantized
    type begins and ends, None for floats. The places and texts of the float network's least and largest number, below
    the axis.
    """
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
    marks = [(at(number), f"{number:.4g}") for number in dict.fromkeys(row.float_range)]
    span = None if row.range is None else [at(number) for number in row.range]
    return {"floats": heights[0], "quantized": heights[1], "span": span, "marks": marks}


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
