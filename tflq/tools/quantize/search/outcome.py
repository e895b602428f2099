"""The outcome of a search: what was changed, the figures before and after, and its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tflq.tools.quantize.search.bounds import Figures, shown


@dataclass(frozen=True, slots=True)
class Step:
    """Operators that were changed.

    Attributes:
        operators: Their number and kind, or the first and the last result of a part.
        scheme: What they became; "as the call says" where they were changed back.
        tensors: The names of their results.
        gain: Decibels that the outputs gained.
        figures: Of the network then.
    """

    operators: str
    scheme: str
    tensors: tuple[str, ...]
    gain: float
    figures: Figures


BACK: Final = "as the call says"


@dataclass(frozen=True, slots=True)
class Search:
    """A search for a network within bounds.

    Attributes:
        metric: What decides besides size and time: "decibels", or a metric's name.
        bounds: The bounds, as text.
        calibrated: Samples that ranges were taken from.
        judged: Samples that the outputs were measured on, of which no range was taken.
        before: The figures with all operators as the call says.
        after: Those of the result.
        trials: Networks that were tried.
        steps: Operators that were changed, in order.
        reached: Whether all bounds hold.
        interrupted: Whether the search was interrupted.
        refused: The figures of the result made of all samples, without its time, if that is not within the bounds: then
            it is the one that was judged, made of the calibrated samples alone. None if it is within.
    """

    metric: str
    bounds: tuple[str, ...]
    calibrated: int
    judged: int
    before: Figures
    after: Figures
    trials: int = 0
    steps: tuple[Step, ...] = ()
    reached: bool = True
    interrupted: bool = False
    refused: Figures | None = None

    def lines(self) -> list[str]:
        """The steps of the search, as text."""
        on = f"on {self.judged} samples not calibrated with" + (f" ({self.calibrated} were)" if self.calibrated else "")
        end = f"{'interrupted after ' * self.interrupted}{self.trials} networks tried"
        return [
            f"{', '.join(self.bounds)}, {on}: {end}",
            f"{shown(self.before, self.metric)} with all as the call says",
            *(
                f"{step.operators} {step.scheme}: {step.gain:+.2f} dB, {shown(step.figures, self.metric)}"
                for step in self.steps
            ),
        ]

    def warnings(self) -> list[str]:
        """The warning of a search that did not come to its end, or whose result was made of some samples alone."""
        bounds = ", ".join(self.bounds)
        if not self.reached:
            return [f"the search was interrupted before its bounds held ({bounds}): this is the best so far"]
        if self.refused is None:
            return []
        some = f"of the first {self.calibrated} alone" if self.calibrated else "without weights fitted to them"
        figures = shown(self.refused, self.metric)
        return [f"made of all samples it has {figures}, beyond its bounds ({bounds}): it is made {some}"]
