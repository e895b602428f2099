"""Outputs of operators that hold only their first rows after a run: what is behind these is what memory held, and is no
result.

Which operators these are, how many rows they fill, and of which of their outputs, is known by their kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from flatbuffers import flexbuffers

from tflq.verification.layers import AnyRunner
from tflq.verification.model_file import Graph, Operator, entry_of
from tflq.verification.runner import RunError
from tflq.verification.tflite_runner import Fetcher, TfliteRunner
from tflq.verification.tosa_runner import TosaFetcher

__all__ = ["FilledOutputs", "Rows", "cropped", "filled"]


@dataclass(frozen=True)
class _Kernel:
    """Of these outputs of an operator, a kernel fills rows along an axis; output `count` says how many."""

    outputs: tuple[int, ...]
    axis: int
    count: int


_KERNELS: Final[Mapping[str, _Kernel]] = {"TFLite_Detection_PostProcess": _Kernel((0, 1, 2), 1, 3)}


@dataclass(frozen=True)
class Filled:
    """A tensor whose first rows along an axis are filled, as many as the tensor `count` says (an index). Rows come in
    groups of `group`, of which the first `used` are filled: a detection has one for each of its classes."""

    operator: int
    opcode: str
    axis: int
    count: int
    group: int = 1
    used: int = 1

    def rows(self, array: np.ndarray, count: np.ndarray) -> np.ndarray:
        """The rows that are filled."""
        if array.ndim <= self.axis:
            return array
        number = np.arange(array.shape[self.axis])
        last = float(count.reshape(-1)[0]) if count.size else 0.0
        return np.compress((number // self.group < last) & (number % self.group < self.used), array, self.axis)

    def __str__(self) -> str:
        return f"{self.opcode} (operator {self.operator}): only the rows that it fills are compared"


AnyFetcher: TypeAlias = Fetcher | TosaFetcher
Rows: TypeAlias = Mapping[int, tuple[Filled, np.ndarray]]
"""How an output is filled, and the count, by the output's place."""


def filled(graph: Graph) -> dict[int, Filled]:
    """The tensors of a graph that are filled in part, by index."""
    found: dict[int, Filled] = {}
    for i, op in enumerate(graph.operators):
        kernel = _KERNELS.get(op.opcode)
        if kernel is not None and len(op.outputs) > kernel.count:
            one = Filled(i, op.opcode, kernel.axis, op.outputs[kernel.count], *_groups(graph, i, op))
            found |= {op.outputs[place]: one for place in kernel.outputs}
    return found


def _groups(graph: Graph, index: int, op: Operator) -> tuple[int, int]:
    """How many rows a count stands for, and how many of them are filled."""
    options = _custom_options(graph, index) if op.opcode == "TFLite_Detection_PostProcess" else {}
    if options.get("use_regular_nms"):
        return 1, 1
    group = max(int(options.get("max_classes_per_detection", 1)), 1)
    return group, min(group, int(options.get("num_classes", group)))


def _custom_options(graph: Graph, index: int) -> Mapping[str, Any]:
    """The options of a custom operator that are a map in a flexbuffer; else none."""
    data = graph.table.Operators(index).CustomOptionsAsNumpy()
    try:
        found = flexbuffers.Loads(bytearray(data.tobytes())) if isinstance(data, np.ndarray) else {}
    except (AttributeError, IndexError, TypeError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


class FilledOutputs:
    """The outputs of an entry of a model that are filled in part, by their place; `operators` says whose they are."""

    def __init__(self, runner: AnyRunner, key: str) -> None:
        self._runner, self._key = runner, key
        self._counts: dict[int, str] = {}
        self._places: dict[int, int] = {}
        self._filled: dict[int, Filled] = {}
        self.by_name: dict[str, Filled] = {}
        if isinstance(runner, TfliteRunner):
            entry, graph = entry_of(runner.file, key)
            known = filled(graph)
            self._places = {tensor: place for place, (_, tensor) in enumerate(entry.outputs)}
            self._filled = {place: known[t] for place, (_, t) in enumerate(entry.outputs) if t in known}
            self._counts = {one.count: graph.tensor(one.count).name for one in known.values()}
            self.by_name = {graph.tensor(t).name: one for t, one in known.items()}

    @property
    def operators(self) -> list[str]:
        return list(dict.fromkeys(map(str, self._filled.values())))

    def count_names(self, names: Iterable[str]) -> list[str]:
        """The tensors that say how much of these is filled."""
        return list(dict.fromkeys(self._counts[self.by_name[n].count] for n in names if n in self.by_name))

    def part(self, name: str, fetcher: AnyFetcher, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """What is filled of a tensor of models, by its name; the count is fetched."""
        one = self.by_name.get(name)
        count = None if one is None else fetcher.fetch(self._counts[one.count])
        return arrays if one is None or count is None else cropped({0: (one, count)}, 0, arrays)

    def rows(self, arrays: Sequence[np.ndarray], inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray]) -> Rows:
        """What is filled of the outputs of a run; a count that is no output is fetched by another run of the model;
        where that fails, all is compared."""
        tensors = {one.count for one in self._filled.values()}
        found = {t: arrays[self._places[t]] for t in tensors if t in self._places}
        if missing := {t: self._counts[t] for t in tensors - found.keys()}:
            with suppress(RunError), self._runner.fetching(self._key, list(missing.values())) as fetcher:
                fetcher.run(inputs, fed)
                fetched = {t: fetcher.fetch(name) for t, name in missing.items()}
                found |= {t: array for t, array in fetched.items() if array is not None}
        return {place: (one, found[one.count]) for place, one in self._filled.items() if one.count in found}


def cropped(rows: Rows, place: int, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What is filled of an output of models, which has one shape in all."""
    if place not in rows or len({array.shape for array in arrays}) > 1:
        return list(arrays)
    one, count = rows[place]
    return [one.rows(array, count) for array in arrays]
