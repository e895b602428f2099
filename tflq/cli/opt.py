"""`tflq opt`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tflq.ir.core import Module

__all__ = ["command"]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-p", "--passes", "pipeline", required=True, help="Passes in order, such as 'lower-quant-ops,canonicalize'."
)
def command(file: Path, pipeline: str) -> None:
    """Run passes on a model, or on the text form of a module, and print the text form of the result."""
    from tflq.ir.printer import print_module
    from tflq.passes.pipeline_text import parse_pipeline

    passes = parse_pipeline(pipeline)
    click.echo(print_module(passes.run(_read(file)).module))


def _read(file: Path) -> Module:
    """The module of a TFLite or TOSA file, or of text as `inspect --ir` prints it."""
    from tflq.errors import InvalidModelError, VerificationError
    from tflq.flatbuffer.identify import identify
    from tflq.formats import read
    from tflq.ir.parser import parse_module
    from tflq.ir.verifier import verify

    if identify(file) is not None:
        return read(file)
    try:
        module = parse_module(file.read_text(encoding="utf-8"), str(file))
    except UnicodeDecodeError as error:
        hint = "opt reads models and the text form, as inspect --ir prints it"
        raise InvalidModelError(str(file), "this is neither a model nor text", hint=hint) from error
    try:
        verify(module)
    except VerificationError as error:
        raise InvalidModelError(str(file), str(error)) from error
    return module
