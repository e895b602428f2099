"""`tflq ops`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.options import json_option, target_option
from tflq.cli.output import Cell
from tflq.cli.report import types
from tflq.errors import OptionError, Reason

if TYPE_CHECKING:
    from tflq.coverage.rows import CoverageRow

JSON_VERSION = 2
COLOURS = {"integer": "green", "table": "green", "float": "yellow", "refused": "red"}


@click.command()
@target_option(
    "integer (the default), kernels, portable, tflm, tosa, ethos-u55, ethos-u65, ethos-u85, onnx, qdq, or a target "
    "file.",
    metavar="NAME|PATH.toml",
)
@click.option("--operator", metavar="NAME", help="Only operators whose name contains this.")
@click.option(
    "--fresh",
    is_flag=True,
    help="Compute the table anew (some seconds) instead of printing the one that comes with this version.",
)
@json_option("Print as JSON.")
def command(target: str | None, operator: str | None, *, fresh: bool, as_json: bool) -> None:
    """Show what becomes of each operator, on each signature.

    The engine is always asked for targets of your own, which takes some seconds.
    """
    from tflq.coverage.rows import TARGETS, shipped_rows

    if target in (None, *TARGETS) and not fresh:
        name = target or TARGETS[0]
        rows = list(shipped_rows(name, operator or ""))
    else:
        name, rows = _asked(target, operator or "", quiet=as_json)
    if not rows:
        raise OptionError(
            Reason(f"no operator's name contains '{operator}'", value=operator, remedy="tflq ops lists all")
        )
    if as_json:
        document = {"format": "tflq.ops", "version": JSON_VERSION, "target": name}
        output.print_json({**document, "rows": [asdict(row) for row in rows]})
        return
    if output.width() is not None:
        output.table(["operator", "path", "why"], list(_by_operator(rows)))
    else:
        output.table(
            ["operator", "types", "path", "why"], [[row.operator, _types(row), *_outcome(row)] for row in rows]
        )
    counts = Counter(row.path for row in rows)
    output.field("rows", f"{len(rows)}: " + ", ".join(f"{count} {path}" for path, count in counts.items()))


def _asked(target: str | None, operator: str, *, quiet: bool) -> tuple[str, list[CoverageRow]]:
    """A target's name, and its rows from the engine."""
    from tflq.backends import of_target
    from tflq.coverage.table import coverage
    from tflq.pipelines import asked

    form = of_target(target, static=True)
    options = asked(form.name, target)
    with output.progress("asking the engine", silent=quiet):
        return options.kernels.name if form.builtins else str(target), list(coverage(options, operator))


def _by_operator(rows: Sequence[CoverageRow]) -> Iterator[list[Cell]]:
    """A line for each operator, then its signatures: a table that 80 columns hold."""
    for name, group in groupby(rows, lambda row: row.operator):
        yield [(name, "bold"), "", ""]
        for row in group:
            yield [f"  {_types(row)}".rstrip(), *_outcome(row)]


def _types(row: CoverageRow) -> str:
    sides = types(row.operands, row.results) if row.results or row.operands else ""
    return ", ".join(filter(None, (sides, row.detail)))


def _outcome(row: CoverageRow) -> list[Cell]:
    return [(row.path, COLOURS.get(row.path, "")), row.reason or row.warning]
