"""A sweep held against a baseline: what changed, where it begins, and what really takes longer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from tflq.sweep.baseline import Entry, entry_of, read_entries
from tflq.sweep.changes import KINDS, Change, compare, is_slower
from tflq.sweep.executor import Ended, Executor
from tflq.sweep.layer import with_layers
from tflq.sweep.measure import CONVERT_ONLY, JOB
from tflq.sweep.result import Key, Result, key_of
from tflq.sweep.store import read_results
from tflq.sweep.task import Limits, Task

__all__ = ["changes_since", "slower", "suspects"]

RUNS: Final = 5
"""How often what seems slower runs again, alone: it counts only if it is slower then, too."""


def changes_since(
    baseline: Path,
    folder: Path,
    selected: Callable[[Key], bool],
    task_of: Callable[[Key], Task | None],
    executor: Callable[[str], Executor],
    limits: Limits,
) -> list[Change]:
    """What changed from a baseline to the results in a folder.

    selected: which part of the baseline was swept. executor: one for a job, "module:function", that this closes again.
    FileError or InvalidModelError if the baseline is none.
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
    return sorted(changes, key=lambda c: (KINDS.index(c.kind), c.id, c.target))


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
