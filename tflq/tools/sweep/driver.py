"""The driver: takes jobs in order, has them run, and writes down what becomes of each as it comes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

from tflq.tools.sweep.baseline import Change, Entry, compare, entry_of, in_order, is_slower, read_entries
from tflq.tools.sweep.fetchers import Supplied
from tflq.tools.sweep.measure import CONVERT_ONLY, JOB
from tflq.tools.sweep.server import Ended, Executor, Staged
from tflq.tools.sweep.store import Store, read_results
from tflq.tools.sweep.task import (
    RETRIED,
    Ending,
    Key,
    Limits,
    Model,
    Result,
    Settings,
    Task,
    as_expected,
    expectation_for,
    from_ending,
    how_far,
    key_of,
    new_result,
)

POLL: Final = 0.5  # seconds between looks at whether to stop


class StoppedError(Exception):
    """The sweep was asked to stop; what was done is on disk."""


class Observer(Protocol):
    """Is told what goes on."""

    def begin(self, jobs: Sequence[Key], done: int) -> None:
        """All there is to do, and how much of it is done already, by the sweep that this one resumes."""

    def started(self, id: str, target: str) -> None:
        """A task begins."""

    def staged(self, id: str, target: str, stage: str) -> None:
        """A task has come to a stage."""

    def finished(self, result: Result) -> None:
        """A result is on disk."""


class Silent:
    """Does nothing."""

    def begin(self, jobs: Sequence[Key], done: int) -> None: ...

    def started(self, id: str, target: str) -> None: ...

    def staged(self, id: str, target: str, stage: str) -> None: ...

    def finished(self, result: Result) -> None: ...


@dataclass(slots=True)
class _Flight:
    """A job under way, and what its first try found if this is the second."""

    model: Model
    target: str
    task: Task
    first: Result | None = None
    left: Path | None = None


def task_for(
    model: Model, target: str, path: Path, settings: Settings, limits: Limits, cache: Path | None = None
) -> Task:
    """The task of a model, whose file is there, under a target."""
    shapes = {name: tuple(shape) for name, shape in model.shapes.items()}
    cache_path = str(cache or "")
    return Task(
        model.id, target, str(path), model.sha256, model.inputs, shapes, settings, cache_path, False, limits.seconds
    )


@dataclass
class Driver:
    """Runs jobs on an executor and stores their results; its memory does not grow with their number."""

    store: Store
    executor: Executor
    settings: Settings
    limits: Limits
    fingerprint: Mapping[str, Any]
    cache: Path | None = None
    observer: Observer = field(default_factory=Silent)
    stop: Callable[[], bool] = lambda: False
    _flights: dict[int, _Flight] = field(default_factory=dict)
    _numbers: int = 0

    def run(self, supply: Iterator[Supplied]) -> None:
        """Runs until every job has its result. StoppedError if `stop` says so; what runs then is dropped."""
        exhausted = False
        while not (exhausted and not self._flights):
            while not exhausted and len(self._flights) < self.executor.slots:
                if self.stop():
                    raise StoppedError
                supplied = next(supply, None)
                exhausted = supplied is None
                if supplied is not None:
                    self._begin(supplied)
            if self.stop():
                raise StoppedError
            for event in self.executor.poll(POLL) if self._flights else ():
                flight = self._flights[event.number]
                if isinstance(event, Staged):
                    self.observer.staged(flight.model.id, flight.target, event.stage)
                elif isinstance(event, Ended):
                    del self._flights[event.number]
                    self._ended(flight, event.ending)

    def _begin(self, supplied: Supplied) -> None:
        model, target = supplied.model, supplied.target
        if supplied.path is None:
            self._store(model, target, {"status": "unavailable", "why": supplied.why}, None)
            return
        task = task_for(model, target, supplied.path, self.settings, self.limits, self.cache)
        self._submit(_Flight(model, target, task))

    def _submit(self, flight: _Flight) -> None:
        self._numbers += 1
        self._flights[self._numbers] = flight
        self.observer.started(flight.model.id, flight.target)
        self.executor.submit(self._numbers, flight.task, self.limits)

    def _ended(self, flight: _Flight, ending: Ending) -> None:
        result = from_ending(ending)
        left = Path(ending.folder)
        if flight.first is None:
            expected = as_expected(result["status"], expectation_for(flight.model, flight.target))
            if expected or result["status"] not in RETRIED:
                self._store(flight.model, flight.target, result, left)
            else:
                again = replace(flight.task, layers=True, cache="")
                self._submit(_Flight(flight.model, flight.target, again, result, left))
            return
        both, decisive = _both(flight.first, result)
        folders = (flight.left, left) if decisive is flight.first else (left, flight.left)
        if folders[1] is not None:
            shutil.rmtree(folders[1], ignore_errors=True)
        self._store(flight.model, flight.target, both, folders[0])

    def _store(self, model: Model, target: str, outcome: Mapping[str, Any], left: Path | None) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        result = {**new_result(model, target, outcome, self.fingerprint), "ended": now}
        if left is not None:
            if result["status"] != "ok" and not (result["expected"] and result["status"] == "original-fails"):
                result["artifacts"] = self.store.keep(model.id, target, left)
            else:
                shutil.rmtree(left, ignore_errors=True)
        self.store.append(result)
        self.observer.finished(result)


def _both(first: Result, second: Result) -> tuple[Result, Result]:
    """The result of two tries together, and the try that it rests on. A model that differs keeps that status if only
    the search for the layer took too long or failed."""
    tries = [first["status"], second["status"]]
    if tries[0] == tries[1]:
        return {**second, "tries": tries}, second
    if tries in (["differs", "timeout"], ["differs", "out-of-memory"]):
        return {**first, "tries": tries, "layers_why": second["why"]}, first
    words = "; then ".join(": ".join(filter(None, (t["status"], t["why"]))) for t in (first, second))
    worse = first if second["status"] == "ok" else second
    return {**worse, "status": "flaky", "why": words, "tries": tries}, worse


# Where a regression begins: the first layer that differs, found without being asked.


def first_layer(result: Result) -> str:
    """The first layer that differs, in words; "" if it is not known."""
    layers = result.get("layers")
    if not layers:
        return result.get("layers_why", "")
    first = layers["first"]
    if first is None:
        return f"all {layers['compared']} results of operators that can be compared are equal"
    return f"operator {first['operator']} ({first['opcode']}), tensor '{first['tensor']}': {how_far(first)}"


def with_layers(
    changes: Iterable[Change],
    results: dict[Key, Result],
    task_of: Callable[[Key], Task | None],
    executor: Callable[[], Executor],
    limits: Limits,
) -> list[Change]:
    """The changes, with the first layer of models that differ now; it is searched for if no try has done so."""
    changes_with_layers = []
    for change in changes:
        result = results.get((change.id, change.target))
        if change.kind not in ("failing", "numbers") or result is None or result["status"] != "differs":
            changes_with_layers.append(change)
            continue
        if "layers" not in result and "layers_why" not in result:
            task = task_of((change.id, change.target))
            if task is not None:
                ending = _alone(executor(), 0, replace(task, layers=True, cache=""), limits)
                result = ending.answer or {"layers_why": f"no layer found: {ending.what}"}
        changes_with_layers.append(replace(change, layer=first_layer(result)))
    return changes_with_layers


def _alone(executor: Executor, number: int, task: Task, limits: Limits) -> Ending:
    """Runs a task alone, and says how it ended."""
    executor.submit(number, task, limits)
    while True:
        for event in executor.poll(1.0):
            if isinstance(event, Ended):
                return event.ending


# A sweep compared with a baseline: what changed, where it begins, and what really takes longer.


RUNS: Final = 5
"""Number of further runs, alone, of a model that seems slower: it counts only if it is slower then, too."""


def changes_since(
    baseline: Path,
    folder: Path,
    selected: Callable[[Key], bool],
    task_of: Callable[[Key], Task | None],
    executor: Callable[[str], Executor],
    limits: Limits,
) -> list[Change]:
    """Changes from a baseline to the results in a folder.

    selected: which part of the baseline was swept. executor: makes one for a job, "module:function", which is closed
    here. FileError or OptionError if it is not a baseline.
    """
    before = [entry for entry in read_entries(baseline) if selected(entry.key)]
    now = [entry_of(result) for result in read_results(folder)]
    changes = compare(before, now)
    wanted = {(c.id, c.target) for c in changes if c.kind in ("failing", "numbers")}
    results: dict[Key, Result] = {key_of(r): r for r in read_results(folder) if key_of(r) in wanted}
    with ExitStack() as stack:
        opened: dict[str, Executor] = {}

        def get(job: str) -> Executor:
            if job not in opened:
                opened[job] = executor(job)
                stack.callback(opened[job].close)
            return opened[job]

        changes = with_layers(changes, results, task_of, lambda: get(JOB), limits)
        if pairs := suspects(before, now):
            tasks = {key: task for key in pairs if (task := task_of(key)) is not None}
            changes += slower(pairs, tasks, get(CONVERT_ONLY), limits)
    return in_order(changes)


def suspects(before: Iterable[Entry], now: Iterable[Entry]) -> dict[Key, tuple[Entry, Entry]]:
    """Models that took longer to convert, with the same content and on a CPU of the same name."""
    old = {entry.key: entry for entry in before}
    return {
        b.key: (a, b)
        for b in now
        if (a := old.get(b.key)) is not None
        and (a.sha256, a.cpu) == (b.sha256, b.cpu)
        and a.converted
        and b.converted
        and is_slower(b.seconds, a.seconds)
    }


def slower(
    pairs: Mapping[Key, tuple[Entry, Entry]], tasks: Mapping[Key, Task], executor: Executor, limits: Limits
) -> Iterator[Change]:
    """Runs each suspect five times, alone; those whose median is still slower."""
    for key, (a, b) in pairs.items():
        if key not in tasks:
            continue
        times = [t for run in range(RUNS) if (t := _seconds(run, tasks[key], executor, limits)) is not None]
        if len(times) == RUNS and is_slower(median(times), a.seconds):
            what = f"{median(times):.2f} s of CPU time to convert, was {a.seconds:.2f} s"
            yield Change("slower", b.id, b.target, what)


def _seconds(number: int, task: Task, executor: Executor, limits: Limits) -> float | None:
    cpu = (_alone(executor, number, task, limits).answer or {}).get("cpu", {})
    return cpu["read"] + cpu["convert"] if {"read", "convert"} <= cpu.keys() else None
