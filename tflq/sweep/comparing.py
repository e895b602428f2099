"""A sweep held against a baseline: what changed, where it begins, and what really takes longer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tflq.sweep.baseline import entry_of, read_entries
from tflq.sweep.changes import KINDS, Change, compare
from tflq.sweep.executor import Executor
from tflq.sweep.layer import with_layers
from tflq.sweep.measure import CONVERT_ONLY, JOB
from tflq.sweep.result import Key, Result, key_of
from tflq.sweep.slower import slower, suspects
from tflq.sweep.store import read_results
from tflq.sweep.task import Limits, Task

__all__ = ["changes_since"]


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
