"""`tflq convert`, and what it and `tflq inspect --why` say of a conversion, the verdict first."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click

from tflq.base.errors import FileError, OptionError, Reason
from tflq.base.files import Output, check_outputs, files_to_place
from tflq.base.tables import Cell
from tflq.cli import output
from tflq.cli.main import SectionedCommand
from tflq.cli.options import CHOICES, FORMAT, FORMS, PARTS, TARGETS, conversion_options, json_option, target_option
from tflq.cli.output import MODEL, is_stream
from tflq.conversion.report_text import details, verdict_lines
from tflq.formats.backend import DEFAULT, backend

if TYPE_CHECKING:
    from tflq.analysis.arena import Arena
    from tflq.conversion.convert import Conversion, Timing
    from tflq.conversion.cost import Cost
    from tflq.conversion.report import Report


JSON_VERSION: Final = 2


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
        _print(conversion, where, timings=timings, err=place is None)


def document_of(
    source: str,
    destination: str,
    files: Sequence[str],
    options: Mapping[str, Any],
    report: Report,
    cost: Cost,
    seconds: float,
) -> dict[str, Any]:
    """A conversion in the form of JSON: docs/json.md."""
    return {
        "format": "tflq.conversion",
        "version": JSON_VERSION,
        "source": source,
        "destination": destination,
        "files": list(files),
        "options": dict(options),
        **cost.to_json(),
        "seconds": round(seconds, 4),
        "report": report.to_json(),
    }


def _print(conversion: Conversion, where: str, *, timings: bool, err: bool) -> None:
    """The verdict, from where to where, what the result costs, and the report."""
    output.blocks(verdict_lines(conversion.report.rows), err=err)
    output.line(where, err=err)
    print_cost(conversion.cost, err=err)
    output.line(err=err)
    output.blocks(details(conversion.report), err=err)
    if timings:
        output.line(err=err)
        print_timings(conversion.timings, err=err)


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


UNKNOWN: Final = "unknown before a run"
"""Said of an arena that depends on the values that are computed."""


def arena(planned: Arena, before: Arena | None = None) -> str:
    """The memory of activations in words, and what it was before, if that is known."""
    if planned.bytes is None:
        text = f"{UNKNOWN}: {planned.dynamic} gives what it finds then"
    elif before is not None and before.bytes is not None:
        text = output.change(before.bytes, planned.bytes)
    else:
        text = output.size(planned.bytes)
    if before is not None and None in (before.bytes, planned.bytes) and before.bytes != planned.bytes:
        text = f"{UNKNOWN if before.bytes is None else output.size(before.bytes)} → {text}"
    if planned.bytes is not None and planned.kept:
        text += f", {output.size(planned.kept)} persistent"
    return f"{text}; scratch of {', '.join(planned.beside)} not counted" if planned.beside else text


def print_cost(cost: Cost, *, err: bool = False) -> None:
    """File and arena before and after, and whether an interpreter runs the result slower."""
    sizes = f"file {output.change(cost.bytes_in, cost.bytes_out)}"
    if cost.arena is not None:
        sizes += f", arena {arena(cost.arena, cost.arena_in)}"
    output.line(sizes, err=err)
    for text in filter(None, (cost.slower, cost.instead)):
        output.line((text, "yellow"), err=err)


def print_timings(timings: Sequence[Timing], *, err: bool = False) -> None:
    """Prints the time of each pass, and of the verifier after it; passes that changed nothing are dim."""
    rows: list[list[Cell]] = []
    for row in timings:
        cells = [row.name, f"{row.ms:.1f}", f"{row.verifier_ms:.1f}" if row.modified else "-"]
        cells += [str(row.ops_before), str(row.ops_after)]
        rows.append([(cell, "" if row.modified else "dim") for cell in cells])
    sums = [f"{sum(row.ms for row in timings):.1f}", f"{sum(row.verifier_ms for row in timings):.1f}"]
    ends = [str(timings[0].ops_before), str(timings[-1].ops_after)] if timings else ["-", "-"]
    rows.append([*("total", *sums), *ends])
    head = ["pass", "ms", "verifier ms", "ops before", "after"]
    output.table(head, rows, right=(1, 2, 3, 4), total=True, err=err)


def types(operands: Sequence[str], results: Sequence[str]) -> str:
    """The types of an operator's operands and results; long runs of one type are counted: "qi8, none x3 -> qi8"."""

    def listed(names: Sequence[str]) -> str:
        runs = [(name, len(list(run))) for name, run in groupby(names)]
        return ", ".join(f"{name} x{n}" if n > 2 else ", ".join([name] * n) for name, n in runs)

    return f"{listed(operands)} -> {listed(results)}"
