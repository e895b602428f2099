"""What takes longer than before: the suspects run again alone, and count only if they are slower then, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Final

from tflq.sweep.baseline import Entry
from tflq.sweep.changes import Change, is_slower
from tflq.sweep.executor import Ended, Executor
from tflq.sweep.result import Key
from tflq.sweep.task import Limits, Task

__all__ = ["slower", "suspects"]

RUNS: Final = 5


def suspects(before: Iterable[Entry], now: Iterable[Entry]) -> dict[Key, tuple[Entry, Entry]]:
    """What took longer: the same model, converted on a CPU of the same name."""
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
    """Runs each suspect five times, one at a time with nothing beside it; those whose median is slower still."""
    for key, (a, b) in pairs.items():
        if key not in tasks:
            continue
        times = [t for run in range(RUNS) if (t := _seconds(run, tasks[key], executor, limits)) is not None]
        if len(times) == RUNS and is_slower(median(times), a.seconds):
            what = f"{median(times):.2f} s of CPU time to convert, was {a.seconds:.2f} s"
            yield Change("slower", b.id, b.target, what)


def _seconds(number: int, task: Task, executor: Executor, limits: Limits) -> float | None:
    executor.submit(number, task, limits)
    while True:
        for event in executor.poll(1.0):
            if isinstance(event, Ended):
                answer = event.ending.answer
                return None if answer is None else answer["cpu"]["read"] + answer["cpu"]["convert"]
