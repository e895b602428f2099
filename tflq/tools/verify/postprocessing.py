"""Post-processing operators, which drop most of what they read: detections, and the suppression of boxes that overlap.

Their kernels may fill only the first rows of their outputs, and what follows these is what memory held before. So only
rows that are filled are compared, and the operands are compared, too: few boxes may reach the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from flatbuffers import flexbuffers

from tflq.tools.verify.layers import AnyRunner, Named
from tflq.tools.verify.model_file import Graph, Operator, entry_of
from tflq.tools.verify.runner import RunError
from tflq.tools.verify.runtimes import OnnxFetcher, TosaFetcher
from tflq.tools.verify.tflite_runner import Fetcher, TfliteRunner

DETECTION: Final = "TFLite_Detection_PostProcess"
_OPERATORS: Final = frozenset((DETECTION, "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"))


def operands_of(runner: AnyRunner, key: str) -> Iterator[Named]:
    """Tensors that post-processing operators of an entry read and earlier operators compute, by reading operator."""
    if not isinstance(runner, TfliteRunner):
        return
    _, graph = entry_of(runner.file, key)
    computed: set[int] = set()
    for i, op in enumerate(graph.operators):
        reads = dict.fromkeys(t for t in op.inputs if t in computed) if op.opcode in _OPERATORS else {}
        yield from (Named(i, op.opcode, graph.tensor(t).name) for t in reads)
        computed.update(op.outputs)


@dataclass(frozen=True)
class _Kernel:
    """A kernel fills rows of these outputs along an axis; output `count` says how many."""

    outputs: tuple[int, ...]
    axis: int
    count: int


_KERNELS: Final[Mapping[str, _Kernel]] = {DETECTION: _Kernel((0, 1, 2), 1, 3)}


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
        return np.compress(self.marks(array.shape[self.axis], count), array, self.axis)

    def marks(self, rows: int, count: np.ndarray) -> np.ndarray:
        """Whether each of so many rows is filled."""
        number = np.arange(rows)
        last = float(count.reshape(-1)[0]) if count.size else 0.0
        return (number // self.group < last) & (number % self.group < self.used)

    def __str__(self) -> str:
        return f"{self.opcode} (operator {self.operator})"


AnyFetcher: TypeAlias = Fetcher | TosaFetcher | OnnxFetcher
Rows: TypeAlias = Mapping[int, tuple[Filled, np.ndarray]]
"""Filling of an output, and the count, by the output's place."""


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
    """Number of rows that a count stands for, and of those that are filled."""
    options = _custom_options(graph, index) if op.opcode == DETECTION else {}
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
    """The outputs of an entry of a model that are filled in part, by their place; `notes` says how far."""

    def __init__(self, runner: AnyRunner, key: str) -> None:
        self._runner, self._key = runner, key
        self._counts: dict[int, str] = {}
        self._places: dict[int, int] = {}
        self._filled: dict[int, Filled] = {}
        self._rows: dict[str, list[tuple[int, int]]] = {}
        self.by_name: dict[str, Filled] = {}
        if isinstance(runner, TfliteRunner):
            entry, graph = entry_of(runner.file, key)
            known = filled(graph)
            self._places = {tensor: place for place, (_, tensor) in enumerate(entry.outputs)}
            self._filled = {place: known[t] for place, (_, t) in enumerate(entry.outputs) if t in known}
            self._counts = {one.count: graph.tensor(one.count).name for one in known.values()}
            self.by_name = {graph.tensor(t).name: one for t, one in known.items()}

    @property
    def notes(self) -> list[str]:
        """Number of rows that each operator has filled in all runs, as text."""
        totals = {who: (*map(sum, zip(*rows, strict=True)), len(rows)) for who, rows in self._rows.items()}
        return [
            f"{who} fills {some} of {all_} rows in {runs} runs: only these are compared"
            for who, (some, all_, runs) in totals.items()
        ]

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
        rows = {place: (one, counts[one.count]) for place, one in self._filled.items() if one.count in counts}
        self._note(rows, arrays)
        return rows

    def _note(self, rows: Rows, arrays: Sequence[np.ndarray]) -> None:
        """Counts the rows of a run, once for each operator."""
        for who, (one, count, size) in {str(one): (one, n, arrays[p].shape[1]) for p, (one, n) in rows.items()}.items():
            marks = one.marks(size, count)
            self._rows.setdefault(who, []).append((int(np.count_nonzero(marks)), size))


def cropped(rows: Rows, place: int, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The filled rows of an output in several models, if its shape is the same in all."""
    if place not in rows or len({array.shape for array in arrays}) > 1:
        return list(arrays)
    one, count = rows[place]
    return [one.rows(array, count) for array in arrays]
