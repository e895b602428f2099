"""`tflq convert`: a model into a file, or many into a folder (`many.py`)."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import click

from tflq.base.errors import FileError, OptionError, Reason
from tflq.base.files import Output, check_outputs, files_to_place
from tflq.cli import output
from tflq.cli.main import SectionedCommand
from tflq.cli.options import CHOICES, FORMAT, FORMS, PARTS, TARGETS, conversion_options, json_option, target_option
from tflq.cli.output import MODEL, is_stream
from tflq.formats.backend import DEFAULT, backend

if TYPE_CHECKING:
    from tflq.conversion.convert import Conversion


class _Convert(SectionedCommand):
    most_used = (
        *("target", "format", "mac", "prefer", "fallback", "batch", "cut", "folder", "workers", "force"),
        *("report_path", "as_json"),
    )
    sections: ClassVar = {
        "What the result is": ("target", "format", *FORMS, *CHOICES),
        "Which part of the model, and which shapes": PARTS,
        "Where it goes, and what is said": ("folder", "workers", "force", "skip", "report_path", "as_json"),
        "What happens inside": ("cache", "dump_ir", "timings"),
    }


@click.command(
    cls=_Convert,
    help="""Convert model IN, TFLite or TOSA, to OUT. The suffix of OUT says the format: .tflite, .tosa, .mlir, or
    another that --format lists.

    `-` as IN is standard input, as OUT standard output; the summary goes to stderr then. With -o DIR each IN is a model
    or a folder: all .tflite and .tosa files in it are converted, and DIR gets its tree. DIR is made if it is missing;
    the folder of OUT must be there.
    """,
)
@click.argument("paths", metavar="IN OUT | IN... -o DIR", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output-dir",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Convert any number of models, and all in folders, into this folder, under their names and paths.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Processes that convert models into DIR; by default as many as there are cores.",
)
@target_option(
    f"Which operators the result may use: {TARGETS}",
    metavar="NAME|PATH.toml",
)
@click.option(
    "--format",
    "--form",
    "format",
    type=FORMAT,
    help="The output format when OUT is `-`, or another one with OUT's suffix: qdq is ONNX with quantized operators "
    "between casts, for compilers. Otherwise the suffix says it. By default tflite.",
)
@conversion_options()
@click.option(
    "--report",
    "report_path",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write a JSON report: what became of each operator.",
)
@click.option(
    "--cache",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Keep proofs in this folder, 256 MiB at most, and read what was proven before. It rewrites files there. "
    "They are checked for damage, not for who wrote them, so nobody else may write there. For .tflite files.",
)
@click.option(
    "--dump-ir",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Write the text of the model as read, and after each pass that changed something, into this folder.",
)
@click.option("--timings", is_flag=True, help="Print what each pass took.")
@click.option("--force", is_flag=True, help="Replace files that exist; what is read is never replaced.")
@click.option(
    "--skip-existing",
    "skip",
    is_flag=True,
    help="With -o: leave models whose files are in DIR, and go on with the others, as after Ctrl-C.",
)
@json_option()
@click.pass_context
def convert(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    folder: str | None,
    workers: int | None,
    report_path: str | None,
    dump_ir: str | None,
    *,
    timings: bool,
    force: bool,
    skip: bool,
    as_json: bool,
    **options: Any,
) -> None:
    choices = {name: value for name in CHOICES if (value := options.pop(name)) is not None}
    options |= {"choices": choices} if choices else {}
    if folder is not None:
        if dump_ir is not None or timings:
            raise click.UsageError("--dump-ir and --timings are for one model.")
        from tflq.cli.many import Many, convert_many

        models = _sources(context, paths, report_path)
        many = Many(folder, options, force=force, skip=skip, workers=workers, as_json=as_json, quiet=output.quiet())
        context.exit(convert_many(models, many))
    if len(paths) != 2:
        raise click.UsageError("Give a model IN and a file OUT, or models and folders IN... and a folder: -o DIR.")
    if workers is not None or skip:
        raise click.UsageError("--workers and --skip-existing are for many models: IN... -o DIR.")
    source, destination = _model(context, paths[0]), paths[1]
    _check(source, destination, report_path, dump_ir, options, force=force, as_json=as_json)
    from tflq import convert
    from tflq.cli.conversion_report import document_of, print_conversion
    from tflq.conversion.convert import convert_with_dump, report_file

    place = None if is_stream(destination) else destination
    with output.progress(f"converting {output.name_of(source)}", silent=as_json):
        start = time.perf_counter()
        of_file = None if place is None else report_path
        run = (
            convert
            if dump_ir is None and of_file is None
            else partial(convert_with_dump, dump_ir=dump_ir, report=of_file)
        )
        conversion = run(output.source(source), place, force=force, **options)
        seconds = time.perf_counter() - start
    if place is None:
        with files_to_place(report_file(conversion, report_path), force=force):
            _write(conversion)
    written = conversion.paths or ["standard output"]
    if as_json:
        document = document_of(source, destination, written, options, conversion.report, conversion.cost, seconds)
        if timings:
            document["timings"] = [row._asdict() for row in conversion.timings]
        output.print_json(document)
    elif not output.quiet():
        where = f"{output.name_of(source)} -> {', '.join(written)} in {seconds:.2f} s"
        print_conversion(conversion, where, timings=timings, err=place is None)


def _sources(context: click.Context, paths: Sequence[str], report: str | None) -> list[str]:
    """The models and folders to convert into a folder."""
    if report is not None:
        raise click.UsageError("--report is for one model; --json prints the reports of all.")
    if "-" in paths:
        raise click.UsageError("Standard input has no name to write under: give files with -o DIR.")
    return [path if os.path.isdir(path) else _model(context, path) for path in paths]


def _check(
    source: str,
    destination: str,
    report: str | None,
    dump_ir: str | None,
    options: Mapping[str, Any],
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Checks that everything one conversion writes has a place of its own."""
    if os.path.isdir(destination):
        raise FileError(destination, "this is a folder", remedy="name a file, or say -o DIR")
    outputs: list[Output] = [("OUT", output.stream_or_path(destination, 1)), ("--report", report)]
    inputs = output.stream_or_path(source, 0), options["target"], *options["rules"]
    check_outputs(outputs, inputs=inputs, force=force)
    if report is not None and is_stream(report):
        raise OptionError(Reason("the report has no stream", value="-", remedy="--json prints it"))
    if dump_ir is not None:
        from tflq.transforms.pass_manager import check_folder

        check_folder(dump_ir, beside=[place for _, place in outputs], inputs=inputs, force=force)
    if is_stream(destination):
        if as_json:
            what = "--json and OUT '-' both go to standard output"
            raise OptionError(Reason(what, value="-", remedy="name a file, or write the report with --report FILE"))
        if backend(options["format"] or DEFAULT).endings:
            what = "this format has several files, and a stream takes one"
            raise OptionError(Reason(what, value="-", remedy="name a file"))
        output.check_output(text=backend(options["format"] or DEFAULT).text)


def _model(context: click.Context, path: str) -> str:
    """The path of a model, if there is one."""
    return str(MODEL.convert(path, None, context))


def _write(conversion: Conversion) -> None:
    """Writes the one file of a conversion to standard output."""
    if len(conversion.files) > 1:
        what = f"there is a file for each signature: {', '.join(conversion.files)}"
        raise OptionError(Reason(what, remedy="--signature says which"))
    output.write_output([conversion.data])
