"""Comparison of operator results by tensor name: where two models begin to differ.

The tensors are outputs of copies of both models, so many to a copy as memory allows, and are fetched one by one.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, TypeAlias

import numpy as np
from flatbuffers import flexbuffers

from tflq.dialects.tfl import builtin_of
from tflq.verification.model_file import Entries, Graph, ModelFile, Operator, entry_of, shapes_fit
from tflq.verification.runner import FileRunner, Names, RunError
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
    """The operator results of an entry of the original that have a name of their own in both models, but those
    `besides`. Both have run the entry, so that the sizes of their tensors are known."""
    results = list(_results(a, key))
    there = a.names(key).keys() & b.names(key).keys() - set(besides)
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
    """As many as fit into the budget; at least one."""
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


# Outputs of operators that hold only their first rows after a run: what is behind these is what memory held, and is
# no result.
#
# Which operators these are, how many rows they fill, and of which of their outputs, is known by their kernels.


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


# What one run of each model takes, in the processes of a comparison: in the interpreter as users have it, with its
# default delegate and one thread.
#
# The models take turns, so that what else the machine does meets both. A turn is a run that is not measured, which
# sets the inputs and fills the caches, and then as many as fit into a few milliseconds; it counts with their mean, in
# time of the processor. Times are medians over the turns, and the ratio is the median of the turns' ratios.


TURNS, LEAST_TURNS = 15, 3
SECONDS = 10.0
"""No turn begins after so many seconds, once there were the least."""
OF_TOSA = "the time that the TOSA reference model takes says nothing of a device's"


@dataclass(frozen=True, slots=True)
class RunTime:
    """How long a run of one entry takes in both models: an item of `Verification.time`.

    Attributes:
        entry: The key of a signature, or "" for the first subgraph by position.
        before: Seconds for a run of the original: the median of its turns. None if not measured.
        after: The same for the other model.
        ratio: How many times as long the other model takes: the median of the turns' ratios.
        turns: How often both were measured.
        problem: Why they were not measured. Empty if they were.

    Example:
        ```python
        for found in tflq.verify("in.tflite", "out.tflite", time=True).time:
            print(found.entry, found.ratio)
        ```
    """

    entry: str
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    turns: int = 0
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """The times as in `tflq verify --json`: docs/json.md."""
        return {
            "entry": self.entry,
            "before": self.before,
            "after": self.after,
            "ratio": self.ratio,
            "turns": self.turns,
            "problem": self.problem,
        }


def run_time(a: AnyRunner, b: AnyRunner, key: str, inputs: Sequence[np.ndarray]) -> RunTime:
    """What an entry of the original and of the other model takes on these inputs. A model that the default kernels do
    not run is no error: `problem` says so."""
    if not isinstance(a, TfliteRunner) or not isinstance(b, TfliteRunner):
        return RunTime(key, problem=OF_TOSA)
    turns: list[tuple[float, float]] = []
    end = time.monotonic() + SECONDS
    try:
        with a.timed() as before, b.timed() as after:
            while len(turns) < LEAST_TURNS or (len(turns) < TURNS and time.monotonic() < end):
                turns.append((before.time(key, inputs), after.time(key, inputs)))
    except RunError as error:
        return RunTime(key, problem=f"the default kernels do not run both models: {error}")
    firsts, seconds = zip(*turns, strict=True)
    return RunTime(key, median(firsts), median(seconds), median(s / f for f, s in turns), len(turns))


# Which entry of a TFLite model a TOSA file is, and what of an entry's interface the file keeps.
#
# A TOSA file has one entry and no signatures; its inputs and outputs have the names of the tensors, their storage
# types and known shapes, and no quantization parameters. int64 tensors are int32 there.


Side = list[tuple[str, dict[str, Any]]]


def align(model: TfliteRunner, file: ModelFile, tosa: FileRunner) -> tuple[str | None, list[str]]:
    """Gives the TOSA file the key, names and order of the model's entry with the same tensors, and that entry the
    shapes of the file. Answers the key (None: no such entry) and a sentence per difference of the interfaces.
    """
    own = {side: [name for name, _ in pairs] for side, pairs in tosa.entries[""].items()}
    for key in model.entries:
        names = _names(file, key)
        if any(len(names[side]) != len(own[side]) for side in own):
            continue
        names = {side: _named(names[side], own[side]) for side in own}
        if all(sorted(t for _, t in names[s]) == sorted(own[s]) for s in own):
            tosa.align(key, names["inputs"], names["outputs"])
            return key, [
                text for side in own for text in _differences(side, model.entries[key][side], tosa.entries[key][side])
            ]
    return None, [f"no entry of the TFLite model has the inputs {own['inputs']} and the outputs {own['outputs']}"]


def _named(pairs: Names, own: list[str]) -> Names:
    """The names that tensors have in the file: their own; another, made of it, where one is listed twice, since names
    are unique there; and what is left, in order, for those without a name."""
    free = list(own)
    found: dict[int, str] = {}
    for fits in (_is, _is_made_of):
        for i, (_, tensor) in enumerate(pairs):
            taken = next((name for name in free if fits(name, tensor)), None) if i not in found else None
            if taken is not None:
                found[i] = taken
                free.remove(taken)
    rest = iter(free)
    return [(name, found[i] if i in found else tensor or next(rest)) for i, (name, tensor) in enumerate(pairs)]


def _is(name: str, tensor: str) -> bool:
    return bool(tensor) and name == tensor


def _is_made_of(name: str, tensor: str) -> bool:
    return bool(tensor) and name.removeprefix(f"{tensor}_").isdigit()


def _names(file: ModelFile, key: str) -> dict[str, Names]:
    """For each side of an entry, (name there, name of the tensor)."""
    entry, graph = entry_of(file, key)
    sides = {"inputs": entry.inputs, "outputs": entry.outputs}
    return {side: [(name, graph.tensor(index).name) for name, index in pairs] for side, pairs in sides.items()}


def _differences(side: str, model: Side, tosa: Side) -> Iterator[str]:
    for (name, before), (_, after) in zip(model, tosa, strict=True):
        shape, signature = before["shape"], before["shape_signature"] or before["shape"]
        dims = after["shape"]
        if not shapes_fit(dims, signature) and dims != shape:
            yield f"{side[:-1]} '{name}': shape is {dims} instead of {signature}"
            continue
        before["shape"] = dims
        if after["dtype"] != before["dtype"] and (before["dtype"], after["dtype"]) != ("int64", "int32"):
            yield f"{side[:-1]} '{name}': dtype is {after['dtype']} instead of {before['dtype']}"


def tosa_differences(a: Entries, b: Entries) -> list[str]:
    """One sentence per difference of two TOSA files' interfaces: they have one entry each."""
    found: list[str] = []
    for side in ("inputs", "outputs"):
        before, after = a[""][side], b[""][side]
        names = [", ".join(f"'{name}'" for name, _ in pairs) or "none" for pairs in (before, after)]
        if names[0] != names[1]:
            found.append(f"{side} are {names[1]} instead of {names[0]}")
            continue
        for (name, old), (_, new) in zip(before, after, strict=True):
            fields = [field for field in ("shape_signature", "dtype") if old[field] != new[field]]
            found += [f"{side[:-1]} '{name}': {f.split('_')[0]} is {new[f]} instead of {old[f]}" for f in fields]
    return found
