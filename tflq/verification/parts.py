"""The operators of a graph in parts that run one after the other, so that some can be run by other kernels, and tensors
in between can be given other values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tflq.errors import InvalidModelError
from tflq.verification.model_copy import ModelCopy
from tflq.verification.model_file import Entry, Graph, ModelFile

__all__ = ["Part", "callees", "copy_of_part", "divided", "indivisible"]

_STATEFUL = ("VAR_HANDLE", "CALL_ONCE", "HASHTABLE")


@dataclass(frozen=True)
class Part:
    """Some operators of a graph, by index, in order; the tensors that they take from before, and give to what follows.

    apart: they are run by other kernels.
    """

    operators: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    apart: bool


def divided(graph: Graph, apart: Collection[int], cuts: Collection[int], wanted: Collection[int]) -> list[Part]:
    """The parts of a graph, as few as its order allows: the operators `apart` in parts of their own, and none that
    computes one of the tensors `cuts` with one that reads it. `wanted` are given, too, whoever reads them."""
    producer = {t: i for i, op in enumerate(graph.operators) for t in op.outputs if t >= 0}
    needed = [{(producer[t], t) for t in op.inputs if t in producer} for op in graph.operators]
    done: set[int] = set()
    groups: list[tuple[list[int], bool]] = []
    rest, kind, stuck = list(range(len(graph.operators))), False, False
    while rest:
        group: dict[int, None] = {}
        for index in rest:
            ready = all(i in done or (i in group and t not in cuts) for i, t in needed[index])
            if ready and (index in apart) == kind:
                group[index] = None
        if group:
            groups.append((list(group), kind))
            done.update(group)
            rest = [index for index in rest if index not in done]
        elif stuck:
            raise InvalidModelError(f"operator {rest[0]}", "its operands are not computed before it")
        kind, stuck = not kind, not group
    return _with_ends(graph, groups, producer, {*wanted, *cuts})


def _with_ends(
    graph: Graph, groups: list[tuple[list[int], bool]], producer: dict[int, int], wanted: set[int]
) -> list[Part]:
    """Parts of groups of operators: with the tensors that go from one to another."""
    read = [{t for i in group for t in graph.operators[i].inputs if t >= 0} for group, _ in groups]
    written = [{t for i in group for t in graph.operators[i].outputs if t >= 0} for group, _ in groups]
    given = set(producer) | set(graph.inputs)
    constants = [t for t in graph.outputs if t not in given]
    parts = []
    for i, (group, apart) in enumerate(groups):
        inputs = (read[i] & given) - written[i]
        elsewhere = set().union(*read[:i], *read[i + 1 :], graph.outputs, wanted)
        outputs = sorted(written[i] & elsewhere) + (constants if i == 0 else [])
        parts.append(Part(tuple(group), tuple(sorted(inputs)), tuple(outputs), apart))
    return parts


def copy_of_part(file: ModelFile, index: int, part: Part, entries: Collection[int] = ()) -> ModelCopy:
    """The model with a part of a graph's operators and what these run, and the graphs of other `entries`; codes without
    a kernel go with the rest. ValueError if the file has no place for inputs or outputs."""
    graph = file.graphs[index]
    used = callees(file, {*entries, *(g for o in part.operators for g in graph.operators[o].calls)} - {index})
    copy = ModelCopy(file).operators(index, part.operators).inputs(index, part.inputs).outputs(index, part.outputs)
    kept = {graph.operators[o].code for o in part.operators}
    for other, each in enumerate(file.graphs):
        if other in used:
            kept.update(op.code for op in each.operators)
        elif other != index:
            copy.operators(other, ())
    return copy.codes(kept)


def indivisible(file: ModelFile, entry: Entry) -> str:
    """Why an entry's graph cannot run in parts; empty if it can."""
    graph = file.graphs[entry.graph]
    if any(name.startswith(_STATEFUL) for name, _ in file.codes):
        return "it has resource variables"
    called = {g for each in file.graphs for op in each.operators for g in op.calls}
    if entry.graph in called or (entry.graph and 0 in called):
        return "its graph is run by an operator, too"
    ends = (t for op in graph.operators for t in (*op.inputs, *op.outputs) if t >= 0)
    if any(graph.tensor(t).type in ("resource", "variant") for t in set(ends)):
        return "it has handles of resources"
    users = [t for op in graph.operators for t in set(op.inputs) if t >= 0 and graph.tensor(t).variable]
    return "operators share state" if len(users) != len(set(users)) else ""


def callees(file: ModelFile, graphs: Collection[int]) -> set[int]:
    """Graphs, and all that their operators run."""
    found, rest = set(graphs), list(graphs)
    while rest:
        for op in file.graphs[rest.pop()].operators:
            new = [g for g in op.calls if g not in found]
            found.update(new)
            rest += new
    return found
