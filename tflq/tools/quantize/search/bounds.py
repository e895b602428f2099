"""Bounds of a quantized network, and what was measured of one: fidelity of the outputs, size, time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tflq.base.arguments import check_number
from tflq.base.errors import OptionError, Reason
from tflq.tools.verify.metrics import LEAST_IS_BEST
from tflq.tools.verify.metrics import shown as metric_text

DECIBELS: Final = "decibels"


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a network.

    Attributes:
        decibels: The signal-to-noise ratio of its outputs.
        value: Of the metric that decides, the ratio without one; more is nearer.
        bytes: Of the file.
        milliseconds: Of a run; 0 where it is not measured.
    """

    decibels: float
    value: float
    bytes: int
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits that a network keeps within; None: there is no such limit.

    Attributes:
        decibels: The least signal-to-noise ratio.
        value: The least value of the metric.
        bytes: The most bytes of the file.
        milliseconds: The longest time of a run.
        metric: The name of the metric.
        drop: By how much the metric may be less than the float network's.
    """

    decibels: float | None = None
    value: float | None = None
    bytes: int | None = None
    milliseconds: float | None = None
    metric: str = DECIBELS
    drop: float | None = None

    def below(self, value: float) -> Bounds:
        """The bounds where the float network's metric has a value. OptionError for a drop from one that is infinite."""
        if self.drop is not None and math.isinf(value):
            what = f"{self.metric} of the float network itself is {value:g}, and no network is less by max_drop"
            raise OptionError(Reason(what, value=value, remedy="give --min-snr, the least that it may return"))
        least = -math.inf if self.value is None else self.value
        return self if self.drop is None else replace(self, value=max(least, value - self.drop), drop=None)

    def check(self) -> None:
        """OptionError for numbers that no network can have, or that are no bound."""
        check_number("max_bytes", self.bytes, 1, optional=True)
        check_number("max_time", self.milliseconds, 0, optional=True)
        if self.milliseconds == 0:
            raise OptionError(Reason("max_time=0 makes no sense", value=0, remedy="give more than 0"))
        pairs = [("max_bytes", self.bytes), ("max_time", self.milliseconds), ("max_drop", self.drop)]
        pairs.append(("min_snr", self.value if self.decibels is None else self.decibels))
        for name, bound in pairs:
            if bound is not None and math.isinf(bound):
                raise OptionError(Reason(f"{name}={bound:g} makes no sense", value=bound, remedy="leave it out"))

    def __bool__(self) -> bool:
        return any(bound is not None for bound in (self.decibels, self.value, self.bytes, self.milliseconds, self.drop))

    @property
    def of_fidelity(self) -> bool:
        """Whether outputs have to be near."""
        return self.decibels is not None or self.value is not None

    def near_enough(self, figures: Figures) -> bool:
        """Whether the outputs are as near as they have to be."""
        least = -math.inf
        return figures.decibels >= _or(self.decibels, least) and figures.value >= _or(self.value, least)

    def excess(self, figures: Figures) -> float:
        """By how much size and time are over their bounds, as a share of these; 0 within them."""
        over = figures.bytes / _or(self.bytes, math.inf), figures.milliseconds / _or(self.milliseconds, math.inf)
        return sum(max(each - 1, 0.0) for each in over)

    def hold(self, figures: Figures) -> bool:
        """Whether a network is within all bounds."""
        return self.near_enough(figures) and not self.excess(figures)

    def gain(self, before: Figures, after: Figures) -> float:
        """Decibels that a network gains on another, those beyond what is needed not counted."""
        most = _or(self.decibels if self.value is None else None, FLOAT)
        low, high = (max(min(each.decibels, most), -FLOAT) for each in (before, after))
        return high - low

    def growth(self, before: Figures, after: Figures) -> float:
        """By how much a network is larger and slower than another: as shares of the bounds, so that what is far within
        them counts for little. Where outputs only have to be near enough, bytes count as a share of the other's."""
        most = before.bytes if self.of_fidelity else _or(self.bytes, math.inf)
        slower = after.milliseconds - before.milliseconds
        return (after.bytes - before.bytes) / most + slower / _or(self.milliseconds, math.inf)

    def texts(self) -> list[str]:
        """The bounds, as text."""
        pairs = [
            ("at least", self.decibels, " dB"),
            ("at most", self.bytes, " bytes"),
            ("at most", self.milliseconds, " ms"),
        ]
        texts = [f"{what} {bound:g}{unit}" for what, bound, unit in pairs if bound is not None]
        which = "at most" if self.metric in LEAST_IS_BEST else "at least"
        metric = [] if self.value is None else [f"{self.metric} {which} {value_text(self.metric, self.value)}"]
        return [*metric, *texts]


FLOAT: Final = 200.0
"""Decibels from which outputs count as equal."""


def _or(bound: float | None, other: float) -> float:
    return other if bound is None else bound


def value_text(metric: str, value: float) -> str:
    """A metric's value, of which more is nearer, as text."""
    return metric_text(metric, -value if metric in LEAST_IS_BEST else value)


def shown(figures: Figures, metric: str) -> str:
    """Figures as text."""
    parts: Sequence[str] = [
        f"{figures.decibels:.2f} dB",
        *([] if metric == DECIBELS else [f"{metric} {value_text(metric, figures.value)}"]),
        f"{figures.bytes} bytes",
        *([f"{figures.milliseconds:.4g} ms"] if figures.milliseconds else []),
    ]
    return ", ".join(parts)
