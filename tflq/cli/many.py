"""`tflq convert IN... -o DIR`: many models, each on its own, and one summary."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tflq.cli import output, talk
from tflq.cli.failures import BUG, Failure
from tflq.cli.output import Cell
from tflq.cli.verdict import print_cost, print_verdict, warnings
from tflq.cli.workers import Died, in_processes
from tflq.errors import FileError, OptionError, Reason

if TYPE_CHECKING:
    from tflq.cost import Cost
    from tflq.report import Report

__all__ = ["convert_many"]

JSON_VERSION: Final = 2
_WORDS: Final = {2: "failed", 3: "invalid model", 4: "not supported", BUG: "bug"}


@dataclass(frozen=True)
class _Job:
    source: str
    destination: Path
    options: Mapping[str, Any]
    verbosity: int
    told: bool  # whether anybody wants to know what it costs


@dataclass(frozen=True)
class _Outcome:
    """What became of a model: its report, or why there is none."""

    source: str
    destination: Path
    seconds: float
    files: tuple[str, ...] = ()
    report: Report | None = None
    cost: Cost | None = None
    failure: Failure | None = None

    def to_json(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if self.failure is not None:
            return {**self.failure.to_json(), "source": self.source}
        assert self.report is not None
        assert self.cost is not None
        return {
            "format": "tflq.conversion",
            "version": JSON_VERSION,
            "source": self.source,
            "destination": str(self.destination),
            "files": list(self.files),
            "options": dict(options),
            **self.cost.to_json(),
            "seconds": round(self.seconds, 4),
            "report": self.report.to_json(),
        }


def convert_many(
    sources: Sequence[str], folder: Path, options: Mapping[str, Any], *, workers: int, force: bool, as_json: bool
) -> int:
    """Converts models into a folder, which is made if it is not there; the worst of the exit codes. Nothing is written
    if files would meet."""
    format = options.get("format") or "tflite"
    places = [folder / f"{Path(source).stem}.{format}" for source in sources]
    _check_places(sources, places, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    given = {**options, "format": format, "force": force}
    common = given, talk.verbosity(), as_json or not talk.quiet()
    jobs = [_Job(source, place, *common) for source, place in zip(sources, places, strict=True)]
    start = time.perf_counter()
    found: dict[int, _Outcome] = {}
    with talk.progress("converting", silent=as_json, total=len(jobs)) as display:
        for number, outcome in _run(jobs, workers):
            found[number] = outcome
            if display is not None:
                display.advance(display.task_ids[0])
    outcomes = _apart([found[number] for number in range(len(jobs))])
    seconds = time.perf_counter() - start
    code = max(outcome.failure.code if outcome.failure else 0 for outcome in outcomes)
    if as_json:
        from tflq.cost import total

        document = {"format": "tflq.conversions", "version": JSON_VERSION, "destination": str(folder)}
        document |= {"exit_code": code, "seconds": round(seconds, 4), "cost": total(_costs(outcomes)).to_json()}
        output.print_json({**document, "conversions": [outcome.to_json(options) for outcome in outcomes]})
        return code
    if not talk.quiet():
        _print(outcomes, folder, seconds)
    _print_failures(outcomes)
    return code


def _check_places(sources: Sequence[str], places: Sequence[Path], *, force: bool) -> None:
    taken: dict[str, str] = {}
    originals = {os.path.realpath(source) for source in sources}
    for source, place in zip(sources, places, strict=True):
        other = taken.setdefault(os.path.normcase(place), source)
        if other is not source:
            raise OptionError(Reason(f"it would be made of {other} and of {source}", str(place), remedy="rename one"))
        if os.path.realpath(place) in originals:
            raise FileError(str(place), "this is a model to convert", remedy="give another folder")
        if place.is_file() and not force:
            raise FileError(str(place), "it exists already", remedy="--force replaces it")


def _run(jobs: Sequence[_Job], workers: int) -> Iterator[tuple[int, _Outcome]]:
    """Number and outcome of each job, as they are done."""
    if workers == 1 or len(jobs) == 1:
        yield from ((number, _convert(replace(job, verbosity=0))) for number, job in enumerate(jobs))
        return
    for number, answer in in_processes(_convert, jobs, workers):
        if isinstance(answer, Died):
            job = jobs[number]
            reason = Reason(str(answer), job.source, remedy="with --workers 1 it has the machine for itself")
            failure = Failure("Died", BUG, str(reason), (reason.to_json(),))
            yield number, _Outcome(job.source, job.destination, 0.0, failure=failure)
        else:
            yield number, answer


def _convert(job: _Job) -> _Outcome:
    """One model: its outcome, whatever happens."""
    from tflq.conversion import convert, destinations

    start = time.perf_counter()
    try:
        with talk.spoken(job.verbosity):
            conversion = convert(job.source, job.destination, **job.options)
        files = tuple(os.fspath(path) for path, _ in destinations(conversion, job.destination, force=True))
    except Exception as error:  # noqa: BLE001 - of one model; the others go on
        failure = Failure.of(error)
        if job.source not in failure.message:
            failure = replace(failure, message=f"{job.source}: {failure.message}")
        return _Outcome(job.source, job.destination, time.perf_counter() - start, failure=failure)
    seconds = time.perf_counter() - start
    cost = conversion.cost if job.told else None
    return _Outcome(job.source, job.destination, seconds, files, conversion.report, cost)


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


def _print(outcomes: Sequence[_Outcome], folder: Path, seconds: float) -> None:
    done = [outcome.report for outcome in outcomes if outcome.report is not None]
    colour = "green" if len(done) == len(outcomes) else "red"
    output.line(("converted: ", f"bold {colour}"), (f"{len(done)} of {len(outcomes)} models", "bold"))
    print_verdict([row for report in done for row in report.rows])
    output.line(f"{folder}{os.sep} in {seconds:.2f} s")
    from tflq.cost import total

    costs = _costs(outcomes)
    print_cost(total(costs))
    if unknown := sum(cost.arena is not None and cost.arenas is None for cost in costs):
        output.line(f"not in this sum: {unknown} model{'s' * (unknown > 1)} whose arena is unknown before a run")
    output.line()
    head = ["file", "outcome", "integer", "float", "kept", "size", "arena"]
    output.table(head, [*map(_row, outcomes)], right=(2, 3, 4))
    for outcome in outcomes:
        if outcome.report is not None:
            output.warnings([f"{outcome.source}: {text}" for text in warnings(outcome.report)])


def _row(outcome: _Outcome) -> list[Cell]:
    if outcome.failure is not None:
        return [outcome.destination.name, (_WORDS.get(outcome.failure.code, "failed"), "red"), *"---", "", ""]
    assert outcome.report is not None
    assert outcome.cost is not None
    cost, counts = outcome.cost, outcome.report.counts
    numbers = [str(counts[path] or "-") for path in ("integer", "float", "kept")]
    arenas = "-" if cost.arena is None else output.change(*cost.arenas) if cost.arenas else "unknown"
    size = output.change(cost.bytes_in, cost.bytes_out)
    return [outcome.destination.name, ("converted", "green"), *numbers, size, arenas]


def _costs(outcomes: Sequence[_Outcome]) -> list[Cost]:
    return [outcome.cost for outcome in outcomes if outcome.cost is not None]


def _print_failures(outcomes: Sequence[_Outcome]) -> None:
    for outcome in outcomes:
        if outcome.failure is not None:
            outcome.failure.show()
