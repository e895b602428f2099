"""The text of a report: the verdict, a table of operators, why some are not integer, and the warnings.

`tflq convert` prints it, and `str(report)` is it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from tflq.base.tables import Blocks, Cell, Line, Table, warning_line

if TYPE_CHECKING:
    from tflq.conversion.report import Outcome, Report, Row


T = TypeVar("T")
LABELS: Final = {
    "float": "computed in float",
    "kept": "kept as they are",
    "kernel": "kernels of the target",
    "unquantized": "without quantized tensors",
}
COLOURS: Final = {"integer": "green", "float": "yellow", "kept": "yellow", "kernel": "green", "unquantized": ""}
KINDS, NUMBERS = 5, 8
"""Kinds of operators, and numbers of operators, that are listed at most."""
COUNTS = ("integer", "float", "kept")


_VARIABLE = r"'[^']*'|\b(?:subgraph|operator|tensor) \d+"
"""The parts of a warning in which those of one kind differ: names, and numbers of operators and tensors."""


def verdict(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Operators by outcome: a label and a text for each outcome, the integer one first."""
    ways: dict[str, list[Row]] = {}
    for row in rows:
        ways.setdefault(row.outcome, []).append(row)
    total = len(rows)
    lines = [("integer", f"{len(ways.get('integer', ()))} of {total} operator{'s' * (total != 1)}")]
    return lines + [(LABELS[way], f"{len(ways[way])} ({_kinds(ways[way])})") for way in LABELS if way in ways]


def verdict_lines(rows: Sequence[Row]) -> list[Line]:
    """The verdict as lines. What may surprise is yellow."""
    lines = verdict(rows)
    surprises = {LABELS["float"], LABELS["kept"]}
    whole = surprises.isdisjoint(label for label, _ in lines)
    colours = ["yellow" if label in surprises else "green" if whole else "" for label, _ in lines]
    return [
        ((f"{label}: ", f"bold {colour}".strip()), (text, "bold"))
        for (label, text), colour in zip(lines, colours, strict=True)
    ]


def blocks(report: Report) -> Blocks:
    """All of it, as lines and tables."""
    return [*verdict_lines(report.rows), [], *details(report)]


def details(report: Report) -> Blocks:
    """Operators by path, why some are not integer, remarks, and the warnings."""
    opcodes: dict[str, Counter[str]] = {}
    for row in sorted(report.rows, key=lambda row: row.name):
        opcodes.setdefault(row.name, Counter()).update({row.path: 1, "ops": row.emitted})
    parts: list[Line | Table] = []
    if report.rows:
        rows = [_counted(name, counts) for name, counts in opcodes.items()]
        rows.append(_counted("total", sum(opcodes.values(), Counter())))
        parts.append(Table(["operator", *COUNTS, "ops"], rows, right=(1, 2, 3, 4), total=True))
        parts.append([("ops: operators written in their place", "dim")])
    if report.exactness is not None:
        parts += [[], [("kernels".ljust(12), "dim"), _exactness(report)]]
    if report.requirements is not None:
        parts += [[], [("needs".ljust(12), "dim"), str(report.requirements)]]
    parts += _reasons(report.rows)
    parts += [[("note: ", "bold"), text] for text in report.remarks]
    return parts + [warning_line(text) for text in dict.fromkeys(warnings(report))]


def _exactness(report: Report) -> str:
    """The kernel sets that the result reproduces, and how many operators are left to those of what runs it."""
    quantized = sum(row.outcome in ("kept", "kernel") for row in report.rows)
    verb = "operators compute" if quantized > 1 else "operator computes"
    return f"{report.exactness}" + (f"; {quantized} {verb} what runs the file" if quantized else "")


def warnings(report: Report) -> list[str]:
    """Warnings of the model, then of operators. Those that differ in nothing but names and numbers are one line."""
    of_rows = [row for row in report.rows if row.warning]
    of_model = report.warnings[: len(report.warnings) - len(of_rows)]
    texts = [
        texts[0] if len(texts) == 1 else f"{texts[0]} (and {len(texts) - 1} more of this kind)"
        for texts in _alike(dict.fromkeys(of_model), str)
    ]
    return texts + [f"{_places(rows)}: {rows[0].advice}" for rows in _alike(of_rows, lambda row: row.advice)]


def _alike(items: Iterable[T], text: Callable[[T], str]) -> Iterable[list[T]]:
    """The items by kind of their texts."""
    kinds: dict[str, list[T]] = {}
    for item in items:
        kinds.setdefault(re.sub(_VARIABLE, "", text(item)), []).append(item)
    return kinds.values()


def _reasons(rows: Iterable[Row]) -> Blocks:
    """Why operators are not integer, one row for each kind."""
    kinds: dict[tuple[Outcome, str, str], list[Row]] = {}
    for row in rows:
        if row.outcome in ("float", "kept"):
            kinds.setdefault((row.outcome, row.name, row.reason), []).append(row)
    if not kinds:
        return []
    table: list[list[Cell]] = [
        [name, _numbers(alike), (path, COLOURS[path]), why] for (path, name, why), alike in sorted(kinds.items())
    ]
    return [[], Table(["operator", "number", "path", "why"], table)]


def _counted(name: str, counts: Counter[str]) -> list[Cell]:
    return [name, *(str(counts[key] or "-") for key in (*COUNTS, "ops"))]


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
