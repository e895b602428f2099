"""The layers page of a comparison: every operator result of the original in order, how far the other model's is from
it, and what the operator is, in the original's parameters and in the formulas of the integer form.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import tflq
from tflq.errors import TflqError
from tflq.formats import is_tosa, read
from tflq.ir.core import Module, Op
from tflq.ir.short_text import shape_text
from tflq.pages.formulas import formula, parameters, real_multipliers
from tflq.pages.render import render
from tflq.pipelines import integer_form

if TYPE_CHECKING:
    from tflq.verification import Difference, Verification

__all__ = ["Row", "layers_page", "rows_of"]

Formulas: TypeAlias = Mapping[tuple[int, int], list[str]]
"""What each operator computes in the integer form, by function and number."""

LINES = 60
"""Formulas of an operator that are shown."""


@dataclass(frozen=True, slots=True)
class Row:
    """One operator result. difference: None if it was not compared. first: the first that differs in its entry."""

    entry: str
    operator: int
    opcode: str
    tensor: str
    type: str
    difference: Difference | None
    first: bool
    parameters: list[tuple[str, str]]
    formulas: list[str]
    more: int  # formulas that are not shown
    multipliers: str

    @property
    def status(self) -> str:
        if self.difference is None:
            return "not compared"
        if self.difference.equal:
            return "equal"
        return "accepted" if self.difference.accepted else "differs"

    @property
    def short(self) -> str:
        """The tensor's name without those of what was fused into its operator."""
        first, _, rest = self.tensor.partition(";")
        return f"{first}; …" if rest else first

    @property
    def height(self) -> float:
        """Of its bar in the plot, 0 to 100: the largest difference, on a scale of logarithms from 1 to 65536 counts; a
        float's, from 1e-9 to 1."""
        found = self.difference
        if found is None or found.equal:
            return 0.0
        if found.problem or not math.isfinite(found.largest):
            return 100.0
        part = math.log2(max(found.largest, 1)) / 16 if found.unit == "LSB" else 1 + math.log10(found.largest) / 9
        return 100 * min(max(part, 0.04), 1.0)


def layers_page(model: str | os.PathLike[str], result: Verification) -> str:
    """The page, as HTML, of a verification with layers whose original is `model`."""
    formulas, problem = _formulas(read(model))
    rows = rows_of(read(model), result, formulas)
    return render("layers.html", result=result, rows=rows, problem=problem, version=tflq.__version__)


def rows_of(module: Module, result: Verification, formulas: Formulas) -> list[Row]:
    """A row for each operator result of the original's entries that were run."""
    entries = list(dict.fromkeys(run.entry for run in result.runs))
    found: dict[tuple[str, int, str], Difference] = {}
    for each in (*(result.layers.every if result.layers else ()), *result.expected):
        key = each.entry, each.operator, each.tensor
        found[key] = found[key] + each.difference if key in found else each.difference
    shown = [_described(module, entry) for entry in entries]
    rows = []
    for entry, function, ops in shown:
        first = True
        for number, op in enumerate(ops):
            for value in op.results:
                difference = found.get((entry, number, value.name))
                differs = difference is not None and not difference.equal
                lines = formulas.get((function, number), [])
                rows.append(
                    Row(
                        entry,
                        number,
                        op.short_name.upper(),
                        value.name,
                        shape_text(value.type),
                        difference,
                        differs and first,
                        parameters(op),
                        lines[:LINES],
                        max(len(lines) - LINES, 0),
                        real_multipliers(op),
                    )
                )
                first &= not differs
    return rows


def _described(module: Module, entry: str) -> tuple[str, int, list[Op]]:
    """An entry, its function, and the operators of it, which legalization leaves as they are."""
    index = next((s.function for s in module.signatures or () if entry and s.key == entry), 0)
    return entry, index, list(module.functions[index].ops)


def _formulas(module: Module) -> tuple[Formulas, str]:
    """The formulas of a model that is not to be used any more; why there are none."""
    if is_tosa(module):
        return {(i, n): [formula(op)] for i, f in enumerate(module.functions) for n, op in enumerate(f.ops)}, ""
    lines: dict[tuple[int, int], list[str]] = defaultdict(list)
    try:
        form = integer_form(module)
    except TflqError as error:
        return {}, str(error)
    for op in form.ops():
        if op.location is not None:
            lines[op.location.function, op.location.operator].append(formula(op))
    return lines, ""
