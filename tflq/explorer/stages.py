"""A model in three stages, each a collection of graphs: as it is, in the integer form, and converted.

Nodes that come from one operator of the source are in one layer, named after it, in every stage. A node has the colour
of the path its operator takes, and shows the report's reason, note and warning.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from tflq.backends import of_target
from tflq.conversion import convert
from tflq.errors import Reason, UnsupportedError
from tflq.explorer.graph import Describe, Json, graphs
from tflq.formats import Source, held, is_tosa, read
from tflq.ir.core import Op
from tflq.options import Options
from tflq.pipelines import integer_form
from tflq.report import Row
from tflq.targets import load_target

__all__ = ["COLOURS", "Explored", "explore"]

COLOURS: Final[Mapping[str, str]] = {"integer": "#2e9e5b", "float": "#e08a00", "kept": "", "refused": "#e03131"}
"""Of a node's border, by what becomes of its operator: to be seen on light and on dark."""

_Known = Mapping[tuple[int, int], tuple[Mapping[str, str], str]]
"""By subgraph and operator: what is shown of it, and its colour."""


class Explored(NamedTuple):
    """The collections of graphs, {"label", "subgraphs"} each: as a JSON list, a file that Model Explorer opens.
    `refused` says why the model cannot be converted, if so."""

    stages: list[Json]
    refused: UnsupportedError | None = None


def explore(source: Source, target: str | os.PathLike[str] | None = None) -> Explored:
    """The collections of a model (TFLite or TOSA) and of its conversion for a target, as `tflq.convert` takes it.

    Of a model that cannot be converted there is the first stage alone, which says at each operator that is refused
    why. InvalidModelError: it is no valid model.
    """
    source = held(source)
    try:
        conversion = convert(source, format=of_target(target).name, target=target)
    except UnsupportedError as error:
        return Explored([_refused(source, error)], error)
    describe = _describer(_of_report(conversion.report.rows))
    own = of_target(target).builtins
    kernels = load_target(target if own else None)
    module = read(source)
    types = {v.name: v.type.element for f in module.functions for v in f.values() if v.name and v.type.quantized}
    stages = [("before", graphs(module, "before", describe))]
    if own or not is_tosa(module):  # a TOSA file stays one
        form = integer_form(module, Options(kernels=kernels))
        stages.append(("integer form", graphs(form, "integer form", describe, types)))
    stages.append(("after", graphs(conversion.module, "after", describe, types)))
    return Explored([{"label": label, "subgraphs": found} for label, found in stages])


def _refused(source: Source, error: UnsupportedError) -> Json:
    """The source alone, with why it is not converted."""
    found = graphs(read(source), "before", _describer(_of_reasons(error.reasons)))
    for graph in found:
        graph["groupNodeAttributes"] = {"": {"not converted": str(error)}}
    return {"label": "before", "subgraphs": found}


def _describer(known: _Known) -> Describe:
    def describe(op: Op) -> tuple[Mapping[str, str], str]:
        place = op.location
        return ({}, "") if place is None else known.get((place.function, place.operator), ({}, ""))

    return describe


def _of_report(rows: tuple[Row, ...]) -> _Known:
    return {
        (row.subgraph, row.operator): (
            {
                "tflq: operator": f"{row.opcode} {row.operator}",
                "tflq: path": row.path,
                "tflq: reason": row.reason,
                "tflq: note": row.note,
                "tflq: warning": row.advice,
                "tflq: operators made": str(row.made),
            },
            COLOURS[row.path],
        )
        for row in rows
    }


def _of_reasons(reasons: tuple[Reason, ...]) -> _Known:
    known: dict[tuple[int, int], tuple[Mapping[str, str], str]] = {}
    for reason in reasons:
        if reason.subgraph is not None and reason.operator is not None:
            shown = {"tflq: path": "refused", "tflq: reason": reason.what, "tflq: remedy": reason.remedy}
            known[reason.subgraph, reason.operator] = shown, COLOURS["refused"]
    return known
