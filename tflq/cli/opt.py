"""`tflq opt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from tflq.cli import output
from tflq.cli.output import MODEL, name_of, source, stream_or_path
from tflq.files import check_outputs, replace_file

RULES = click.Path(exists=True, dir_okay=False, path_type=Path)


def complete_passes(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the last pass of `-p`."""
    from tflq.named_passes import named_passes

    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(before + comma + name) for name in sorted(named_passes()) if name.startswith(last)]


def list_passes(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Prints the passes and ends."""
    if not value or context.resilient_parsing:
        return
    from tflq.named_passes import described, named_passes

    passes = named_passes(*map(Path, context.params.get("rules") or ()))
    output.table(["pass", "what it does", "options"], [[name, *described(passes[name])] for name in sorted(passes)])
    context.exit()


@click.command()
@click.argument("file", type=MODEL)
@click.option(
    "-p",
    "--passes",
    "pipeline",
    shell_complete=complete_passes,
    help="Passes in order, such as 'legalize{target=kernels},cse,dce'.",
)
@click.option(
    "--rules",
    multiple=True,
    type=RULES,
    is_eager=True,
    help="A Python file with more passes, as its EXTENSION.",
)
@click.option(
    "-o", "--output", "destination", metavar="FILE", type=click.Path(), help="Write the text to this file instead."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists; what is read is never replaced.")
@click.option(
    "--list-passes",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=list_passes,
    help="Show the passes, what each does, and its options; then exit.",
)
def command(file: str, pipeline: str | None, rules: tuple[Path, ...], destination: str | None, *, force: bool) -> None:
    """Run passes on a model, or on the text form of one, and print the text form of the result.

    Without passes it prints the model as it is. The text holds the whole model: `tflq opt` and `tflq convert` read it.
    """
    check_outputs([("-o", destination)], inputs=(stream_or_path(file, 0), *rules), force=force)
    from tflq.contract import Summaries
    from tflq.formats import read_any_form
    from tflq.ir.printer import print_module
    from tflq.named_passes import named_passes, parse_pipeline

    passes = parse_pipeline(pipeline, named_passes(*rules)) if pipeline is not None else None
    module = read_any_form(source(file))
    if passes is not None:
        with output.progress(f"running passes on {name_of(file)}"):
            module = passes.run(module).module
        for line in () if output.quiet() else Summaries.of(module):
            output.line(line, err=True)
    if destination is None:
        sys.stdout.write(print_module(module))
    else:
        replace_file(destination, [print_module(module).encode()], force=force)
