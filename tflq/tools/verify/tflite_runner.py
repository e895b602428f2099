"""A TFLite model in the interpreter, in a process of its own: whole, or in parts that different kernels run."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from tflq.base.errors import InvalidModelError, TflqError
from tflq.tools.verify.model_file import Entry, Graph, ModelCopy, ModelFile, entry_of
from tflq.tools.verify.runner import Child, Opened, Opening, Resolver, RunError, StoredTensor
from tflq.tools.verify.ulps import graph_ulps
from tflq.tools.verify.worker import Entries

# The operators of a graph in parts that run one after the other, so that some can be run by other kernels, and
# tensors in between can be given other values.


_STATEFUL = ("VAR_HANDLE", "CALL_ONCE", "HASHTABLE")


@dataclass(frozen=True)
class Part:
    """Some operators of a graph, by index, in order; the tensors that they take from before them, and give to what
    follows.

    apart: other kernels run them.
    """

    operators: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    apart: bool


def divided(graph: Graph, apart: Collection[int], cuts: Collection[int], wanted: Collection[int]) -> list[Part]:
    """The parts of a graph, as few as its order allows: the operators `apart` are in parts of their own, and one that
    computes one of the tensors `cuts` is never with one that reads it. Parts also return the tensors `wanted`."""
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
    available = set(producer) | set(graph.inputs)
    constants = [t for t in graph.outputs if t not in available]
    parts = []
    for i, (group, apart) in enumerate(groups):
        inputs = (read[i] & available) - written[i]
        elsewhere = set().union(*read[:i], *read[i + 1 :], graph.outputs, wanted)
        outputs = sorted(written[i] & elsewhere) + (constants if i == 0 else [])
        parts.append(Part(tuple(group), tuple(sorted(inputs)), tuple(outputs), apart))
    return parts


def copy_of_part(file: ModelFile, index: int, part: Part, entries: Collection[int] = ()) -> ModelCopy:
    """The model with a part of a graph's operators and what these run, and the graphs of other `entries`.

    Codes without a kernel go with the rest. ValueError if the file has no place for inputs or outputs.
    """
    graph = file.graphs[index]
    used = callees(file, {*entries, *(g for o in part.operators for g in graph.operators[o].calls)} - {index})
    copy = ModelCopy(file).operators(index, part.operators).inputs(index, part.inputs).outputs(index, part.outputs)
    codes = {graph.operators[o].code for o in part.operators}
    for other, each in enumerate(file.graphs):
        if other in used:
            codes.update(op.code for op in each.operators)
        elif other != index:
            copy.operators(other, ())
    return copy.codes(codes)


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
    reached, rest = set(graphs), list(graphs)
    while rest:
        for op in file.graphs[rest.pop()].operators:
            new = [g for g in op.calls if g not in reached]
            reached.update(new)
            rest += new
    return reached


OTHER: Resolver = "optimized"
"""The kernels for operators whose reference kernel is missing or wrong."""

Fed = Mapping[str, np.ndarray]
"""Values of tensors by name, which replace those that were computed."""


@dataclass
class Division:
    """Division of an entry. apart: operators that other kernels run, and why; cuts: tensors after which it is
    divided; whole: why it cannot be divided, so that the other kernels run all of it."""

    apart: dict[int, str] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    whole: str = ""

    def __bool__(self) -> bool:
        return bool(self.apart or self.cuts)


_FLOAT_NAME: Final = re.compile(r"(.+)/(u?int8)([+-]\d+)", re.DOTALL)
"""The name of a tensor that a conversion holds in float32: its own, its type, and what is added to the floats."""


def float_tensors(graph: Graph) -> dict[str, StoredTensor]:
    """The tensors of a graph that are only there as floats, by name."""
    matches = ((_FLOAT_NAME.fullmatch(name), index) for name, index in graph.named.items())
    tensors = {match[1]: StoredTensor(index, int(match[3]), False, match[2]) for match, index in matches if match}
    return {name: one for name, one in tensors.items() if name not in graph.named}


@dataclass(eq=False)
class Fetcher:
    """A model that is open so that inner tensors can be fetched after a run."""

    _opened: Opened
    _key: str
    _graph: int
    _tensors: Mapping[str, int | StoredTensor]

    def run(self, inputs: Sequence[np.ndarray], fed: Fed) -> None:
        self._opened.run(self._key, inputs, {index_of(self._tensors[name]): value for name, value in fed.items()})

    def fetch(self, name: str) -> np.ndarray | None:
        """A tensor; None if it has no data."""
        tensor = self._tensors[name]
        array = self._opened.fetch((self._graph, index_of(tensor)))
        return array if array is None or isinstance(tensor, int) else tensor.tensor(array)


def index_of(tensor: int | StoredTensor) -> int:
    """Of the tensor that is read."""
    return tensor if isinstance(tensor, int) else int(tensor.place)


class TfliteRunner:
    """One model. `entries` is what the interpreter says of its inputs and outputs. `untimed`: why it is not timed;
    `resizes`: whether it runs at other shapes than the file states."""

    what: str = "the interpreter"
    untimed: str = ""
    resizes: bool = True

    @classmethod
    def open_file(cls, path: str, options: Opening) -> Self:
        return cls(path, options.resolver, options.timeout)

    def __init__(self, path: str, resolver: Resolver, timeout: float, beside: TfliteRunner | None = None) -> None:
        """Opens a model by its path. beside: another one, in whose process it runs, and which is closed after it.
        RunError if the interpreter refuses it; TflqError without an interpreter."""
        self.path = os.path.abspath(path)
        self.resolver = resolver
        self._folder = tempfile.TemporaryDirectory(prefix="tflq-")
        self._divisions: dict[str, Division] = {}
        self._parts: dict[str, Opened] = {}
        self._whole: Opened | None = None
        self._child: Child = Child(self.what, timeout) if beside is None else beside._child
        self._is_guest = beside is not None
        self._missing: set[int] = set()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @cached_property
    def file(self) -> ModelFile:
        """The content of the file. InvalidModelError if it cannot be read."""
        return ModelFile(self.path)

    def _open(self) -> None:
        """Opens the model whole; with the other kernels where it lists operators that have no kernel."""
        try:
            whole = self._opened_whole(self.resolver)
        except RunError as error:
            if error.fatal or self.resolver != "reference" or not self._without_kernels():
                raise
            whole = self._opened_whole(OTHER)
        self._whole = whole
        self.interpreter: str = whole.head["interpreter"]
        self.entries: Entries = whole.head["entries"]

    def _opened_whole(self, resolver: Resolver, model: str = "", *, inner: bool = False) -> Opened:
        request = {"model": model or self.path, "resolver": resolver, "anew": self._anew, "inner": inner}
        return Opened(self._child, request)

    def ulps(self) -> int:
        """Float32 ulps by which floats may differ in a file that has these operators. The file's format does not define
        floats to the last bit."""
        return max(map(graph_ulps, self.file.graphs), default=0)

    @cached_property
    def has_state(self) -> bool:
        """Whether a run leaves something to the next."""
        tensors = (graph.tensor(t) for graph in self.file.graphs for op in graph.operators for t in op.inputs if t >= 0)
        return self.file.has_variables or any(tensor.variable for tensor in tensors)

    @property
    def keeps_state(self) -> bool:
        """Whether runs in a row keep it."""
        return True

    @cached_property
    def _anew(self) -> bool:
        """Whether nothing resets the model's state."""
        with suppress(TflqError):  # the interpreter says what is wrong with a file
            return self.file.has_variables and not self.file.resets
        return False

    def _without_kernels(self) -> bool:
        """Finds out which rows of the table of operator codes have no kernel; whether there are any."""
        try:
            copies = [self._copy(self._of_code(row), f"code{row}") for row in range(len(self.file.codes))]
        except (TflqError, ValueError):
            return False  # the interpreter says what is wrong with the file
        has_kernels = self._child.kernels("reference", copies)
        self._missing = {row for row, there in enumerate(has_kernels) if not there}
        for path in copies:
            os.unlink(path)
        return bool(self._missing)

    def _of_code(self, row: int) -> ModelCopy:
        """The model without operators, and with one operator code."""
        copy = ModelCopy(self.file).codes([row]).alone(0)
        for graph in range(len(self.file.graphs)):
            copy.operators(graph, ())
        return copy

    def _copy(self, copy: ModelCopy, name: str) -> str:
        path = Path(self._folder.name, name)
        with path.open("wb") as stream:
            copy.write(stream)
        return str(path)

    def divide(self, key: str, broken: Mapping[int, str], cuts: Mapping[str, int]) -> Division:
        """Divides an entry at operators without a kernel, at the `broken` ones, with a reason for each, and after the
        tensors `cuts`, by name."""
        entry, graph = entry_of(self.file, key)
        apart = dict(broken)
        for i, op in enumerate(graph.operators):
            codes = {op.code} | {o.code for g in callees(self.file, op.calls) for o in self.file.graphs[g].operators}
            for code in sorted(codes & self._missing):
                name, version = self.file.codes[code]
                apart[i] = f"there is no reference kernel for {name} version {version}"
        division = Division(apart, {name: graph.behind_copy(index) for name, index in cuts.items()})
        if division:
            division.whole = indivisible(self.file, entry)
            self._divisions[key] = division
        return division

    @property
    def kernels(self) -> Resolver:
        """The kernels that can run the model whole."""
        return OTHER if self._missing else self.resolver

    def feeds(self, key: str) -> bool:
        """Whether tensors of an entry can be given other values."""
        division = self._divisions.get(key)
        return bool(division and division.cuts and not division.whole)

    def run(
        self,
        key: str,
        inputs: Sequence[np.ndarray],
        fed: Fed = {},  # noqa: B006 - read only
        step: int | None = None,
    ) -> list[np.ndarray]:
        """Outputs of an entry, in the order of `entries`. `step`: how many runs have been made in a row, the state of
        which it starts with. RunError if it does not run."""
        division = self._divisions.get(key)
        if division is None or division.whole:
            if self._whole is None:
                self._whole = self._opened_whole(self._kernels(division))
            return self._whole.run(key, inputs, follows=bool(step))
        if key not in self._parts:
            cuts, outputs = list(division.cuts.values()), self.file.entries[key].outputs
            self._parts[key] = self._opened_parts(key, division, cuts, [index for _, index in outputs])
        values = {division.cuts[name]: value for name, value in fed.items()}
        return self._parts[key].run(key, inputs, values, follows=bool(step))

    def cut(self, key: str) -> dict[str, np.ndarray]:
        """The tensors after which an entry is divided, as the last run computed them."""
        cuts = self._divisions[key].cuts if self.feeds(key) else {}
        values = {name: self._parts[key].fetch((0, index)) for name, index in cuts.items()}
        return {name: value for name, value in values.items() if value is not None}

    def _kernels(self, division: Division | None) -> Resolver:
        return OTHER if division is not None and division.apart else self.kernels

    def names(self, key: str) -> dict[str, int]:
        """The tensors of an entry that have a name of their own and can be fetched."""
        _, graph = entry_of(self.file, key)
        return graph.named

    def held(self, key: str) -> dict[str, StoredTensor]:
        """The tensors of an entry that can be fetched, but are there as floats only."""
        _, graph = entry_of(self.file, key)
        return float_tensors(graph)

    def _tensor(self, key: str, name: str) -> int | StoredTensor:
        """A tensor that can be fetched, by name."""
        named = self.names(key)
        return named[name] if name in named else self.held(key)[name]

    def type_of(self, key: str, name: str) -> str:
        """The type of a tensor, by name."""
        _, graph = entry_of(self.file, key)
        return graph.tensor(graph.named[name]).type

    def sizes(self, key: str, names: Sequence[str]) -> list[int]:
        """Bytes of tensors after a run, by name."""
        entry, _ = entry_of(self.file, key)
        opened = self._parts.get(key) or self._whole
        assert opened is not None, "a run comes first"
        return opened.sizes([(entry.graph, index_of(self._tensor(key, name))) for name in names])

    @contextmanager
    def fetching(self, key: str, names: Sequence[str]) -> Iterator[Fetcher]:
        """A copy of the model whose outputs are these tensors of an entry. RunError if it cannot be made."""
        entry, _ = entry_of(self.file, key)
        tensors = {name: self._tensor(key, name) for name in names}
        indices = list(map(index_of, tensors.values()))
        division = self._divisions.get(key)
        if division is not None and not division.whole:
            opened = self._opened_parts(key, division, indices, ())
        else:
            copy = self._copy_with(ModelCopy(self.file).outputs, entry.graph, indices)
            path = self._copy(copy, "inner")
            opened = self._opened_whole(self._kernels(division), path, inner=True)
        every = tensors | (division.cuts if division else {})
        yield Fetcher(opened, key, entry.graph, every)
        opened.close()

    @contextmanager
    def timed(self) -> Iterator[Opened]:
        """The model whole in the interpreter as users have it: with its default delegate. RunError if that refuses
        it."""
        opened = Opened(self._child, {"model": self.path, "resolver": "default"})
        yield opened
        opened.close()

    def release(self) -> None:
        """Closes what is open, so that its memory is free; it is opened again when it is needed."""
        for opened in (*self._parts.values(), *([self._whole] if self._whole else [])):
            opened.close()
        self._parts, self._whole = {}, None

    def close(self) -> None:
        if not self._is_guest:
            self._child.close()
        self._folder.cleanup()

    def _opened_parts(self, key: str, division: Division, fetchable: Collection[int], outputs: Sequence[int]) -> Opened:
        entry, graph = entry_of(self.file, key)
        parts = divided(graph, division.apart.keys(), division.cuts.values(), fetchable)
        requests: list[dict[str, Any]] = []
        for i, part in enumerate(parts):
            copy = self._copy_with(copy_of_part, self.file, entry.graph, part).alone(entry.graph)
            path = self._copy(copy, f"{key and 'signature'}{entry.graph}part{i}of{len(fetchable)}")
            results = sorted({t for o in part.operators for t in graph.operators[o].outputs if t >= 0})
            ends = {"inputs": part.inputs, "outputs": part.outputs, "results": results}
            requests.append({"model": path, "resolver": OTHER if part.apart else self.resolver, **ends})
        inputs = [index for _, index in entry.inputs]
        return Opened(
            self._child, {"parts": requests, "inputs": inputs, "outputs": list(outputs), "kept": list(fetchable)}
        )

    @staticmethod
    def _copy_with(change: Callable[..., ModelCopy], *arguments: Any) -> ModelCopy:
        """A changed copy; RunError if the file has no place for the change."""
        try:
            return change(*arguments)
        except ValueError as error:
            raise RunError(f"no copy with other outputs can be made: {error}") from error
