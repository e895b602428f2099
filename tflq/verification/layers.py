"""Comparison of operator results by tensor name: where two models begin to differ.

The tensors are outputs of copies of both models, so many to a copy as memory allows, and are fetched one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from flatbuffers import flexbuffers

from tflq.dialects.tfl import builtin_of
from tflq.verification.model_file import Graph, Operator, entry_of
from tflq.verification.onnx_runner import OnnxFetcher
from tflq.verification.runner import FileRunner, RunError
from tflq.verification.tflite_runner import Fetcher, TfliteRunner
from tflq.verification.tosa_runner import TosaFetcher

BUDGET: Final = 96 * 2**20
"""Bytes of the tensors that a copy returns."""

AnyRunner = TfliteRunner | FileRunner


@dataclass(frozen=True, slots=True)
class Named:
    """An operator result of the original, by operator index, opcode and tensor name."""

    operator: int
    opcode: str
    tensor: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Which tensors to fetch from copies of either model, per copy; `results` is how many the original has."""

    results: int
    chunks: tuple[tuple[Named, ...], ...]


def plan(a: AnyRunner, b: AnyRunner, key: str, besides: Collection[str]) -> Plan:
    """The operator results of an entry of the original that have a unique name in both models, except those `besides`.
    Both have run the entry, so that the sizes of their tensors are known."""
    results = list(_results(a, key))
    there = a.names(key).keys() & {*b.names(key), *b.held(key)}.difference(besides)
    named = [each for each in results if each.tensor in there]
    names = [each.tensor for each in named]
    sizes = [max(pair) for pair in zip(a.sizes(key, names), b.sizes(key, names), strict=True)]
    return Plan(len(results), tuple(_chunks(named, sizes)))


def _results(runner: AnyRunner, key: str) -> Iterable[Named]:
    if isinstance(runner, FileRunner):
        ops = enumerate(runner.module.main.ops)
        return [Named(i, builtin_of(op.name), v.name) for i, op in ops for v in op.results]
    graph = runner.file.graphs[runner.file.entries[key].graph]
    tensors = [(i, op.opcode, graph.tensor(t)) for i, op in enumerate(graph.operators) for t in op.outputs if t >= 0]
    return [Named(i, opcode, t.name) for i, opcode, t in tensors if t.type not in ("resource", "variant")]


def _chunks(named: Sequence[Named], sizes: Sequence[int]) -> Iterable[tuple[Named, ...]]:
    """Chunks of as many results as fit into the budget, but at least one."""
    chunk: list[Named] = []
    total = 0
    for each, size in zip(named, sizes, strict=True):
        if chunk and total + size > BUDGET:
            yield tuple(chunk)
            chunk, total = [], 0
        chunk.append(each)
        total += size
    if chunk:
        yield tuple(chunk)


def seen_as(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array as one of another model's type: int8 as uint8 is the same integers plus 128 (what TOSA has of an inner
    uint8 tensor), int32 as int64 are the same."""
    if array.dtype == np.int8 and dtype == np.uint8:
        return array.view(np.uint8) ^ np.uint8(128)
    return array.astype(dtype) if array.dtype == np.int32 and dtype == np.int64 else array


# Outputs of which an operator's kernel fills only the first rows; what follows these is what memory held before.


@dataclass(frozen=True)
class _Kernel:
    """A kernel fills rows of these outputs along an axis; output `count` says how many."""

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


AnyFetcher: TypeAlias = Fetcher | TosaFetcher | OnnxFetcher
Rows: TypeAlias = Mapping[int, tuple[Filled, np.ndarray]]
"""How an output is filled, and the count, by the output's place."""


def filled(graph: Graph) -> dict[int, Filled]:
    """The tensors of a graph that are filled in part, by index."""
    by_tensor: dict[int, Filled] = {}
    for i, op in enumerate(graph.operators):
        kernel = _KERNELS.get(op.opcode)
        if kernel is not None and len(op.outputs) > kernel.count:
            one = Filled(i, op.opcode, kernel.axis, op.outputs[kernel.count], *_groups(graph, i, op))
            by_tensor |= {op.outputs[place]: one for place in kernel.outputs}
    return by_tensor


def _groups(graph: Graph, index: int, op: Operator) -> tuple[int, int]:
    """How many rows a count stands for, and how many of them are filled."""
    options = _custom_options(graph, index) if op.opcode == "TFLite_Detection_PostProcess" else {}
    if options.get("use_regular_nms"):
        return 1, 1
    group = max(int(options.get("max_classes_per_detection", 1)), 1)
    return group, min(group, int(options.get("num_classes", group)))


def _custom_options(graph: Graph, index: int) -> Mapping[str, Any]:
    """The options of a custom operator, if they are a map in a flexbuffer."""
    data = graph.table.Operators(index).CustomOptionsAsNumpy()
    try:
        options = flexbuffers.Loads(bytearray(data.tobytes())) if isinstance(data, np.ndarray) else {}
    except (AttributeError, IndexError, TypeError, ValueError):
        return {}
    return options if isinstance(options, Mapping) else {}


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
        """The filled rows of a tensor in several models, by its name; the count is fetched."""
        one = self.by_name.get(name)
        count = None if one is None else fetcher.fetch(self._counts[one.count])
        return arrays if one is None or count is None else cropped({0: (one, count)}, 0, arrays)

    def rows(self, arrays: Sequence[np.ndarray], inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray]) -> Rows:
        """The filled rows of the outputs of a run. A count that is not an output is fetched by another run of the
        model; if that fails, everything is compared."""
        tensors = {one.count for one in self._filled.values()}
        counts = {t: arrays[self._places[t]] for t in tensors if t in self._places}
        if missing := {t: self._counts[t] for t in tensors - counts.keys()}:
            with suppress(RunError), self._runner.fetching(self._key, list(missing.values())) as fetcher:
                fetcher.run(inputs, fed)
                fetched = {t: fetcher.fetch(name) for t, name in missing.items()}
                counts |= {t: array for t, array in fetched.items() if array is not None}
        return {place: (one, counts[one.count]) for place, one in self._filled.items() if one.count in counts}


def cropped(rows: Rows, place: int, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The filled rows of an output in several models, if its shape is the same in all."""
    if place not in rows or len({array.shape for array in arrays}) > 1:
        return list(arrays)
    one, count = rows[place]
    return [one.rows(array, count) for array in arrays]
