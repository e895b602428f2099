"""`tflq opt`."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-p", "--passes", "pipeline", required=True, help="Passes in order, such as 'lower-quant-ops,canonicalize'."
)
def command(file: Path, pipeline: str) -> None:
    """Run passes on the text form of a module and print the result."""
    from tflq.errors import InvalidModelError, VerificationError
    from tflq.ir.parser import parse_module
    from tflq.ir.printer import print_module
    from tflq.ir.verifier import verify
    from tflq.passes.pipeline_text import parse_pipeline

    passes = parse_pipeline(pipeline)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidModelError(
            str(file), "this is no text", hint="opt reads the text form, as inspect --ir prints it"
        ) from error
    module = parse_module(text, str(file))
    try:
        verify(module)
    except VerificationError as error:
        raise InvalidModelError(str(file), str(error)) from error
    click.echo(print_module(passes.run(module).module))
