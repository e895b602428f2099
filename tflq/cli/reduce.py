"""`tflq reduce`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.cli import output
from tflq.cli.main import DIFFERS
from tflq.cli.options import TARGETS, conversion_options, json_option, seeds_option, target_option, timeout_option
from tflq.cli.output import FILE

if TYPE_CHECKING:
    from tflq.reduction.reducing import Reduction


@click.command()
@click.argument("model", type=FILE)
@click.option(
    "-o",
    "--output",
    "destination",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the part goes (.tflite), with its inputs next to it (.npz). By default ./MODEL.reduced.tflite.",
)
@target_option(f"What the conversion is for: {TARGETS}")
@conversion_options("mac", "fallback")
@click.option(
    "--inputs", type=FILE, metavar="FILE.npz", help="Run on these inputs (arrays by input name) instead of random ones."
)
@seeds_option(2)
@timeout_option(120.0, "Seconds that a conversion or run may take.")
@click.option("--force", is_flag=True, help="Replace existing files; what is read is never replaced.")
@json_option()
def command(
    model: Path,
    destination: Path | None,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the smallest part of MODEL whose conversion still differs, fails or crashes.

    Parts are operators of the model on the tensors that they have there, recorded in the interpreter. The part and its
    inputs are written, ready for a bug report. Exit code 5 if there is one, 0 if the model's conversion does not fail.
    """
    import tflq

    path = destination or Path(f"{model.stem}.reduced.tflite")
    with output.progress(f"reducing {model}", silent=as_json):
        reduction = tflq.reduce(model, path, **options)
    if reduction is None:
        output.print_json({"format": "tflq.reduction", "kind": ""}) if as_json else click.echo("it does not fail")
        return
    arrays = path.with_suffix(".npz")
    line = _line(path, arrays, options, verifies=reduction.kind in ("differs", "dies", "does not run"))
    if as_json:
        output.print_json(reduction.to_json() | {"model": str(path), "inputs": str(arrays), "command": line})
    else:
        print_reduction(reduction, path, arrays, line)
    click.get_current_context().exit(DIFFERS)


def print_reduction(reduction: Reduction, path: Path, arrays: Path, line: str) -> None:
    output.heading(f"{reduction.source}: {reduction.kind}")
    output.field("operators", f"{len(reduction.operators)} of {reduction.total}")
    for place in reduction.operators:
        click.echo(f"  {place}")
    output.field("found in", f"{reduction.seconds:.1f} s, {reduction.tried} parts tried")
    output.field("written to", f"{path}, inputs {arrays}")
    output.field("try it", line)


def _line(path: Path, arrays: Path, options: dict[str, Any], *, verifies: bool) -> str:
    """One line that shows the failure again."""
    from tflq.backends import of_target

    converted = path.with_suffix(f".converted.{of_target(options['target'], static=True).suffixes[0]}")
    words = [
        word
        for name, usual in (("target", None), ("mac", "integer"), ("fallback", "float"))
        if options[name] != usual
        for word in (f"--{name}", str(options[name]))
    ]
    convert = shlex.join(["tflq", "convert", str(path), str(converted), "--force", *words])
    if not verifies:
        return convert
    return f"{convert} && {shlex.join(['tflq', 'verify', str(path), str(converted), '--inputs', str(arrays)])}"
