"""`tflq bisect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.cli import output
from tflq.cli import output as talk
from tflq.cli.conversion_options import complete_target, conversion_options
from tflq.cli.main import DIFFERS
from tflq.cli.output import FILE, Cell

if TYPE_CHECKING:
    from tflq.bisection import Bisection, Finding

__all__ = ["command"]


@click.command()
@click.argument("model", type=FILE)
@click.option(
    "--target",
    shell_complete=complete_target,
    help="What the conversion is for: integer (the default), kernels, tosa, or a file.",
)
@conversion_options("mac", "fallback", "semantics", "state", "signature", "batch", "shapes")
@click.option("--seeds", type=click.IntRange(0), default=1, show_default=True, help="How many sets of random inputs.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of the random inputs.")
@click.option(
    "--max-lsb", type=click.FloatRange(0), default=0, help="Accept integers that differ by at most this many counts."
)
@click.option("--atol", type=click.FloatRange(0), default=1e-6, help="Accept floats that differ by at most this ...")
@click.option("--rtol", type=click.FloatRange(0), default=1e-5, help="... plus this share of the original's value.")
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds that one run may take.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(model: Path, *, as_json: bool, **options: Any) -> None:
    """Convert MODEL and find the pass that first changed a result.

    The model after each pass is run on the same inputs: by the interpreter as it was read and on the target's kernels,
    by tflq's evaluator between. Exit code 5 if the results of the end differ: then the pass is named, the rule and the
    operator, and the first tensor that shows it. 0 if they do not.
    """
    import tflq

    with talk.progress_talk(f"bisecting {model}", silent=as_json, total=0) as display:

        def show(what: str) -> None:
            if display is not None:
                display.update(display.task_ids[0], description=what)

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


def _print_finding(found: Finding) -> None:
    before = f", or one before it ({', '.join(found.unchecked)})" if found.unchecked else ""
    output.line(("first changed by: ", "bold red"), (f"pass {found.number}, {found.name}{before}", "bold"))
    if found.rule:
        output.field("rule", found.rule)
    if found.operator is not None:
        subgraph = f"subgraph {found.subgraph}, " if found.subgraph else ""
        output.field("operator", f"{subgraph}operator {found.operator} ({found.opcode})")
    if found.tensor:
        output.field("first tensor", f"'{found.tensor}' on inputs '{found.inputs}'")
    output.field("difference", found.difference)
    for label, names in (("it was", found.before), ("it is now", found.after)):
        if names:
            output.field(label, ", ".join(names))
    if found.path:
        output.field("converted", found.path + (f": {found.reason}" if found.reason else ""))
    if found.warning:
        output.field("warning", "; ".join(filter(None, (found.warning, found.remedy))))
