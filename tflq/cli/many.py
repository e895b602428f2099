"""`tflq convert IN... -o DIR`: many models, each on its own, and one summary.

A folder among IN stands for all models in it, and keeps its tree. Each file is whole or not there, so what is in DIR
after an interruption is done: `--skip-existing` goes on with the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tflq.base.errors import FileError, OptionError, Reason, TflqError
from tflq.base.files import check_outputs, file_errors
from tflq.base.processes import Died, in_processes
from tflq.base.tables import Cell
from tflq.cli import output
from tflq.cli.conversion_report import JSON_VERSION, document_of, print_cost
from tflq.cli.main import BUG, INVALID, UNSUPPORTED, Failure, Stopped
from tflq.conversion.report import verdict_lines, warnings
from tflq.formats.backend import DEFAULT, backend

if TYPE_CHECKING:
    from tflq.conversion.cost import Cost
    from tflq.conversion.report import Report
    from tflq.formats.sources import Source

_WORDS: Final = {INVALID: "invalid model", UNSUPPORTED: "not supported", BUG: "bug"}
_SUFFIXES: Final = (".tflite", ".tosa")
"""Of models in a folder."""


@dataclass(frozen=True)
class Many:
    """Options of a conversion into a folder. skip: files that are there already stay, and are not made again.
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
    """content: what is read, which of a pipe is in memory already."""

    source: str
    content: Source
    destination: Path
    inputs: tuple[object, ...]
    many: Many
    verbosity: int


@dataclass(frozen=True)
class _Outcome:
    """Outcome for a model: a report, or a failure; neither if its files were there already."""

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
        return document_of(source, destination, self.files, options, self.report, self.cost, self.seconds)


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
    outcomes = [done[number] for number in range(len(jobs))]
    seconds = time.perf_counter() - start
    code = max(outcome.failure.code if outcome.failure else 0 for outcome in outcomes)
    if many.as_json:
        from tflq.conversion.cost import total

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
    jobs = [
        _Job(source, _content(source), place, inputs, many, output.verbosity())
        for source, place in zip(sources, places, strict=True)
    ]
    check_outputs(_files(jobs), inputs=inputs, force=True, folders=True)  # two jobs for a file: no --force helps
    check_outputs(zip(sources, places, strict=True), inputs=inputs, force=many.force or many.skip, folders=True)
    return jobs


def _files(jobs: Sequence[_Job]) -> Iterator[tuple[str, str]]:
    """The source and the place of each file that the jobs can write."""
    stems = {os.path.splitext(job.destination)[0] for job in jobs}
    begins = {stem: {stem[:at] for at, letter in enumerate(stem) if letter == "."} & stems for stem in stems}
    near = {stem for stem, others in begins.items() if others}.union(*begins.values())
    for job in jobs:
        format, places = backend(job.many.format), [os.fspath(job.destination)]
        if format.one_entry and os.path.splitext(job.destination)[0] in near:
            with suppress(TflqError):  # of the conversion, which comes to it, too
                places = _expected(job)
        for place in places:
            yield job.source, place
            for ending in format.endings_with(job.many.options.get("choices", {}))[1:]:
                yield job.source, os.path.splitext(place)[0] + ending


def _expected(job: _Job) -> list[str]:
    """The places of a conversion's files, of which each signature may have one: the model is read."""
    from tflq.conversion.convert import expected_places

    options = {**job.many.options, "format": job.many.format}
    keywords = {name: value for name, value in options.items() if name != "rules"}  # they change no entry
    return [place for place, _ in expected_places(job.content, job.destination, **keywords)]


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
        if file.suffix.lower() in _SUFFIXES
        and not (file.is_dir() or file.is_fifo())
        and results not in file.resolve().parents
    ]
    if not inside:
        raise FileError(str(path), f"there is no model in this folder: no {' or '.join(_SUFFIXES)} file")
    return [(path / name, name) for name in inside]


def _content(source: str) -> Source:
    """The source, readable in other processes, too; one that is not there is an error of its own conversion."""
    from tflq.formats.sources import reusable_source

    try:
        return reusable_source(source)
    except FileError:
        return source


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
    from tflq.conversion.convert import convert, destinations, write

    start = time.perf_counter()
    options = {**job.many.options, "format": job.many.format}
    try:
        if job.many.skip and (there := _there(job)):
            return _Outcome(job.source, job.destination, 0.0, there)
        with output.spoken(job.verbosity):
            conversion = convert(job.content, **options)
            places = destinations(conversion.module, conversion.format, job.destination)
            missing = [(place, at) for place, at in places if not (job.many.skip and os.path.isfile(place))]
            with file_errors(job.destination):
                job.destination.parent.mkdir(parents=True, exist_ok=True)
            written = write(conversion, missing, inputs=job.inputs, force=job.many.force)
            files = tuple(chain.from_iterable(written.get(place, [place]) for place, _ in places))
    except Exception as error:  # noqa: BLE001 - of one model; the others go on
        failure = Failure.of(error)
        if job.source not in failure.message:
            failure = Failure(failure.kind, failure.code, f"{job.source}: {failure.message}", failure.reasons)
        return _Outcome(job.source, job.destination, time.perf_counter() - start, failure=failure)
    seconds = time.perf_counter() - start
    cost = conversion.cost if job.many.as_json or not job.many.quiet else None
    return _Outcome(job.source, job.destination, seconds, files, conversion.report, cost)


def _there(job: _Job) -> tuple[str, ...]:
    """The files of a conversion if all of them are there. TOSA has one per signature if there are several: their names
    are read from the model, if there is a file that could be one."""
    if job.destination.is_file():
        return (os.fspath(job.destination),)
    folder, (stem, suffix) = job.destination.parent, os.path.splitext(job.destination.name)
    if not backend(job.many.format).one_entry or not folder.is_dir():
        return ()
    if not any(name.startswith(f"{stem}.") and name.endswith(suffix) for name in os.listdir(folder)):
        return ()
    files = tuple(_expected(job))
    return files if all(map(os.path.isfile, files)) else ()


def _print_outcomes(outcomes: Sequence[_Outcome], folder: Path, seconds: float) -> None:
    done = [outcome.report for outcome in outcomes if outcome.report is not None]
    skipped = sum(outcome.skipped for outcome in outcomes)
    colour = "green" if len(done) + skipped == len(outcomes) else "red"
    there = f", {skipped} of {len(outcomes)} were there" if skipped else ""
    output.line(("converted: ", f"bold {colour}"), (f"{len(done)} of {len(outcomes)} models{there}", "bold"))
    if done:
        output.blocks(verdict_lines([row for report in done for row in report.rows]))
    output.line(f"{folder}{os.sep} in {seconds:.2f} s")
    if costs := _costs(outcomes):
        from tflq.conversion.cost import total

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
