"""Comparison of operator results by tensor name: where two models begin to differ.

The tensors are outputs of copies of both models, so many to a copy as memory allows, and are fetched one by one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from tflq.base.errors import TflqError
from tflq.dialects.tfl import builtin_of
from tflq.tools.verify.file_runner import FileRunner
from tflq.tools.verify.interface import Expectation, broken, rounding
from tflq.tools.verify.model_file import Graph, ModelFile, entry_of
from tflq.tools.verify.outcome import Apart, Divergence, Verification
from tflq.tools.verify.runner import Resolver, RunError
from tflq.tools.verify.tflite_runner import OTHER, Division, Part, TfliteRunner, copy_of_part

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
    """Tensors to fetch from copies of either model, per copy. results: their number in the original. missing: those
    whose name the second model lacks, or has twice."""

    results: int
    chunks: tuple[tuple[Named, ...], ...]
    missing: tuple[Named, ...]


def plan(a: AnyRunner, b: AnyRunner, key: str, besides: Collection[str]) -> Plan:
    """The operator results of an entry of the original that have a unique name in both models, except those `besides`.
    Both have run the entry, so that the sizes of their tensors are known."""
    results = list(_results(a, key))
    there = a.names(key).keys() & {*b.names(key), *b.held(key)}.difference(besides)
    named = [each for each in results if each.tensor in there]
    names = [each.tensor for each in named]
    sizes = [max(pair) for pair in zip(a.sizes(key, names), b.sizes(key, names), strict=True)]
    missing = tuple(each for each in results if each.tensor not in there and each.tensor not in besides)
    return Plan(len(results), tuple(_chunks(named, sizes)), missing)


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


# Cut models, and models in parts. The outputs of a model that was cut are inner tensors of the original: it is compared
# with the original up to there.


_WRITES: Final = ("CALL_ONCE", "ASSIGN_VARIABLE", "HASHTABLE_IMPORT")
"""Operators that are needed for what they write."""
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
        """Expectations of the original's operators, by their number in the copy."""
        numbers = {operator: i for i, operator in enumerate(self.operators)}
        return {(0, numbers[i]): why for (g, i), why in reports.items() if g == self.graph and i in numbers}


def cut_of(path: str, b: AnyRunner) -> Cut | None:
    """The cut of the model at a path, if the outputs of the other are tensors of it by name. None if not, or if none of
    them is inside it."""
    try:
        file = ModelFile(path)
        names = _outputs(b)
        graphs = [0] if isinstance(b, TfliteRunner) else sorted({entry.graph for entry in file.entries.values()})
        if any(_output_names(file.graphs[index]) == set(names) for index in graphs):
            return None
        return next((cut for index in graphs if (cut := _cut(file, index, names)) is not None), None)
    except TflqError:
        return None  # the interpreter says what is wrong with a file


def _outputs(b: AnyRunner) -> list[str]:
    if isinstance(b, TfliteRunner):
        return [name for name, _ in b.file.entries[""].outputs]
    return [value.name for value in b.outputs]


def _cut(file: ModelFile, index: int, names: Sequence[str]) -> Cut | None:
    graph = file.graphs[index]
    output_names = _output_names(graph)
    computed = {t for op in graph.operators for t in op.outputs}
    if set(names) <= output_names or not all(
        name in output_names or graph.named.get(name) in computed for name in names
    ):
        return None
    by_name = graph.named | {graph.tensor(t).name: t for t in reversed(graph.outputs)}
    tensors = tuple(by_name[name] for name in names)
    if set(graph.outputs) - set(tensors) - _dependents(graph, set(tensors) - set(graph.outputs)):
        return None  # not a cut: an output that does not depend on it is missing
    signatures = [
        row
        for row, entry in enumerate(file.signatures)
        if entry is not None and (entry.graph != index or {t for _, t in entry.outputs} <= set(tensors))
    ]
    return Cut(file, index, tensors, tuple(_needed(graph, tensors)), tuple(signatures) if index == 0 else ())


def _output_names(graph: Graph) -> set[str]:
    """The outputs of a graph, by name."""
    return {graph.tensor(t).name for t in graph.outputs}


def _dependents(graph: Graph, tensors: Collection[int]) -> set[int]:
    """The tensors that depend on these."""
    reached = set(tensors)
    for op in graph.operators:
        if not reached.isdisjoint(op.inputs):
            reached.update(op.outputs)
    return reached - set(tensors)


def _needed(graph: Graph, tensors: Collection[int]) -> list[int]:
    """The operators before these tensors: what they depend on, and what is written there."""
    behind = _dependents(graph, tensors)
    operators: list[int] = []
    wanted = set(tensors)
    for i, op in reversed(list(enumerate(graph.operators))):
        writes = op.opcode in _WRITES and behind.isdisjoint(op.inputs)
        if writes or not wanted.isdisjoint(op.outputs):
            operators.append(i)
            wanted.update(op.inputs)
    return operators[::-1]


@contextmanager
def written(cut: Cut) -> Iterator[str]:
    """The path of a file with the original up to the cut, while it is needed. RunError if it cannot be made."""
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


# Where two models are divided, so that each operator runs on a kernel that exists and is right, and so that what
# follows an operator that is expected to differ has the same operands in both.


_AS_TOSA_HAS_THEM: Final = (("int64", "int32"), ("uint8", "int8"))


@dataclass
class Divided:
    """An entry of both models, divided. expected: operator results, by tensor name, that the original feeds to the
    other. apart, notes: what to say of it."""

    expected: dict[str, tuple[Named, Expectation]] = field(default_factory=dict)
    apart: list[Apart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def divide(
    a: AnyRunner,
    b: AnyRunner,
    key: str,
    reports: Mapping[tuple[int, int], Expectation],
    labels: tuple[str, str],
    resolver: Resolver,
) -> Divided:
    """Divides an entry of both models where that is necessary. `reports`: what else is expected of the original's
    operators, by graph and operator."""
    parts = Divided()
    expected: dict[int, Expectation] = {}
    if isinstance(a, TfliteRunner):
        entry, graph = entry_of(a.file, key)
        expected = {i: why for (g, i), why in reports.items() if g == entry.graph and i < len(graph.operators)}
        wrong = broken(graph) if resolver == "reference" else {}
        expected |= {i: why for i, why in wrong.items() if why.within != 0}
        for i, why in sorted(expected.items()):
            for place in _fed(a, b, key, graph, i):  # counts are of the operator's own result
                parts.expected[place.tensor] = place, why if place.operator == i else replace(why, within=None)
        if isinstance(b, FileRunner):
            _note_rounding(parts, graph, [i for i in rounding(graph) if i not in expected])
    cuts: list[dict[str, int]] = [{}, {}]
    if parts.expected:
        reason = _unfit(a, b, key, parts.expected)
        if reason:
            listed = ", ".join(f"{named.opcode} (operator {named.operator})" for named, _ in parts.expected.values())
            parts.notes.append(f"{listed}: a difference is expected, and what follows may differ for it: {reason}")
            parts.expected = {}
        else:
            cuts = [{name: r.names(key)[name] for name in parts.expected} for r in (a, b)]
    for runner, label, cut in zip((a, b), labels, cuts, strict=True):
        if isinstance(runner, FileRunner):
            runner.divide(cut)
        else:
            broken_operators = broken(entry_of(runner.file, key)[1]) if resolver == "reference" else {}
            division = runner.divide(key, {i: why.reason for i, why in broken_operators.items() if why.apart}, cut)
            parts.apart += _listed(runner, label, key, division)
    if parts.expected and not all(r.feeds(key) for r in (a, b)):
        reason = "".join(r.undivided for r in (a, b) if isinstance(r, FileRunner))
        parts.notes.append(
            f"a model cannot be divided{reason}: what follows operators of which a difference is expected may differ"
        )
        parts.expected = {}
        for runner in (a, b):
            if isinstance(runner, FileRunner):
                runner.divide(())
    return parts


def _note_rounding(parts: Divided, graph: Graph, operators: Sequence[int]) -> None:
    """Notes operators whose results differ whatever the conversion does, and how to compare the rest."""
    if operators:
        listed = ", ".join(dict.fromkeys(graph.operators[i].opcode for i in operators))
        more = f" and {len(operators) - 1} more" if len(operators) > 1 else ""
        parts.notes.append(
            f"{listed} (operator {operators[0]}{more}): the interpreter rounds activations to 8 bits, and the "
            "other model does not: results differ; give the conversion's report (--report FILE) to compare the rest"
        )


def _fed(a: AnyRunner, b: AnyRunner, key: str, graph: Graph, operator: int) -> Iterator[Named]:
    """The results of an operator that can be fed to the other model. A result that cannot (it is of int4 or not there)
    is replaced by those of the operators that read it."""
    pending, seen = [(operator, t) for t in graph.operators[operator].outputs if t >= 0], set[int]()
    while pending:
        at, tensor = pending.pop()
        name = graph.tensor(tensor).name
        readers = [r for r, op in enumerate(graph.operators) if tensor in op.inputs]
        if not readers or tensor in graph.outputs or not _unfit(a, b, key, [name]):
            yield Named(at, graph.operators[at].opcode, name)
        elif tensor not in seen:
            seen.add(tensor)
            pending += [(r, t) for r in readers for t in graph.operators[r].outputs if t >= 0]


def _unfit(a: AnyRunner, b: AnyRunner, key: str, expected: Iterable[str]) -> str:
    """Why results of the original cannot be fed to the other model; empty if they can."""
    for name in expected:
        if not name or any(name not in runner.names(key) for runner in (a, b)):
            return f"tensor '{name}' is not in both models"
        types = a.type_of(key, name), b.type_of(key, name)
        if types[0] != types[1] and not (isinstance(b, FileRunner) and types in _AS_TOSA_HAS_THEM):
            return f"tensor '{name}' is {types[1]} instead of {types[0]}"
    return ""


def _listed(runner: TfliteRunner, label: str, key: str, division: Division) -> list[Apart]:
    """The operators that other kernels run, by opcode and reason."""
    _, graph = entry_of(runner.file, key)
    groups: dict[tuple[str, str], list[int]] = {}
    for i, reason in sorted(division.apart.items()):
        groups.setdefault((graph.operators[i].opcode, reason), []).append(i)
    return [
        Apart(label, key, opcode, tuple(operators), OTHER, reason, division.whole)
        for (opcode, reason), operators in groups.items()
    ]
