"""`tflq convert`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click

from tflq.backends import DEFAULT, backend
from tflq.cli import output
from tflq.cli import output as streams
from tflq.cli import output as talk
from tflq.cli.conversion_options import FORMAT, FORMS, PARTS, complete_target, conversion_options
from tflq.cli.main import BUG, Failure, SectionedCommand, Stopped
from tflq.cli.output import MODEL, Cell, is_stream
from tflq.cli.verify import print_cost, print_report, print_timings, print_verdict, warnings
from tflq.errors import FileError, OptionError, Reason
from tflq.files import Output, check_outputs, file_errors, replace_file
from tflq.processes import Died, in_processes

if TYPE_CHECKING:
    from tflq.conversion import Conversion
    from tflq.cost import Cost
    from tflq.report import Report


JSON_VERSION = 2


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
@click.option(
    "--target",
    shell_complete=complete_target,
    metavar="NAME|PATH.toml",
    help="Which operators the result may use: integer or kernels (.tflite), tosa (.tosa, .mlir), or a target file.",
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
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
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

        many = Many(folder, options, force=force, skip=skip, workers=workers, as_json=as_json, quiet=talk.quiet())
        context.exit(convert_many(models, many))
    if len(paths) != 2:
        raise click.UsageError("Give a model IN and a file OUT, or models and folders IN... and a folder: -o DIR.")
    if workers is not None or skip:
        raise click.UsageError("--workers and --skip-existing are for many models: IN... -o DIR.")
    source, destination = _model(context, paths[0]), paths[1]
    _check(source, destination, report_path, dump_ir, options, force=force, as_json=as_json)
    from tflq import convert
    from tflq.conversion import destinations, observed

    given = streams.source(source)
    place = None if is_stream(destination) else destination
    with talk.progress_talk(f"converting {streams.name_of(source)}", silent=as_json):
        start = time.perf_counter()
        if dump_ir is None:
            conversion = convert(given, place, force=force, **options)
        else:
            conversion = observed(given, place, force=force, dump_ir=dump_ir, **options)
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
        document = {"format": "tflq.conversion", "version": JSON_VERSION, "source": source, "destination": destination}
        measures = {**conversion.cost.to_json(), "seconds": round(seconds, 4)}
        document |= {"files": written, "options": options, **measures, "report": conversion.report.to_json()}
        if timings:
            from dataclasses import asdict

            document["timings"] = [asdict(row) for row in conversion.timings]
        output.print_json(document)
    elif not talk.quiet():
        made = f"{streams.name_of(source)} -> {', '.join(written)} in {seconds:.2f} s"
        _print(conversion, made, timings=timings, err=place is None)


def _print(conversion: Conversion, made: str, *, timings: bool, err: bool) -> None:
    """The verdict, what was `made`, what it costs, and the report."""
    print_verdict(conversion.report.rows, err=err)
    output.line(made, err=err)
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
    """Whether all that one conversion writes has a place of its own."""
    if os.path.isdir(destination):
        raise FileError(destination, "this is a folder", remedy="name a file, or say -o DIR")
    outputs: list[Output] = [("OUT", streams.stream_or_path(destination, 1)), ("--report", report)]
    inputs = streams.stream_or_path(source, 0), options["target"], *options["rules"]
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
        streams.check_output(text=backend(options["format"] or DEFAULT).text)


def _model(context: click.Context, path: str) -> str:
    """The path of a model, if there is one."""
    return str(MODEL.convert(path, None, context))


def _write(conversion: Conversion) -> None:
    """Writes the one file of a conversion to standard output."""
    if len(conversion.files) > 1:
        what = f"there is a file for each signature: {', '.join(conversion.files)}"
        raise OptionError(Reason(what, remedy="--signature says which"))
    streams.write_output([conversion.data])


# `tflq convert IN... -o DIR`: many models, each on its own, and one summary.
#
# A folder among IN stands for all models in it, and keeps its tree. Each file is whole or not there, so what is in
# DIR after an interruption is done: `--skip-existing` goes on with the rest.


MANY_JSON_VERSION: Final = 2
_WORDS: Final = {2: "failed", 3: "invalid model", 4: "not supported", BUG: "bug"}


_SUFFIXES: Final = (".tflite", ".tosa")
"""Of the files in a folder that are models."""


@dataclass(frozen=True)
class Many:
    """What is asked of a conversion into a folder. skip: files that are there already stay, and are not made again.
    workers: processes; None for as many as there are cores."""

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
    """What became of a model: its report, or why there is none: a failure, or its files were there already."""

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
        places = {"source": self.source, "destination": str(self.destination), "files": list(self.files)}
        if self.report is None:
            return {"format": "tflq.skipped", "version": MANY_JSON_VERSION, **places}
        assert self.cost is not None
        return {
            "format": "tflq.conversion",
            "version": MANY_JSON_VERSION,
            **places,
            "options": dict(options),
            **self.cost.to_json(),
            "seconds": round(self.seconds, 4),
            "report": self.report.to_json(),
        }


def convert_many(given: Sequence[str], many: Many) -> int:
    """Converts models, and those in folders, into a folder, which is made if it is not there; the worst of the exit
    codes. Nothing is written if files would meet."""
    if many.force and many.skip:
        raise OptionError("--force replaces files, --skip-existing leaves them: give one of them")
    folder = Path(many.folder)
    jobs = _jobs(given, folder, many)
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    found: dict[int, _Outcome] = {}
    workers = many.workers or min(os.cpu_count() or 1, len(jobs))
    try:
        with talk.progress_talk("converting", silent=many.as_json, total=len(jobs)) as display:
            for number, outcome in _run(jobs, workers):
                found[number] = outcome
                if display is not None:
                    display.advance(display.task_ids[0])
    except (KeyboardInterrupt, Stopped):
        done = f"{len(found)} of {len(jobs)} are done; the same command with --skip-existing goes on with the rest"
        output.line(done, err=True)
        raise
    outcomes = _apart([found[number] for number in range(len(jobs))])
    seconds = time.perf_counter() - start
    code = max(outcome.failure.code if outcome.failure else 0 for outcome in outcomes)
    if many.as_json:
        from tflq.cost import total

        document = {"format": "tflq.conversions", "version": MANY_JSON_VERSION, "destination": str(folder)}
        document |= {"exit_code": code, "seconds": round(seconds, 4), "cost": total(_costs(outcomes)).to_json()}
        document |= {"skipped": sum(outcome.skipped for outcome in outcomes)}
        output.print_json({**document, "conversions": [outcome.to_json(many.options) for outcome in outcomes]})
        return code
    if not talk.quiet():
        _many_print(outcomes, folder, seconds)
    _print_failures(outcomes)
    return code


def _jobs(given: Sequence[str], folder: Path, many: Many) -> list[_Job]:
    """A job per model, all places checked."""
    models = [model for path in given for model in _models(Path(path), folder)]
    suffix = backend(many.format).suffixes[0]
    places = [folder / inside.parent / f"{inside.stem}.{suffix}" for _, inside in models]
    sources = [os.fspath(source) for source, _ in models]
    inputs = *sources, many.options.get("target"), *many.options.get("rules", ())
    check_outputs(zip(sources, places, strict=True), inputs=inputs, force=many.force or many.skip, folders=True)
    return [_Job(source, place, inputs, many, talk.verbosity()) for source, place in zip(sources, places, strict=True)]


def _models(path: Path, folder: Path) -> list[tuple[Path, Path]]:
    """A model, or those in a folder, each with its path in the output folder, but for its suffix. What is in the output
    folder is a result, and no model to convert."""
    if not path.is_dir():
        return [(path, Path(path.name))]
    root, results = path.resolve(), folder.resolve()
    if root == results:
        raise OptionError(Reason("the models to convert are in this folder", str(folder), remedy="write to another"))
    inside = [
        each.relative_to(path)
        for each in sorted(path.rglob("*"))
        if each.suffix in _SUFFIXES and not each.is_dir() and results not in each.resolve().parents
    ]
    if not inside:
        raise FileError(str(path), f"there is no model in this folder: no {' or '.join(_SUFFIXES)} file")
    return [(path / each, each) for each in inside]


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
            failure = Failure("Died", BUG, str(reason), (reason.to_json(),))
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
        with talk.spoken(job.verbosity):
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
    """The files of a conversion if all of them are there. TOSA has one for each of several signatures: which these are
    is read from the model, if there is a file of such a name."""
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
    """The outcomes; of two that wrote the same file for a signature, the latter failed."""
    written: dict[str, str] = {}
    found = []
    for outcome in outcomes:
        for path in outcome.files:
            other = written.setdefault(path, outcome.source)
            if other is not outcome.source:
                reason = Reason(f"{other} and {outcome.source} were both written to it", path, remedy="rename one")
                failure = Failure("FileError", 2, str(reason), (reason.to_json(),))
                outcome = replace(outcome, files=(), report=None, failure=failure)
                break
        found.append(outcome)
    return found


def _many_print(outcomes: Sequence[_Outcome], folder: Path, seconds: float) -> None:
    done = [outcome.report for outcome in outcomes if outcome.report is not None]
    skipped = sum(outcome.skipped for outcome in outcomes)
    colour = "green" if len(done) + skipped == len(outcomes) else "red"
    there = f", {skipped} of {len(outcomes)} were there" if skipped else ""
    output.line(("converted: ", f"bold {colour}"), (f"{len(done)} of {len(outcomes)} models{there}", "bold"))
    if done:
        print_verdict([row for report in done for row in report.rows])
    output.line(f"{folder}{os.sep} in {seconds:.2f} s")
    if costs := _costs(outcomes):
        _print_total(costs)
    output.line()
    head = ["file", "outcome", "integer", "float", "kept", "size", "arena"]
    output.table(head, [_row(outcome, folder) for outcome in outcomes], right=(2, 3, 4))
    for outcome in outcomes:
        if outcome.report is not None:
            output.warnings([f"{outcome.source}: {text}" for text in warnings(outcome.report)])


def _print_total(costs: Sequence[Cost]) -> None:
    from tflq.cost import total

    print_cost(total(costs))
    if unknown := sum(cost.arena is not None and cost.arenas is None for cost in costs):
        output.line(f"not in this sum: {unknown} model{'s' * (unknown > 1)} whose arena is unknown before a run")


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


def _print_failures(outcomes: Sequence[_Outcome]) -> None:
    for outcome in outcomes:
        if outcome.failure is not None:
            outcome.failure.show()
