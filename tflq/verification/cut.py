"""The original up to where a model that was cut ends: its outputs are inner tensors of the original, and are compared
with what the original has there."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from tflq.errors import TflqError
from tflq.verification.expected import Expectation
from tflq.verification.layers import AnyRunner
from tflq.verification.model_file import Graph, ModelFile
from tflq.verification.outcome import Divergence, Verification
from tflq.verification.parts import Part, copy_of_part
from tflq.verification.runner import RunError
from tflq.verification.tflite_runner import TfliteRunner

__all__ = ["Cut", "cut_of", "renumber", "written"]

_WRITES: Final = ("CALL_ONCE", "ASSIGN_VARIABLE", "HASHTABLE_IMPORT")
"""Operators that are there for what they write."""
D = TypeVar("D", bound=Divergence)


@dataclass(frozen=True)
class Cut:
    """Where a graph of the original is cut: the tensors that are its outputs there, the operators before them, both by
    index, and the signatures that are left, by row."""

    file: ModelFile
    graph: int
    tensors: tuple[int, ...]
    operators: tuple[int, ...]
    signatures: tuple[int, ...]

    @property
    def names(self) -> list[str]:
        """The outputs that are inner tensors of the original."""
        graph = self.file.graphs[self.graph]
        return [graph.tensor(t).name for t in self.tensors if t not in graph.outputs]

    def reports(self, reports: Mapping[tuple[int, int], Expectation]) -> dict[tuple[int, int], Expectation]:
        """What is expected of the original's operators, by their number in the copy."""
        numbers = {operator: i for i, operator in enumerate(self.operators)}
        return {(0, numbers[i]): why for (g, i), why in reports.items() if g == self.graph and i in numbers}


def cut_of(path: str, b: AnyRunner) -> Cut | None:
    """Where the model at a path is cut, if the outputs of the other are tensors of it by name, and one at least is an
    inner one; None if the other model has the outputs of the original, or others."""
    try:
        file = ModelFile(path)
        names = _outputs(b)
        graphs = [0] if isinstance(b, TfliteRunner) else sorted({entry.graph for entry in file.entries.values()})
        if any(_stated(file.graphs[index]) == set(names) for index in graphs):
            return None
        return next((found for index in graphs if (found := _cut(file, index, names)) is not None), None)
    except TflqError:
        return None  # the interpreter says what is wrong with a file


def _outputs(b: AnyRunner) -> list[str]:
    if isinstance(b, TfliteRunner):
        return [name for name, _ in b.file.entries[""].outputs]
    return [value.name for value in b.outputs]


def _cut(file: ModelFile, index: int, names: Sequence[str]) -> Cut | None:
    graph = file.graphs[index]
    stated = _stated(graph)
    made = {t for op in graph.operators for t in op.outputs}
    if set(names) <= stated or not all(name in stated or graph.named.get(name) in made for name in names):
        return None
    by_name = graph.named | {graph.tensor(t).name: t for t in reversed(graph.outputs)}
    tensors = tuple(by_name[name] for name in names)
    if set(graph.outputs) - set(tensors) - _lost(graph, set(tensors) - set(graph.outputs)):
        return None  # an output that does not depend on the cut is missing: that is no cut
    kept = [
        row
        for row, entry in enumerate(file.signatures)
        if entry is not None and (entry.graph != index or {t for _, t in entry.outputs} <= set(tensors))
    ]
    return Cut(file, index, tensors, tuple(_needed(graph, tensors)), tuple(kept) if index == 0 else ())


def _stated(graph: Graph) -> set[str]:
    """The outputs of a graph, by name."""
    return {graph.tensor(t).name for t in graph.outputs}


def _lost(graph: Graph, tensors: Collection[int]) -> set[int]:
    """The tensors that depend on these."""
    reached = set(tensors)
    for op in graph.operators:
        if not reached.isdisjoint(op.inputs):
            reached.update(op.outputs)
    return reached - set(tensors)


def _needed(graph: Graph, tensors: Collection[int]) -> list[int]:
    """The operators before these tensors: what they depend on, and what is written there."""
    behind = _lost(graph, tensors)
    kept: list[int] = []
    wanted = set(tensors)
    for i, op in reversed(list(enumerate(graph.operators))):
        writes = op.opcode in _WRITES and behind.isdisjoint(op.inputs)
        if writes or not wanted.isdisjoint(op.outputs):
            kept.append(i)
            wanted.update(op.inputs)
    return kept[::-1]


@contextmanager
def written(cut: Cut) -> Iterator[str]:
    """The path of the original up to the cut, while it is needed. RunError if it cannot be copied so."""
    part = Part(cut.operators, cut.file.graphs[cut.graph].inputs, cut.tensors, apart=False)
    entries = [cut.file.entries[key].graph for key in cut.file.entries if cut.signatures]
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = Path(folder, "original.tflite")
        try:
            copy = copy_of_part(cut.file, cut.graph, part, entries)
            copy = copy.signatures(cut.signatures) if cut.graph == 0 else copy.alone(cut.graph)
            with path.open("wb") as stream:
                copy.write(stream)
        except ValueError as error:
            raise RunError(f"no copy up to the cut can be made: {error}") from error
        yield str(path)


def renumber(result: Verification, cut: Cut) -> None:
    """Gives operators the numbers that they have in the original."""

    def again(each: D) -> D:
        return replace(each, operator=cut.operators[each.operator]) if each.entry == "" else each

    result.expected = [again(each) for each in result.expected]
    result.apart = [
        replace(each, operators=tuple(cut.operators[i] for i in each.operators))
        if each.model == result.a and each.entry == ""
        else each
        for each in result.apart
    ]
    if result.layers is not None:
        diverging, every = (tuple(map(again, part)) for part in (result.layers.diverging, result.layers.every))
        result.layers = replace(result.layers, diverging=diverging, every=every)
