"""A conversion as commands print it: the verdict first, what the result costs, the report; and its form in JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from tflq.base.tables import Cell
from tflq.cli import output
from tflq.conversion.report import COLOURS, Report, Row, details, verdict_lines, warnings

if TYPE_CHECKING:
    from tflq.analysis.arena import Arena
    from tflq.conversion.convert import Conversion, Timing
    from tflq.conversion.cost import Cost

JSON_VERSION: Final = 2


def document_of(
    source: str,
    destination: str,
    files: Sequence[str],
    options: Mapping[str, Any],
    report: Report,
    cost: Cost,
    seconds: float,
) -> dict[str, Any]:
    """A conversion in the form of JSON: docs/json.md."""
    return {
        "format": "tflq.conversion",
        "version": JSON_VERSION,
        "source": source,
        "destination": destination,
        "files": list(files),
        "options": dict(options),
        **cost.to_json(),
        "seconds": round(seconds, 4),
        "report": report.to_json(),
    }


def print_conversion(conversion: Conversion, where: str, *, timings: bool, err: bool) -> None:
    """The verdict, from where to where, what the result costs, and the report."""
    output.blocks(verdict_lines(conversion.report.rows), err=err)
    output.line(where, err=err)
    print_cost(conversion.cost, err=err)
    output.line(err=err)
    output.blocks(details(conversion.report), err=err)
    if timings:
        output.line(err=err)
        print_timings(conversion.timings, err=err)


def print_why(report: Report) -> None:
    output.blocks(verdict_lines(report.rows))
    output.line()
    rows: list[list[Cell]] = [
        [
            row.number,
            row.name,
            types(row.operands, row.results),
            (row.path, COLOURS[row.outcome]),
            str(row.emitted or "-"),
            "; ".join(filter(None, (row.reason or row.note, _declined(row), row.not_rule))),
        ]
        for row in report.rows
    ]
    output.table(["#", "operator", "types", "path", "ops", "why"], rows, right=(0, 4))
    output.warnings(warnings(report))


def _declined(row: Row) -> str:
    """Why the target keeps no kernel for an operator, in words."""
    return row.not_kernel if row.not_kernel.startswith("lowered") else row.not_kernel and f"no kernel: {row.not_kernel}"


UNKNOWN: Final = "unknown before a run"
"""Said of an arena that depends on the values that are computed."""


def arena(planned: Arena, before: Arena | None = None) -> str:
    """The memory of activations in words, and what it was before, if that is known."""
    if planned.bytes is None:
        text = f"{UNKNOWN}: {planned.dynamic} gives what it finds then"
    elif before is not None and before.bytes is not None:
        text = output.change(before.bytes, planned.bytes)
    else:
        text = output.size(planned.bytes)
    if before is not None and None in (before.bytes, planned.bytes) and before.bytes != planned.bytes:
        text = f"{UNKNOWN if before.bytes is None else output.size(before.bytes)} → {text}"
    if planned.bytes is not None and planned.kept:
        text += f", {output.size(planned.kept)} persistent"
    return f"{text}; scratch of {', '.join(planned.beside)} not counted" if planned.beside else text


def print_cost(cost: Cost, *, err: bool = False) -> None:
    """File and arena before and after, and whether an interpreter runs the result slower."""
    sizes = f"file {output.change(cost.bytes_in, cost.bytes_out)}"
    if cost.arena is not None:
        sizes += f", arena {arena(cost.arena, cost.arena_in)}"
    output.line(sizes, err=err)
    for text in filter(None, (cost.slower, cost.instead)):
        output.line((text, "yellow"), err=err)


def print_timings(timings: Sequence[Timing], *, err: bool = False) -> None:
    """Prints the time of each pass, and of the verifier after it; passes that changed nothing are dim."""
    rows: list[list[Cell]] = []
    for row in timings:
        cells = [row.name, f"{row.ms:.1f}", f"{row.verifier_ms:.1f}" if row.modified else "-"]
        cells += [str(row.ops_before), str(row.ops_after)]
        rows.append([(cell, "" if row.modified else "dim") for cell in cells])
    sums = [f"{sum(row.ms for row in timings):.1f}", f"{sum(row.verifier_ms for row in timings):.1f}"]
    ends = [str(timings[0].ops_before), str(timings[-1].ops_after)] if timings else ["-", "-"]
    rows.append([*("total", *sums), *ends])
    head = ["pass", "ms", "verifier ms", "ops before", "after"]
    output.table(head, rows, right=(1, 2, 3, 4), total=True, err=err)


def types(operands: Sequence[str], results: Sequence[str]) -> str:
    """The types of an operator's operands and results; long runs of one type are counted: "qi8, none x3 -> qi8"."""

    def listed(names: Sequence[str]) -> str:
        runs = [(name, len(list(run))) for name, run in groupby(names)]
        return ", ".join(f"{name} x{n}" if n > 2 else ", ".join([name] * n) for name, n in runs)

    return f"{listed(operands)} -> {listed(results)}"
