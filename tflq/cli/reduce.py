"""`tflq reduce`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.cli import output
from tflq.cli.conversion_options import complete_target, conversion_options
from tflq.cli.output import FILE

if TYPE_CHECKING:
    from tflq.reduction import Reduction

__all__ = ["command"]


@click.command()
@click.argument("model", type=FILE)
@click.option(
    "-o",
    "--output",
    "destination",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the part goes (.tflite), its inputs beside it (.npz). By default MODEL.reduced.tflite, in this folder.",
)
@click.option(
    "--target",
    shell_complete=complete_target,
    help="What the conversion is for: integer (the default), kernels, tosa, or a file.",
)
@conversion_options("mac", "fallback")
@click.option(
    "--inputs", type=FILE, metavar="FILE.npz", help="Run on these inputs (arrays by input name) instead of random ones."
)
@click.option("--seeds", type=click.IntRange(0), default=2, show_default=True, help="How many sets of random inputs.")
@click.option(
    "--timeout", type=float, default=120.0, show_default=True, help="Seconds that a conversion or run may take."
)
@click.option("--force", is_flag=True, help="Replace existing files; what is read is never replaced.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(
    model: Path,
    destination: Path | None,
    *,
    target: str | None,
    mac: str,
    fallback: str,
    inputs: Path | None,
    seeds: int,
    timeout: float,
    force: bool,
    as_json: bool,
) -> None:
    """Find the smallest part of MODEL whose conversion still differs, fails or crashes.

    Parts are operators of the model on the tensors that they have there, recorded in the interpreter. The part and its
    inputs are written, ready for a bug report. Exit code 5 if there is one, 0 if the model's conversion does not fail.
    """
    import tflq

    path = destination or Path(f"{model.stem}.reduced.tflite")
    options: dict[str, Any] = {"target": target, "mac": mac, "fallback": fallback}
    with output.progress(f"reducing {model}", quiet=as_json):
        found = tflq.reduce(model, path, inputs=inputs, seeds=seeds, timeout=timeout, force=force, **options)
    if found is None:
        output.print_json({"format": "tflq.reduction", "kind": ""}) if as_json else click.echo("it does not fail")
        return
    arrays = path.with_suffix(".npz")
    line = _line(path, arrays, options, verifies=found.kind in ("differs", "dies", "does not run"))
    if as_json:
        output.print_json(found.to_json() | {"model": str(path), "inputs": str(arrays), "command": line})
    else:
        print_reduction(found, path, arrays, line)
    click.get_current_context().exit(5)


def print_reduction(found: Reduction, path: Path, arrays: Path, line: str) -> None:
    output.heading(f"{found.source}: {found.kind}")
    output.field("operators", f"{len(found.operators)} of {found.total}")
    for place in found.operators:
        click.echo(f"  {place}")
    output.field("found in", f"{found.seconds:.1f} s, {found.tried} parts tried")
    output.field("written to", f"{path}, inputs {arrays}")
    output.field("try it", line)


def _line(path: Path, arrays: Path, options: dict[str, Any], *, verifies: bool) -> str:
    """One line that shows the failure again."""
    from tflq.backends import of_target

    converted = path.with_suffix(f".converted.{of_target(options['target'], static=True).suffixes[0]}")
    given = [
        word
        for name, usual in (("target", None), ("mac", "integer"), ("fallback", "float"))
        if options[name] != usual
        for word in (f"--{name}", str(options[name]))
    ]
    convert = shlex.join(["tflq", "convert", str(path), str(converted), "--force", *given])
    if not verifies:
        return convert
    return f"{convert} && {shlex.join(['tflq', 'verify', str(path), str(converted), '--inputs', str(arrays)])}"
