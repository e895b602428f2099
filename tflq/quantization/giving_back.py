"""Operators are given back to float, worst first, until the outputs are as near as they are to be.

First each operator is tried alone: how near are the outputs with just this one in float? In that order, the most gain
first, they are given back, and the outputs measured after each; one that gains nothing then is taken again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tflq.errors import OptionError, Reason
from tflq.quantization.recipe import FLOAT, Rule
from tflq.quantization.report import QuantizedRow

CALIBRATED: Final = 3 / 4
"""The share of samples that ranges are taken from, where the others are to judge; the first ones."""

MOST: Final = 100
"""Samples that outputs are measured on, at most."""


@dataclass(frozen=True, slots=True)
class Step:
    """An operator that was tried in float.

    Attributes:
        operator: Its kernel, or the operator.
        tensor: The name of its result.
        gain: By how much the outputs came nearer.
        value: How near they were then.
        kept: Whether it stays float.
    """

    operator: str
    tensor: str
    gain: float
    value: float
    kept: bool


@dataclass(frozen=True, slots=True)
class Search:
    """How operators were given back to float.

    Attributes:
        metric: What was measured: "decibels", or the function's name.
        least: How near the outputs were to be.
        calibrated: Samples that ranges were taken from.
        judged: Samples that the outputs were measured on, of which no range was taken.
        before: How near they were with all operators quantized.
        after: How near they are.
        alone: Each operator in float, the others quantized; worst first.
        steps: Operators given back, in order.
    """

    metric: str
    least: float
    calibrated: int
    judged: int
    before: float
    after: float
    alone: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()

    def lines(self) -> list[str]:
        """What was tried, for people."""
        unit = " dB" if self.metric == "decibels" else ""
        on = f"on {self.judged} samples not calibrated with" + (f" ({self.calibrated} were)" if self.calibrated else "")
        lines = [f"{self.metric} {self.before:.2f} → {self.after:.2f}, at least {self.least:g}, {on}"]
        for step in self.steps:
            what = "back to float" if step.kept else "gains nothing, stays quantized"
            lines.append(f"{step.operator} '{step.tensor}': {step.gain:+.2f}{unit}, {what}: {step.value:.2f}{unit}")
        return lines


Measure = Callable[[Sequence[Rule]], float]
"""How near the outputs are of a network with further rules."""


def give_back(rows: Sequence[QuantizedRow], measure: Measure, least: float, found: dict[str, Any]) -> Search:
    """Finds the operators that have to stay float. rows: of the network with no operator given back. found: the other
    attributes of the result. OptionError if it is not reached."""
    before = measure(())
    search = Search(least=least, before=before, after=before, **found)
    if before >= least:
        return search
    candidates = [row for row in rows if row.quantized and row.tensor]
    alone = sorted(
        (_step(row, measure((_of_name(row.tensor),)), before) for row in candidates), key=lambda step: -step.value
    )
    steps: list[Step] = []
    rules: tuple[Rule, ...] = ()
    value = before
    for step in alone:
        more = (*rules, _of_name(step.tensor))
        now = measure(more)
        better = now > value
        steps.append(Step(step.operator, step.tensor, now - value, now, better))
        if better:
            rules, value = more, now
        if value >= least:
            return Search(least=least, before=before, after=value, alone=tuple(alone), steps=tuple(steps), **found)
    what = f"the outputs do not come nearer than {value:.2f}, and {least:g} is asked for"
    raise OptionError(Reason(what, value=least, remedy="ask for less, or take a scheme of more bits"))


def rules_of(search: Search) -> tuple[Rule, ...]:
    """The rules that keep what was found as floats."""
    return tuple(_of_name(step.tensor) for step in search.steps if step.kept)


def _step(row: QuantizedRow, value: float, before: float) -> Step:
    return Step(row.operator, row.tensor, value - before, value, kept=False)


def _of_name(tensor: str) -> Rule:
    """The rule that keeps the operator float that makes a tensor."""
    return Rule(name=f"re:{re.escape(tensor)}", what=(("scheme", FLOAT),))
