"""The layers page of a comparison: every operator result of the original in order, how far the other model's is from
it, and what the operator is, in the original's parameters and in the formulas of the integer form.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import tflq
from tflq.errors import TflqError
from tflq.formats import is_tosa, read
from tflq.ir.core import Module, Op, Value
from tflq.ir.short_text import shape_text
from tflq.pages.formulas import formula, parameters, real_multipliers, steps
from tflq.pages.layer_plot import plots
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
    def place(self) -> str:
        """Its operator's number, with the signature's key if there are several."""
        return f"{self.entry}: {self.operator}" if self.entry else str(self.operator)


def layers_page(model: str | os.PathLike[str], result: Verification) -> str:
    """The page, as HTML, of a verification with layers whose original is `model`."""
    formulas, problem = _formulas(read(model))
    rows = rows_of(read(model), result, formulas)
    values = {"result": result, "rows": rows, "plots": plots(rows), "problem": problem}
    return render("layers.html", **values, version=tflq.__version__)


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
    operands = {
        (i, n): [value.name if value is not None else "" for value in op.operands]
        for i, function in enumerate(module.functions)
        for n, op in enumerate(function.ops)
    }
    if is_tosa(module):
        ops = {(i, n): op for i, function in enumerate(module.functions) for n, op in enumerate(function.ops)}
        return {key: [formula(op, {v: f"input {i}" for i, v in _inputs(op)})] for key, op in ops.items()}, ""
    try:
        return steps(integer_form(module), operands), ""
    except TflqError as error:
        return {}, str(error)


def _inputs(op: Op) -> list[tuple[int, Value]]:
    return [(i, value) for i, value in enumerate(op.operands) if value is not None and not value.is_constant]
