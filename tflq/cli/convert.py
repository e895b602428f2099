"""`tflq convert`, and what it and `tflq inspect --why` say of a conversion, the verdict first."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click

from tflq.backends import DEFAULT, backend
from tflq.cli import output
from tflq.cli.main import SectionedCommand
from tflq.cli.options import FORMAT, FORMS, PARTS, conversion_options, json_option, target_option
from tflq.cli.output import MODEL, Cell, is_stream
from tflq.errors import FileError, OptionError, Reason
from tflq.files import Output, check_outputs, replace_file

if TYPE_CHECKING:
    from tflq.analysis.arena import Arena
    from tflq.conversion import Conversion, Timing
    from tflq.cost import Cost
    from tflq.report import Outcome, Report, Row


JSON_VERSION: Final = 2


class _Convert(SectionedCommand):
    most_used = ("target", "mac", "prefer", "fallback", "batch", "cut", "folder", "force", "report_path", "as_json")
    sections: ClassVar = {
        "What the result is": ("target", "format", *FORMS),
        "Which part of the model, and which shapes": PARTS,
        "Where it goes, and what is said": ("folder", "workers", "force", "skip", "report_path", "as_json"),
        "What happens inside": ("cache", "dump_ir", "timings"),
    }


@click.command(
    cls=_Convert,
    help="""Convert model IN, TFLite or TOSA, to OUT. The suffix of OUT says the format: .tflite, .tosa, .mlir, or
    another that --format lists.

    `-` as IN is standard input, as OUT standard output; the summary goes to stderr then. With -o DIR each IN is a model
    or a folder: all .tflite and .tosa files in it are converted, and DIR gets its tree.
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
    "Which operators the result may use: integer or kernels (.tflite), tosa (.tosa, .mlir), or a target file.",
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
    "For .tflite files.",
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
    from tflq.conversion import destinations, observed

    place = None if is_stream(destination) else destination
    with output.progress(f"converting {output.name_of(source)}", silent=as_json):
        start = time.perf_counter()
        run = convert if dump_ir is None else partial(observed, dump_ir=dump_ir)
        conversion = run(output.source(source), place, force=force, **options)
        seconds = time.perf_counter() - start
    if place is None:
        written = ["standard output"]
        _write(conversion)
    else:
        written = [path for path, _ in destinations(conversion.module, conversion.format, place)]
    if report_path is not None:
        import json

        check_outputs([*zip(written, written, strict=True), ("--report", report_path)], force=True)
        replace_file(report_path, [json.dumps(conversion.report.to_json(), indent=1).encode(), b"\n"], force=force)
    if as_json:
        document = document_of(source, destination, written, options, conversion.report, conversion.cost, seconds)
        if timings:
            from dataclasses import asdict

            document["timings"] = [asdict(row) for row in conversion.timings]
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
    print_verdict(conversion.report.rows, err=err)
    output.line(where, err=err)
    print_cost(conversion.cost, err=err)
    output.line(err=err)
    print_report(conversion.report, err=err)
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
        from tflq.contract import check_folder

        check_folder(dump_ir, beside=[place for _, place in outputs], inputs=inputs, force=force)
    if is_stream(destination):
        if as_json:
            what = "--json and OUT '-' both go to standard output"
            raise OptionError(Reason(what, value="-", remedy="name a file, or write the report with --report FILE"))
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


LABELS: Final = {
    "float": "computed in float",
    "kept": "kept as they are",
    "kernel": "kernels of the target",
    "unquantized": "without quantized tensors",
}
COLOURS: Final = {"integer": "green", "float": "yellow", "kept": "yellow", "kernel": "green", "unquantized": ""}
UNKNOWN: Final = "unknown before a run"
"""Said of an arena that depends on the values that are computed."""
KINDS, NUMBERS = 5, 8
"""How many kinds of operators, and numbers of operators, are listed."""
COUNTS = ("integer", "float", "kept")


def verdict(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What became of the operators: a label and a text for each way, the integer one first."""
    ways: dict[str, list[Row]] = {}
    for row in rows:
        ways.setdefault(row.outcome, []).append(row)
    total = len(rows)
    lines = [("integer", f"{len(ways.get('integer', ()))} of {total} operator{'s' * (total != 1)}")]
    return lines + [(LABELS[way], f"{len(ways[way])} ({_kinds(ways[way])})") for way in LABELS if way in ways]


def print_verdict(rows: Sequence[Row], *, err: bool = False) -> None:
    lines = verdict(rows)
    surprises = {LABELS["float"], LABELS["kept"]}
    whole = surprises.isdisjoint(label for label, _ in lines)
    for label, text in lines:
        colour = "yellow" if label in surprises else "green" if whole else ""
        output.line((f"{label}: ", f"bold {colour}".strip()), (text, "bold"), err=err)


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
        text += f", {output.size(planned.kept)} of it kept"
    return f"{text}, and what {', '.join(planned.beside)} needs" if planned.beside else text


def print_cost(cost: Cost, *, err: bool = False) -> None:
    """File and arena before and after, and whether an interpreter runs the result slower."""
    told = f"file {output.change(cost.bytes_in, cost.bytes_out)}"
    if cost.arena is not None:
        told += f", arena {arena(cost.arena, cost.arena_in)}"
    output.line(told, err=err)
    for text in filter(None, (cost.slower, cost.instead)):
        output.line((text, "yellow"), err=err)


def print_timings(timings: Sequence[Timing], *, err: bool = False) -> None:
    """What each pass took, and the verifier after it; those that changed nothing are dim."""
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


def print_report(report: Report, *, err: bool = False) -> None:
    """Operators by path, then why some are not integer, then the warnings."""
    opcodes: dict[str, Counter[str]] = {}
    for row in sorted(report.rows, key=lambda row: row.name):
        opcodes.setdefault(row.name, Counter()).update({row.path: 1, "made": row.made})
    if report.rows:
        rows = [_counted(name, counts) for name, counts in opcodes.items()]
        rows.append(_counted("total", sum(opcodes.values(), Counter())))
        output.table(["operator", *COUNTS, "made"], rows, right=(1, 2, 3, 4), total=True, err=err)
        output.line(("made: operators of the result that compute those on the left", "dim"), err=err)
    if report.requirements is not None:
        output.line(err=err)
        output.field("needs", str(report.requirements), err=err)
    _print_reasons(report.rows, err=err)
    output.warnings(warnings(report), err=err)


def warnings(report: Report) -> list[str]:
    """Warnings of the model, then of operators; a text that concerns several operators is listed once."""
    by_text: dict[str, list[Row]] = {}
    for row in report.rows:
        if row.warning:
            by_text.setdefault(row.advice, []).append(row)
    of_rows = sum(map(len, by_text.values()))
    of_model = report.warnings[: len(report.warnings) - of_rows]
    return [*dict.fromkeys(of_model), *(f"{_places(rows)}: {text}" for text, rows in by_text.items())]


def _print_reasons(rows: Iterable[Row], *, err: bool) -> None:
    """Prints why operators are not integer, one row for each kind."""
    kinds: dict[tuple[Outcome, str, str], list[Row]] = {}
    for row in rows:
        if row.outcome in ("float", "kept"):
            kinds.setdefault((row.outcome, row.name, row.reason), []).append(row)
    if not kinds:
        return
    table: list[list[Cell]] = [
        [name, _numbers(alike), (path, COLOURS[path]), why] for (path, name, why), alike in sorted(kinds.items())
    ]
    output.line(err=err)
    output.table(["operator", "number", "path", "why"], table, err=err)


def types(operands: Sequence[str], results: Sequence[str]) -> str:
    """The types of an operator's operands and results; long runs of one type are counted: "qi8, none x3 -> qi8"."""

    def listed(names: Sequence[str]) -> str:
        runs = [(name, len(list(run))) for name, run in groupby(names)]
        return ", ".join(f"{name} x{n}" if n > 2 else ", ".join([name] * n) for name, n in runs)

    return f"{listed(operands)} -> {listed(results)}"


def _counted(name: str, counts: Counter[str]) -> list[Cell]:
    return [name, *(str(counts[key] or "-") for key in (*COUNTS, "made"))]


def _kinds(rows: Sequence[Row]) -> str:
    """Names and how often: "CONV_2D x3, ADD"; custom operators first, then the most frequent."""
    counts = Counter((not row.custom_code, row.name) for row in rows)
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1]))
    listed = [f"{name} x{count}" if count > 1 else name for (_, name), count in ordered]
    return _and_more(listed, KINDS, "kind")


def _numbers(rows: Sequence[Row]) -> str:
    """The operators' numbers; outside the first subgraph, the subgraph's number comes first: "3, 7, 1:0"."""
    if len(rows) == 1 and rows[0].tensor:
        return f"{rows[0].number} '{rows[0].tensor}'"
    return _and_more([row.number for row in rows], NUMBERS, "")


def _places(rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        return rows[0].place
    return f"{len(rows)} operators ({_kinds(rows)}), the first of them {rows[0].place}"


def _and_more(texts: Sequence[str], most: int, what: str) -> str:
    rest = len(texts) - most
    if rest <= 1:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} and {rest} more{f' {what}s' if what else ''}"
