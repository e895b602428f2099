"""`tflq bisect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.cli import output
from tflq.cli.main import DIFFERS
from tflq.cli.options import (
    TARGETS,
    conversion_options,
    json_option,
    seed_option,
    seeds_option,
    target_option,
    timeout_option,
    tolerance_options,
)
from tflq.cli.output import FILE, Cell

if TYPE_CHECKING:
    from tflq.bisection import Bisection, Finding


@click.command()
@click.argument("model", type=FILE)
@target_option(f"What the conversion is for: {TARGETS}")
@conversion_options("mac", "fallback", "semantics", "state", "signature", "batch", "shapes")
@seeds_option(1)
@seed_option()
@tolerance_options(1e-6, 1e-5)
@timeout_option(600.0)
@json_option()
def command(model: Path, *, as_json: bool, **options: Any) -> None:
    """Convert MODEL and find the pass that first changed a result.

    The model after each pass is run on the same inputs: by the interpreter as it was read and on the target's kernels,
    by tflq's evaluator in between. Exit code 5 if the results of the end differ: then the pass is named, the rule and
    the operator, and the first tensor that shows it. 0 if they do not.
    """
    import tflq

    with output.progress(f"bisecting {model}", silent=as_json, total=0) as show:
        result = tflq.bisect(model, progress=show, **options)
    output.print_json(result.to_json()) if as_json else print_bisection(result)
    click.get_current_context().exit(0 if result.finding is None else DIFFERS)


def print_bisection(result: Bisection) -> None:
    output.heading(result.source)
    output.field("original run by", result.interpreter)
    output.field("inputs", ", ".join(result.sets))
    output.line()
    words = {True: ("equal", "green"), False: ("differs", "red"), None: ("not run", "dim")}
    rows: list[list[Cell]] = [[str(s.number), s.name, s.by or "-", words[s.equal], s.note] for s in result.steps]
    output.table(["pass", "name", "run by", "results", ""], rows, right=(0,))
    output.line()
    if result.finding is None:
        output.line(("no pass changed a result", "bold green"))
    else:
        _print_finding(result.finding)


def _print_finding(finding: Finding) -> None:
    before = f", or one before it ({', '.join(finding.unchecked)})" if finding.unchecked else ""
    output.line(("first changed by: ", "bold red"), (f"pass {finding.number}, {finding.name}{before}", "bold"))
    if finding.rule:
        output.field("rule", finding.rule)
    if finding.operator is not None:
        subgraph = f"subgraph {finding.subgraph}, " if finding.subgraph else ""
        output.field("operator", f"{subgraph}operator {finding.operator} ({finding.opcode})")
    if finding.tensor:
        output.field("first tensor", f"'{finding.tensor}' on inputs '{finding.inputs}'")
    output.field("difference", finding.difference)
    for label, names in (("it was", finding.before), ("it is now", finding.after)):
        if names:
            output.field(label, ", ".join(names))
    if finding.path:
        output.field("converted", finding.path + (f": {finding.reason}" if finding.reason else ""))
    if finding.warning:
        output.field("warning", "; ".join(filter(None, (finding.warning, finding.remedy))))
