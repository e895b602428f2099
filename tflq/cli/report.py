"""What `tflq convert` and `tflq inspect --why` say of a conversion, the verdict first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tflq.cli import output
from tflq.cli.output import Cell

if TYPE_CHECKING:
    from tflq.analysis.arena import Arena
    from tflq.conversion import Timing
    from tflq.cost import Cost
    from tflq.report import Outcome, Report, Row

LABELS: Final = {
    "float": "computed in float",
    "kept": "kept as they are",
    "kernel": "kernels of the target",
    "unquantized": "without quantized tensors",
}
COLOURS: Final = {"integer": "green", "float": "yellow", "kept": "yellow", "kernel": "green", "unquantized": ""}
UNKNOWN: Final = "unknown before a run"
"""Said of an arena that depends on the values that are computed."""
KINDS, NUMBERS = 5, 8
"""How many kinds of operators, and numbers of operators, are listed."""
COUNTS = ("integer", "float", "kept")


def verdict(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What became of the operators: a label and a text for each way, the integer one first."""
    ways: dict[str, list[Row]] = {}
    for row in rows:
        ways.setdefault(row.outcome, []).append(row)
    total = len(rows)
    lines = [("integer", f"{len(ways.get('integer', ()))} of {total} operator{'s' * (total != 1)}")]
    return lines + [(LABELS[way], f"{len(ways[way])} ({_kinds(ways[way])})") for way in LABELS if way in ways]


def print_verdict(rows: Sequence[Row], *, err: bool = False) -> None:
    lines = verdict(rows)
    surprises = {LABELS["float"], LABELS["kept"]}
    whole = surprises.isdisjoint(label for label, _ in lines)
    for label, text in lines:
        colour = "yellow" if label in surprises else "green" if whole else ""
        output.line((f"{label}: ", f"bold {colour}".strip()), (text, "bold"), err=err)


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
        text += f", {output.size(planned.kept)} of it kept"
    return f"{text}, and what {', '.join(planned.beside)} needs" if planned.beside else text


def print_cost(cost: Cost, *, err: bool = False) -> None:
    """File and arena before and after, and whether an interpreter runs the result slower."""
    told = f"file {output.change(cost.bytes_in, cost.bytes_out)}"
    if cost.arena is not None:
        told += f", arena {arena(cost.arena, cost.arena_in)}"
    output.line(told, err=err)
    for text in filter(None, (cost.slower, cost.instead)):
        output.line((text, "yellow"), err=err)


def print_timings(timings: Sequence[Timing], *, err: bool = False) -> None:
    """What each pass took, and the verifier after it; those that changed nothing are dim."""
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


def print_report(report: Report, *, err: bool = False) -> None:
    """Operators by path, then why some are not integer, then the warnings."""
    opcodes: dict[str, Counter[str]] = {}
    for row in sorted(report.rows, key=lambda row: row.name):
        opcodes.setdefault(row.name, Counter()).update({row.path: 1, "made": row.made})
    if report.rows:
        rows = [_counted(name, counts) for name, counts in opcodes.items()]
        rows.append(_counted("total", sum(opcodes.values(), Counter())))
        output.table(["operator", *COUNTS, "made"], rows, right=(1, 2, 3, 4), total=True, err=err)
        output.line(("made: operators of the result that compute those on the left", "dim"), err=err)
    if report.requirements is not None:
        output.line(err=err)
        output.field("needs", str(report.requirements), err=err)
    _print_reasons(report.rows, err=err)
    output.warnings(warnings(report), err=err)


def warnings(report: Report) -> list[str]:
    """Warnings of the model, then of operators; a text that concerns several operators is listed once."""
    by_text: dict[str, list[Row]] = {}
    for row in report.rows:
        if row.warning:
            by_text.setdefault(row.advice, []).append(row)
    of_rows = sum(map(len, by_text.values()))
    of_model = report.warnings[: len(report.warnings) - of_rows]
    return [*dict.fromkeys(of_model), *(f"{_places(rows)}: {text}" for text, rows in by_text.items())]


def _print_reasons(rows: Iterable[Row], *, err: bool) -> None:
    """Prints why operators are not integer, one row for each kind."""
    kinds: dict[tuple[Outcome, str, str], list[Row]] = {}
    for row in rows:
        if row.outcome in ("float", "kept"):
            kinds.setdefault((row.outcome, row.name, row.reason), []).append(row)
    if not kinds:
        return
    table: list[list[Cell]] = [
        [name, _numbers(alike), (path, COLOURS[path]), why] for (path, name, why), alike in sorted(kinds.items())
    ]
    output.line(err=err)
    output.table(["operator", "number", "path", "why"], table, err=err)


def types(operands: Sequence[str], results: Sequence[str]) -> str:
    """The types of an operator's operands and results; long runs of one type are counted: "qi8, none x3 -> qi8"."""

    def listed(names: Sequence[str]) -> str:
        runs = [(name, len(list(run))) for name, run in groupby(names)]
        return ", ".join(f"{name} x{n}" if n > 2 else ", ".join([name] * n) for name, n in runs)

    return f"{listed(operands)} -> {listed(results)}"


def _counted(name: str, counts: Counter[str]) -> list[Cell]:
    return [name, *(str(counts[key] or "-") for key in (*COUNTS, "made"))]


def _kinds(rows: Sequence[Row]) -> str:
    """Names and how often: "CONV_2D x3, ADD"; custom operators first, then the most frequent."""
    counts = Counter((not row.custom_code, row.name) for row in rows)
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1]))
    listed = [f"{name} x{count}" if count > 1 else name for (_, name), count in ordered]
    return _and_more(listed, KINDS, "kind")


def _numbers(rows: Sequence[Row]) -> str:
    """The operators' numbers; outside the first subgraph, the subgraph's number comes first: "3, 7, 1:0"."""
    if len(rows) == 1 and rows[0].tensor:
        return f"{rows[0].number} '{rows[0].tensor}'"
    return _and_more([row.number for row in rows], NUMBERS, "")


def _places(rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        return rows[0].place
    return f"{len(rows)} operators ({_kinds(rows)}), the first of them {rows[0].place}"


def _and_more(texts: Sequence[str], most: int, what: str) -> str:
    rest = len(texts) - most
    if rest <= 1:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} and {rest} more{f' {what}s' if what else ''}"
