"""`tflq convert`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click

from tflq.backends import DEFAULT, backend
from tflq.cli import output
from tflq.cli.main import BUG, INVALID, UNSUPPORTED, USAGE, Failure, SectionedCommand, Stopped
from tflq.cli.options import FORMAT, FORMS, PARTS, conversion_options, json_option, target_option
from tflq.cli.output import MODEL, Cell, is_stream
from tflq.cli.report import print_cost, print_report, print_timings, print_verdict, warnings
from tflq.errors import FileError, OptionError, Reason
from tflq.files import Output, check_outputs, file_errors, replace_file
from tflq.processes import Died, in_processes

if TYPE_CHECKING:
    from tflq.conversion import Conversion
    from tflq.cost import Cost
    from tflq.report import Report

JSON_VERSION: Final = 2


class _Convert(SectionedCommand):
    most_used = ("target", "mac", "prefer", "fallback", "batch", "cut", "folder", "force", "report_path", "as_json")
    sections: ClassVar = {
        "What the result is": ("target", "format", *FORMS),
        "Which part of the model, and which shapes": PARTS,
        "Where it goes, and what is said": ("folder", "workers", "force", "skip", "report_path", "as_json"),
        "What happens inside": ("cache", "dump_ir", "timings"),
    }


@click.command(cls=_Convert)
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
    type=FORMAT,
    help="The output format when OUT is `-`; otherwise its suffix says it. By default tflite.",
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
def command(
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
    """Convert model IN, TFLite or TOSA, to OUT, whose suffix says the format: .tflite, .tosa or .mlir.

    `-` as IN is standard input, as OUT standard output; the summary goes to stderr then. With -o DIR each IN is a model
    or a folder: all .tflite and .tosa files in it are converted, and DIR gets its tree.
    """
    if folder is not None:
        if dump_ir is not None or timings:
            raise click.UsageError("--dump-ir and --timings are for one model.")
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
        document = _document(source, destination, written, options, conversion.report, conversion.cost, seconds)
        if timings:
            from dataclasses import asdict

            document["timings"] = [asdict(row) for row in conversion.timings]
        output.print_json(document)
    elif not output.quiet():
        where = f"{output.name_of(source)} -> {', '.join(written)} in {seconds:.2f} s"
        _print(conversion, where, timings=timings, err=place is None)


def _document(
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


# `tflq convert IN... -o DIR`: many models, each on its own, and one summary.
#
# A folder among IN stands for all models in it, and keeps its tree. Each file is whole or not there, so what is in
# DIR after an interruption is done: `--skip-existing` goes on with the rest.


_WORDS: Final = {INVALID: "invalid model", UNSUPPORTED: "not supported", BUG: "bug"}
_SUFFIXES: Final = (".tflite", ".tosa")
"""Of models in a folder."""


@dataclass(frozen=True)
class Many:
    """What is asked of a conversion into a folder. skip: files that are there already stay, and are not made again.
    workers: processes; None for one per core."""

    folder: str
    options: Mapping[str, Any]
    force: bool = False
    skip: bool = False
    workers: int | None = None
    as_json: bool = False
    quiet: bool = False

    @property
    def format(self) -> str:
        return self.options.get("format") or DEFAULT


@dataclass(frozen=True)
class _Job:
    source: str
    destination: Path
    inputs: tuple[object, ...]
    many: Many
    verbosity: int


@dataclass(frozen=True)
class _Outcome:
    """What became of a model: a report, or a failure; neither if its files were there already."""

    source: str
    destination: Path
    seconds: float
    files: tuple[str, ...] = ()
    report: Report | None = None
    cost: Cost | None = None
    failure: Failure | None = None

    @property
    def skipped(self) -> bool:
        return self.report is None and self.failure is None

    def to_json(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if self.failure is not None:
            return {**self.failure.to_json(), "source": self.source}
        source, destination = self.source, str(self.destination)
        if self.report is None:
            places = {"source": source, "destination": destination, "files": list(self.files)}
            return {"format": "tflq.skipped", "version": JSON_VERSION, **places}
        assert self.cost is not None
        return _document(source, destination, self.files, options, self.report, self.cost, self.seconds)


def convert_many(paths: Sequence[str], many: Many) -> int:
    """Converts models, and those in folders, into a folder, which is made if it is missing. Returns the worst of the
    exit codes. Nothing is written if two results would be the same file."""
    if many.force and many.skip:
        raise OptionError("--force replaces files, --skip-existing leaves them: give one of them")
    folder = Path(many.folder)
    jobs = _jobs(paths, folder, many)
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    done: dict[int, _Outcome] = {}
    workers = many.workers or min(os.cpu_count() or 1, len(jobs))
    try:
        with output.progress("converting", silent=many.as_json, total=len(jobs)) as show:
            for number, outcome in _run(jobs, workers):
                done[number] = outcome
                show("", len(done))
    except (KeyboardInterrupt, Stopped):
        rest = f"{len(done)} of {len(jobs)} are done; the same command with --skip-existing goes on with the rest"
        output.line(rest, err=True)
        raise
    outcomes = _apart([done[number] for number in range(len(jobs))])
    seconds = time.perf_counter() - start
    code = max(outcome.failure.code if outcome.failure else 0 for outcome in outcomes)
    if many.as_json:
        from tflq.cost import total

        document = {"format": "tflq.conversions", "version": JSON_VERSION, "destination": str(folder)}
        document |= {"exit_code": code, "seconds": round(seconds, 4), "cost": total(_costs(outcomes)).to_json()}
        document |= {"skipped": sum(outcome.skipped for outcome in outcomes)}
        output.print_json({**document, "conversions": [outcome.to_json(many.options) for outcome in outcomes]})
        return code
    if not many.quiet:
        _print_outcomes(outcomes, folder, seconds)
    for outcome in outcomes:
        if outcome.failure is not None:
            outcome.failure.show()
    return code


def _jobs(paths: Sequence[str], folder: Path, many: Many) -> list[_Job]:
    """A job per model, all places checked."""
    models = [model for path in paths for model in _models(Path(path), folder)]
    suffix = backend(many.format).suffixes[0]
    places = [folder / inside.parent / f"{inside.stem}.{suffix}" for _, inside in models]
    sources = [os.fspath(source) for source, _ in models]
    inputs = *sources, many.options.get("target"), *many.options.get("rules", ())
    check_outputs(zip(sources, places, strict=True), inputs=inputs, force=many.force or many.skip, folders=True)
    return [
        _Job(source, place, inputs, many, output.verbosity()) for source, place in zip(sources, places, strict=True)
    ]


def _models(path: Path, folder: Path) -> list[tuple[Path, Path]]:
    """A model, or those in a folder, each with its path in the output folder, suffix apart. Files in the output folder
    are results, and are not converted."""
    if not path.is_dir():
        return [(path, Path(path.name))]
    root, results = path.resolve(), folder.resolve()
    if root == results:
        raise OptionError(Reason("the models to convert are in this folder", str(folder), remedy="write to another"))
    inside = [
        file.relative_to(path)
        for file in sorted(path.rglob("*"))
        if file.suffix in _SUFFIXES and not file.is_dir() and results not in file.resolve().parents
    ]
    if not inside:
        raise FileError(str(path), f"there is no model in this folder: no {' or '.join(_SUFFIXES)} file")
    return [(path / name, name) for name in inside]


def _run(jobs: Sequence[_Job], workers: int) -> Iterator[tuple[int, _Outcome]]:
    """Number and outcome of each job, as they are done."""
    if workers == 1 or len(jobs) == 1:
        yield from ((number, _convert(replace(job, verbosity=0))) for number, job in enumerate(jobs))
        return
    for number, answer in in_processes(_convert, jobs, workers):
        if isinstance(answer, Died):
            job = jobs[number]
            what = f"its process ended ({answer}), perhaps for want of memory"
            reason = Reason(what, job.source, remedy="with --workers 1 it has the machine for itself")
            failure = Failure.because("Died", BUG, reason)
            yield number, _Outcome(job.source, job.destination, 0.0, failure=failure)
        else:
            yield number, answer


def _convert(job: _Job) -> _Outcome:
    """One model: its outcome, whatever happens."""
    from tflq.conversion import convert, destinations, write

    start = time.perf_counter()
    options = {**job.many.options, "format": job.many.format}
    try:
        if job.many.skip and (there := _there(job, options)):
            return _Outcome(job.source, job.destination, 0.0, there)
        with output.spoken(job.verbosity):
            conversion = convert(job.source, **options)
            places = destinations(conversion.module, conversion.format, job.destination)
            files = tuple(place for place, _ in places)
            missing = [(place, at) for place, at in places if not (job.many.skip and os.path.isfile(place))]
            with file_errors(job.destination):
                job.destination.parent.mkdir(parents=True, exist_ok=True)
            write(conversion, missing, inputs=job.inputs, force=job.many.force)
    except Exception as error:  # noqa: BLE001 - of one model; the others go on
        failure = Failure.of(error)
        if job.source not in failure.message:
            failure = replace(failure, message=f"{job.source}: {failure.message}")
        return _Outcome(job.source, job.destination, time.perf_counter() - start, failure=failure)
    seconds = time.perf_counter() - start
    cost = conversion.cost if job.many.as_json or not job.many.quiet else None
    return _Outcome(job.source, job.destination, seconds, files, conversion.report, cost)


def _there(job: _Job, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The files of a conversion if all of them are there. TOSA has one per signature if there are several: their names
    are read from the model, if there is a file that could be one."""
    from tflq.conversion import expected_places

    if job.destination.is_file():
        return (os.fspath(job.destination),)
    folder, (stem, suffix) = job.destination.parent, os.path.splitext(job.destination.name)
    if not backend(options["format"]).one_entry or not folder.is_dir():
        return ()
    if not any(name.startswith(f"{stem}.") and name.endswith(suffix) for name in os.listdir(folder)):
        return ()
    asked_for = {name: value for name, value in options.items() if name != "rules"}  # they change no entry
    files = tuple(place for place, _ in expected_places(job.source, job.destination, **asked_for))
    return files if all(map(os.path.isfile, files)) else ()


def _apart(outcomes: Sequence[_Outcome]) -> list[_Outcome]:
    """The outcomes; where two wrote the same file for a signature, the second one failed."""
    written: dict[str, str] = {}
    checked = []
    for outcome in outcomes:
        for path in outcome.files:
            other = written.setdefault(path, outcome.source)
            if other is not outcome.source:
                reason = Reason(f"{other} and {outcome.source} were both written to it", path, remedy="rename one")
                failure = Failure.because("FileError", USAGE, reason)
                outcome = replace(outcome, files=(), report=None, failure=failure)
                break
        checked.append(outcome)
    return checked


def _print_outcomes(outcomes: Sequence[_Outcome], folder: Path, seconds: float) -> None:
    done = [outcome.report for outcome in outcomes if outcome.report is not None]
    skipped = sum(outcome.skipped for outcome in outcomes)
    colour = "green" if len(done) + skipped == len(outcomes) else "red"
    there = f", {skipped} of {len(outcomes)} were there" if skipped else ""
    output.line(("converted: ", f"bold {colour}"), (f"{len(done)} of {len(outcomes)} models{there}", "bold"))
    if done:
        print_verdict([row for report in done for row in report.rows])
    output.line(f"{folder}{os.sep} in {seconds:.2f} s")
    if costs := _costs(outcomes):
        from tflq.cost import total

        print_cost(total(costs))
        if unknown := sum(cost.arena is not None and cost.arenas is None for cost in costs):
            output.line(f"not in this sum: {unknown} model{'s' * (unknown > 1)} whose arena is unknown before a run")
    output.line()
    head = ["file", "outcome", "integer", "float", "kept", "size", "arena"]
    output.table(head, [_row(outcome, folder) for outcome in outcomes], right=(2, 3, 4))
    for outcome in outcomes:
        if outcome.report is not None:
            output.warnings([f"{outcome.source}: {text}" for text in warnings(outcome.report)])


def _row(outcome: _Outcome, folder: Path) -> list[Cell]:
    name = os.path.relpath(outcome.destination, folder)
    if outcome.failure is not None:
        return [name, (_WORDS.get(outcome.failure.code, "failed"), "red"), *"---", "", ""]
    if outcome.report is None or outcome.cost is None:
        return [name, ("was there", "dim"), *"---", "", ""]
    cost, counts = outcome.cost, outcome.report.counts
    numbers = [str(counts[path] or "-") for path in ("integer", "float", "kept")]
    arenas = "-" if cost.arena is None else output.change(*cost.arenas) if cost.arenas else "unknown"
    return [name, ("converted", "green"), *numbers, output.change(cost.bytes_in, cost.bytes_out), arenas]


def _costs(outcomes: Sequence[_Outcome]) -> list[Cost]:
    return [outcome.cost for outcome in outcomes if outcome.cost is not None]
