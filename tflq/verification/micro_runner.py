"""A TFLite model in TFLite Micro, seen as `tflite_runner.TfliteRunner` shows one in the interpreter.

TFLite Micro runs the first subgraph, at the shapes that the file states; a signature of that subgraph names its inputs
and outputs. Inner tensors are read from an interpreter that gives each its own memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, Final

import numpy as np

from tflq.verification.model_file import Graph, ModelFile, Tensor, entry_of
from tflq.verification.runner import Held, Opened, Resolver, RunError
from tflq.verification.tflite_runner import Division, Fed, Fetcher, TfliteRunner, index_of
from tflq.verification.worker import Side

_WIDEST: Final = 8
_ALIGNED: Final = 16
_PER_OPERATOR: Final = 1 << 14
_SPARE: Final = 1 << 22
"""Bytes: of the widest element, what tensors are aligned to, what an operator may keep for itself, and the rest."""


class MicroRunner(TfliteRunner):
    """One model. `entries` is what the file says of its inputs and outputs."""

    what = "TFLite Micro"
    untimed = "only models in the TFLite interpreter are timed"
    resizes = False

    def __init__(self, path: str, timeout: float) -> None:
        """Opens a model by its path. RunError if TFLite Micro refuses it; TflqError if it is not installed."""
        self._opened: dict[str, Opened] = {}
        super().__init__(path, "reference", timeout)

    def _open(self) -> None:
        others = [f"'{key}'" for key, entry in self.file.entries.items() if entry.graph]
        if others:
            only = "TFLite Micro runs the first subgraph and what it calls, and ends its process on a file with more"
            raise RunError(f"{only}: convert signature {' or '.join(others)} alone (--signature KEY)")
        self.interpreter = self._entry("").head["interpreter"]
        self.entries = {
            key: {"inputs": _side(graph, entry.inputs), "outputs": _side(graph, entry.outputs)}
            for key in self.file.entries
            for entry, graph in [entry_of(self.file, key)]
        }

    def _entry(self, key: str) -> Opened:
        """The subgraph of an entry, open, for as long as nothing else needs its memory."""
        if key not in self._opened:
            self._opened[key] = self._opened_graph(key, keep=False)
        return self._opened[key]

    def _opened_graph(self, key: str, *, keep: bool) -> Opened:
        try:
            return Opened(self._child, {"micro": self.path, "arena": arena(self.file), "keep": keep})
        except RunError as error:
            if error.fatal:
                raise
            raise RunError(f"{error}: {self._child.printed(2)}") from error

    def divide(self, key: str, broken: Mapping[int, str], cuts: Mapping[str, int]) -> Division:
        """Not at all: its kernels are all that it has."""
        return Division()

    @property
    def kernels(self) -> Resolver:
        return self._resolver

    def run(
        self,
        key: str,
        inputs: Sequence[np.ndarray],
        fed: Fed = {},  # noqa: B006 - read only
        step: int | None = None,
    ) -> list[np.ndarray]:
        outputs = self._entry(key).run(key, self._placed(key, inputs), follows=bool(step))
        entry, graph = entry_of(self.file, key)
        return [outputs[graph.outputs.index(tensor)] for _, tensor in entry.outputs]

    def _placed(self, key: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Inputs of an entry in the order of its subgraph."""
        entry, graph = entry_of(self.file, key)
        by_tensor = {tensor: array for (_, tensor), array in zip(entry.inputs, inputs, strict=True)}
        return [by_tensor[tensor] for tensor in graph.inputs]

    def sizes(self, key: str, names: Sequence[str]) -> list[int]:
        """As the file states shapes."""
        _, graph = entry_of(self.file, key)
        return [_size(graph.tensor(index_of(self._tensor(key, name)))) for name in names]

    @contextmanager
    def fetching(self, key: str, names: Sequence[str]) -> Iterator[Fetcher]:
        """The model, with memory for each of its tensors."""
        opened = self._opened_graph(key, keep=True)
        try:
            yield _Fetcher(self, opened, key, {name: self._tensor(key, name) for name in names})
        finally:
            opened.close()

    def release(self) -> None:
        for opened in self._opened.values():
            opened.close()
        self._opened = {}


class _Fetcher(Fetcher):
    """A model that is open so that inner tensors can be fetched after a run."""

    def __init__(self, runner: MicroRunner, opened: Opened, key: str, tensors: Mapping[str, int | Held]) -> None:
        super().__init__(opened, key, 0, tensors)
        self._runner = runner

    def run(self, inputs: Sequence[np.ndarray], fed: Fed) -> None:
        super().run(self._runner._placed(self._key, inputs), fed)


def arena(file: ModelFile) -> int:
    """Bytes that are enough for all tensors that a model computes and for what operators keep. Memory that is not used
    is only reserved."""
    total = _SPARE + 2 * len(file.data)
    for graph in file.graphs:
        results = {t for op in graph.operators for t in op.outputs if t >= 0} | set(graph.inputs)
        results |= {t for op in graph.operators for t in op.inputs if t >= 0 and graph.tensor(t).variable}
        total += sum(2 * _size(graph.tensor(t)) + _ALIGNED for t in results) + _PER_OPERATOR * len(graph.operators)
    return total


def _size(tensor: Tensor) -> int:
    return _WIDEST * prod(tensor.shape)


def _side(graph: Graph, pairs: Sequence[tuple[str, int]]) -> Side:
    return [(name, _description(graph.tensor(index))) for name, index in pairs]


def _description(tensor: Tensor) -> dict[str, Any]:
    """The same as `worker.describe` says of a tensor."""
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "shape_signature": list(tensor.signature),
        "dtype": tensor.type,
        "scales": tensor.scales.tolist(),
        "zero_points": list(tensor.zero_points),
        "axis": tensor.axis,
    }
