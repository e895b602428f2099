"""The driver: takes jobs in order, has them run, and writes down what becomes of each as it comes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from tflq.sweep.executor import Ended, Executor, Staged
from tflq.sweep.models import Model, as_expected, expectation_for
from tflq.sweep.result import Key, Result, from_ending, new_result
from tflq.sweep.status import RETRIED
from tflq.sweep.store import Store
from tflq.sweep.supply import Supplied
from tflq.sweep.task import Ending, Limits, Settings, Task

__all__ = ["Driver", "Observer", "Silent", "StoppedError", "task_for"]

POLL: Final = 0.5  # seconds between looks at whether to stop


class StoppedError(Exception):
    """The sweep was asked to stop; what was done is on disk."""


class Observer(Protocol):
    """Who is told what goes on."""

    def begin(self, jobs: Sequence[Key], done: int) -> None:
        """All there is to do, and how much of it is done already, by the sweep that this one resumes."""
        ...

    def started(self, id: str, target: str) -> None: ...

    def staged(self, id: str, target: str, stage: str) -> None: ...

    def finished(self, result: Result) -> None: ...


class Silent:
    """Nobody."""

    def begin(self, jobs: Sequence[Key], done: int) -> None:
        """The sweep begins."""

    def started(self, id: str, target: str) -> None:
        """A task begins."""

    def staged(self, id: str, target: str, stage: str) -> None:
        """A task has come to a stage."""

    def finished(self, result: Result) -> None:
        """A result is on disk."""


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
    kept = str(cache or "")
    return Task(model.id, target, str(path), model.sha256, model.inputs, shapes, settings, kept, False, limits.seconds)


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
        """Until every job has its result. StoppedError if `stop` says so; what runs then is dropped."""
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
        found = from_ending(ending)
        left = Path(ending.folder)
        if flight.first is None:
            expected = as_expected(found["status"], expectation_for(flight.model, flight.target))
            if found["status"] in RETRIED and not expected:
                again = replace(flight.task, layers=True, cache="")
                self._submit(_Flight(flight.model, flight.target, again, found, left))
                return
            self._store(flight.model, flight.target, found, left)
            return
        both, kept = _both(flight.first, found)
        folders = (flight.left, left) if kept is flight.first else (left, flight.left)
        if folders[1] is not None:
            shutil.rmtree(folders[1], ignore_errors=True)
        self._store(flight.model, flight.target, both, folders[0])

    def _store(self, model: Model, target: str, found: Mapping[str, Any], left: Path | None) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        result = {**new_result(model, target, found, self.fingerprint), "ended": now}
        if left is not None:
            if result["status"] != "ok" and not (result["expected"] and result["status"] == "original-fails"):
                result["artifacts"] = self.store.keep(model.id, target, left)
            else:
                shutil.rmtree(left, ignore_errors=True)
        self.store.append(result)
        self.observer.finished(result)


def _both(first: Result, second: Result) -> tuple[Result, Result]:
    """What two tries found together, and the one that it rests on.

    A search for the layer that takes too long or fails is no other outcome of a model that differs.
    """
    tries = [first["status"], second["status"]]
    if tries[0] == tries[1]:
        return {**second, "tries": tries}, second
    searching = first["status"] == "differs" and second["status"] in ("timeout", "out-of-memory")
    if searching:
        return {**first, "tries": tries, "layers_why": second["why"]}, first
    words = "; then ".join(
        f"{found['status']}{': ' if found['why'] else ''}{found['why']}" for found in (first, second)
    )
    worse = first if second["status"] == "ok" else second
    return {**worse, "status": "flaky", "why": words, "tries": tries}, worse
