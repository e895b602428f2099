"""`tflq opt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tflq.cli import talk
from tflq.cli.streams import MODEL, name_of, source

__all__ = ["command"]

RULES = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=MODEL)
@click.option("-p", "--passes", "pipeline", help="Passes in order, such as 'legalize{target=kernels},cse,dce'.")
@click.option("--rules", multiple=True, type=RULES, help="A file of Python with more passes, as its EXTENSION.")
def command(file: str, pipeline: str | None, rules: tuple[Path, ...]) -> None:
    """Run passes on a model, or on the text form of one, and print the text form of the result.

    Without passes it prints the model as it is. The text holds the whole model: `tflq opt` and `tflq convert` read it.
    """
    from tflq.formats import read_any_form
    from tflq.ir.printer import print_module
    from tflq.named_passes import named_passes
    from tflq.passes.pipeline_text import parse_pipeline
    from tflq.steps import READERS

    passes = parse_pipeline(pipeline, named_passes(*rules), READERS) if pipeline is not None else None
    module = read_any_form(source(file))
    if passes is not None:
        with talk.progress(f"running passes on {name_of(file)}"):
            module = passes.run(module).module
    sys.stdout.write(print_module(module))
