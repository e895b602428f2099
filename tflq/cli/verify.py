"""`tflq verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.cli import output

if TYPE_CHECKING:
    from tflq.verification import Verification

__all__ = ["command"]

DIFFERS = 5
COLOURS = {"equal": "green", "accepted": "yellow", "differs": "red", "failed": "red"}
SHOWN = 10

MODEL = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("a", type=MODEL)
@click.argument("b", type=MODEL)
@click.option(
    "--inputs",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE.npz|FOLDER",
    help="Run on these arrays instead: by input name, or a folder of .npy files by input, or of .npz files.",
)
@click.option("--seeds", type=click.IntRange(0), default=2, show_default=True, help="How many sets of random inputs.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Another one gives other random sets.")
@click.option("--layers", is_flag=True, help="Compare operator results too: where do the models begin to differ?")
@click.option("--batch", type=click.IntRange(1), help="Resize the batch to this where the model leaves it open.")
@click.option(
    "--shape",
    "shapes",
    metavar="INPUT=1,224,224,3",
    multiple=True,
    callback=lambda _, __, given: input_shapes(given),
    help="The whole shape of an input; may be repeated. Open dims are else run at two sizes above any window.",
)
@click.option(
    "--resolver",
    type=click.Choice(["reference", "optimized", "default"]),
    default="reference",
    show_default=True,
    help="The interpreter's kernels: reference, optimized, or with its default delegate.",
)
@click.option(
    "--interface/--no-interface",
    default=True,
    help="Compare names, types, quantization and signatures, or only what the outputs hold, by position.",
)
@click.option("--max-lsb", type=click.FloatRange(0), default=0, help="Accept integers that are so many counts away.")
@click.option("--atol", type=click.FloatRange(0), default=0, help="Accept floats that are so far away ...")
@click.option("--rtol", type=click.FloatRange(0), default=0, help="... plus this times the original's.")
@click.option(
    "--report",
    type=MODEL,
    metavar="FILE.json",
    help="The report of the conversion: operators that it warns of as not reproduced may differ.",
)
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds that one run may take.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(a: Path, b: Path, *, as_json: bool, **options: Any) -> None:
    """Run models A and B, in the interpreter or (TOSA files) on the TOSA reference model, and compare them.

    Both get the same inputs: random ones, then all minimum, all maximum and all zero point. Compared are outputs,
    names, shapes, types, quantization, signatures and metadata. Exit code 5 if anything differs by more than is
    accepted, or a model does not run.
    """
    import tflq

    with output.counted_progress(quiet=as_json) as progress:
        result = tflq.verify(a, b, progress=progress, **options)
    output.print_json(result.to_json()) if as_json else print_verification(result)
    click.get_current_context().exit(0 if result.passed else DIFFERS)


def print_verification(result: Verification) -> None:
    output.heading(f"{result.a} <> {result.b}")
    if result.interpreter:
        output.field("run by", f"{result.interpreter}, {result.resolver} kernels")
    _print_runs(result)
    if result.interpreter:
        output.field("interface", "equal" if not result.interface else "differs")
    for text in result.interface:
        click.echo(f"  {text}")
    _print_layers(result)
    for failure in result.failures:
        click.echo(click.style("failed: ", fg="red", bold=True) + failure)
    click.secho(result.verdict.upper(), fg=COLOURS[result.verdict], bold=True)


def _print_runs(result: Verification) -> None:
    made = list(dict.fromkeys(run.inputs for run in result.runs if not run.skipped))
    if made:
        output.field("inputs", ", ".join(made))
    for run in result.runs:
        if run.skipped:
            where = f"signature '{run.entry}', " if run.entry else ""
            output.warnings([f"{where}inputs '{run.inputs}': the original does not run: {run.skipped}"])
    rows = []
    for (entry, name), found in result.outputs.items():
        unit = f" {found.unit}" if found.unit == "LSB" else ""
        largest = found.problem or f"{found.largest:.4g}{unit}"
        where = f"{entry}: {name}" if entry else name
        rows.append([where, str(found.elements), f"{found.differing} ({found.share:.2%})", largest])
    if rows:
        click.echo()
        output.table(["output", "elements", "differing", "largest"], rows, right=(1, 2, 3))
        click.echo()


def _print_layers(result: Verification) -> None:
    if result.layers is None or not result.runs:
        return
    layers = result.layers
    outcome = f"{len(layers.diverging)} differ, the first:" if layers.first else "all equal"
    output.field("layers", f"{layers.compared} of {layers.results} operator results compared, {outcome}")
    for divergence in layers.diverging[:SHOWN]:
        click.echo(f"  {divergence}")
    if len(layers.diverging) > SHOWN:
        click.echo(f"  and {len(layers.diverging) - SHOWN} more")
