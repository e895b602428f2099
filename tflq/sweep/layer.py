"""Where a regression begins: the first layer that differs, found without being asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tflq.sweep.changes import Change
from tflq.sweep.executor import Ended, Executor
from tflq.sweep.result import Key, Result
from tflq.sweep.task import Limits, Task

__all__ = ["first_layer", "with_layers"]


def first_layer(result: Result) -> str:
    """The first layer that differs, in words; "" if none is known."""
    layers = result.get("layers")
    if not layers:
        return result.get("layers_why", "")
    first = layers["first"]
    if first is None:
        return f"all {layers['compared']} results of operators that can be compared are equal"
    how = first["problem"] or f"{first['differing']} of {first['elements']} elements, up to {first['largest']}"
    unit = " LSB" if first["unit"] == "LSB" and not first["problem"] else ""
    return f"operator {first['operator']} ({first['opcode']}), tensor '{first['tensor']}': {how}{unit}"


def with_layers(
    changes: Iterable[Change],
    results: dict[Key, Result],
    task_of: Callable[[Key], Task | None],
    executor: Callable[[], Executor],
    limits: Limits,
) -> list[Change]:
    """The changes, those of models that differ now with their first layer; what no try has looked for is looked for."""
    told = []
    for change in changes:
        result = results.get((change.id, change.target))
        if change.kind not in ("failing", "numbers") or result is None or result["status"] != "differs":
            told.append(change)
            continue
        if "layers" not in result and "layers_why" not in result:
            task = task_of((change.id, change.target))
            result = result if task is None else _searched(task, executor(), limits)
        told.append(replace(change, layer=first_layer(result)))
    return told


def _searched(task: Task, executor: Executor, limits: Limits) -> Result:
    executor.submit(0, replace(task, layers=True, cache=""), limits)
    while True:
        for event in executor.poll(1.0):
            if isinstance(event, Ended):
                return event.ending.answer or {"layers_why": f"no layer found: {event.ending.what}"}
