"""Tabulate: an elementwise function of one or two 8-bit tensors becomes a table of all its values.

A value has sources if it is computed, elementwise and by ops with an evaluator, from at most two 8-bit tensors and
scalar constants (a constant of at most 256 different integers counts as an 8-bit tensor). Walking back from what is
needed (names, outputs, other ops' operands), each such value becomes tosa.table of its source (256 entries) or
ext.table_2d of its two (65536, of 8 bits), where that is worth it to the target. Tensors with names are sources of
what follows them, but for one that is itself a function of the others: x * LOGISTIC(x) is one table of x. The entries
are the evaluator's. Equal tables are one constant, in whichever function.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import ClassVar, Final, NamedTuple, TypeAlias

import numpy as np

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.dialects.declare import trait_of
from tflq.dialects.inference import Misfit, broadcast
from tflq.dialects.quant import RescaleF32, RescaleF64, Table2D
from tflq.dialects.tosa.movement import Rescale, Table
from tflq.dialects.traits import Tabulable
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value, constant
from tflq.numerics.unary import distinct
from tflq.transforms.pass_manager import Pass, PassResult

_SOURCES = 2
_PALETTE_ELEMENTS = 1 << 16
_ENOUGH_OPS = 16
"""Ops that show whether a table of one source saves time, in nearly all cases."""
_MOST_OPS = 512
"""Ops in the place of which a table of two sources is looked for."""
_MOST_PLANES = 64
"""Planes of 256 by 256 numbers that are kept while ops of the same sources are looked at."""
_MOST_FOLLOWED = 256
"""Tensors through which it is followed whether one depends on others alone."""
_LARGE_TABLE = 1 << 16
"""Bytes of a table of two sources."""
_BYTES_PER_OP = 400
"""Bytes of an op in the result, its tensors and small constants: three quarters of 700 models below 100 KB take at most
930, half of them 400, and large ones less."""


class Tabulate(Pass):
    """Puts tables in the place of elementwise arithmetic on 8-bit tensors, where `worth` says so.

    worth: the time that a table saves for each element (or 1 for true), given the ops that it would replace, in order,
    and the number of its sources; 0 or less: none. size_limit: bytes of the result up to which tables of two sources
    are used, the ones that save most time first; None for no limit, 0 for no such table.
    """

    name: ClassVar[str] = "tabulate"

    def __init__(self, worth: Callable[[Sequence[Op], int], float], size_limit: int | None = None) -> None:
        self.worth: Final = worth
        self.size_limit: Final = size_limit

    def run(self, module: Module) -> PassResult:
        buffers: dict[tuple[np.dtype, bytes], Buffer] = {}
        walks = [_Tabulation(function, i, self.worth, buffers) for i, function in enumerate(module.functions)]
        most = self._most_large_tables(module)
        threshold: _Gain = (0.0 if most else np.inf, 0, 0)
        while len(gains := [gain for walk in walks for gain in walk.decide(threshold)]) > most:
            threshold = sorted(gains, reverse=True)[most]
        return PassResult(module, sum(walk.apply() for walk in walks) > 0)

    def _most_large_tables(self, module: Module) -> int:
        """Number of tables of two sources that there is room for."""
        if self.size_limit is None:
            return sys.maxsize
        buffers = {v.buffer for f in module.functions for v in f.values() if v.buffer is not None}
        others = sum(b.data.nbytes for b in buffers) + _BYTES_PER_OP * sum(len(f.ops) for f in module.functions)
        return max(0, self.size_limit - others) // _LARGE_TABLE


_Gain: TypeAlias = tuple[float, int, int]
"""The time that a table saves over all elements, and its place (minus the function's number, the op's), which orders
equal ones."""


class _Lookup(NamedTuple):
    """A decision: an op is a table of operands, with these entries."""

    operands: tuple[Value, ...]
    entries: np.ndarray


class _Tabulation:
    """One function's walk: sources forwards, decisions backwards."""

    def __init__(
        self,
        function: Function,
        number: int,
        worth: Callable[[Sequence[Op], int], float],
        buffers: dict[tuple[np.dtype, bytes], Buffer],
    ) -> None:
        self.function = function
        self.number = number
        self.worth = worth
        self.buffers = buffers
        self.place = {op: i for i, op in enumerate(function.ops)}
        self.sources: dict[Value, tuple[Value, ...]] = {}
        self.tables: dict[tuple[np.dtype, bytes], Value] = {}
        self.evaluated: dict[tuple[Value, ...], dict[Value, np.ndarray | None]] = {}
        self.returned = frozenset(function.outputs)
        for op in function.ops:
            if (sources := self._sources_of(op)) is not None:
                self.sources[op.result] = sources
        self.lookups: dict[int, _Lookup] = {}

    def decide(self, threshold: _Gain) -> list[_Gain]:
        """Finds the ops that become lookups, and returns the gains of the tables of two sources among them. Such a
        table must save more than the threshold."""
        self.lookups.clear()
        gains = list[_Gain]()
        if not self.sources:
            return gains
        needed = set(self.returned)
        for i in range(len(self.function.ops) - 1, -1, -1):
            op = self.function.ops[i]
            operands: Sequence[Value | None] = op.operands
            if op.results and op.result in self.sources:
                if op.result not in needed and not op.result.name:
                    continue
                gain, lookup = self._lookup(op, i, threshold)
                if lookup is not None:
                    self.lookups[i] = lookup
                    operands = lookup.operands
                    if len(operands) == 2:
                        gains.append((gain, -self.number, i))
            needed.update(v for v in operands if v is not None)
        return gains

    def apply(self) -> int:
        """Puts the lookups in the place of the ops, and returns how many there are."""
        for i, (operands, entries) in self.lookups.items():
            op = self.function.ops[i]
            kind = Table if len(operands) == 1 else Table2D
            self.function.ops[i] = Op(kind.op_name, [*operands, self._shared(entries)], [op.result], {}, op.location)
        return len(self.lookups)

    def _sources_of(self, op: Op) -> tuple[Value, ...] | None:
        """The 8-bit tensors that the op's result is an elementwise function of."""
        trait = trait_of(op, Tabulable)
        if trait is None or _is_per_channel(op) or (isinstance(op, Table) and op.input.type.storage.bits != 8):
            return None
        inputs: dict[Value, None] = {}
        for operand in (v for slot in trait.slots for v in slot.values(op)):
            if operand.is_constant and operand.array.size == 1:
                continue
            inner = self.sources.get(operand)
            if inner is not None and not (operand.name and _is_8bit(operand)):
                inputs.update(dict.fromkeys(inner))
            elif _is_8bit(operand) or _is_palette(operand):
                inputs[operand] = None
            else:
                return None
        if len(inputs) > 1:
            inputs = self._independent(inputs)
        if len(inputs) > _SOURCES:  # an unnamed 8-bit operand can be a source itself
            inputs = dict.fromkeys(v for v in op.present_operands if _is_8bit(v))
            if not 0 < len(inputs) <= _SOURCES or any(
                v is not None and v not in inputs and v in self.sources for v in op.operands
            ):
                return None
        sources = tuple(inputs)
        if not sources or not _spans(sources, op.result):
            return None
        return sources

    def _independent(self, inputs: dict[Value, None]) -> dict[Value, None]:
        """The inputs that are not functions of the others."""
        for value in sorted(self.sources.keys() & inputs.keys(), key=self._place_of_producer, reverse=True):
            others = {v: None for v in inputs if v is not value}
            if self._follows(value, others):
                inputs = others
        return inputs

    def _follows(self, value: Value, others: dict[Value, None]) -> bool:
        """Whether a value is computed from others alone, elementwise."""
        first = min(map(self._place_of_producer, others), default=len(self.place))
        pending, seen = [value], set(others)
        while pending:
            inner = self.sources.get(pending.pop())
            if inner is None:
                return False
            new = [v for v in inner if v not in seen]
            if len(seen) > _MOST_FOLLOWED or any(self._place_of_producer(v) < first for v in new):
                return False
            seen.update(new)
            pending += new
        return True

    def _place_of_producer(self, value: Value) -> int:
        """The place of the op that makes a value; before all of them where none does."""
        return -1 if value.producer is None else self.place[value.producer]

    def _cone(self, root: Op, inside: Container[Value], most: int) -> list[Op]:
        """The ops between values and the root, in order; no more than so many, those next to the root first."""
        seen, pending = {root}, deque([root])
        while pending:
            for value in pending.popleft().present_operands:
                producer = value.producer
                if producer is None or value in inside or producer in seen:
                    continue
                if len(seen) == most:
                    return sorted(seen, key=self.place.__getitem__)
                seen.add(producer)
                pending.append(producer)
        return sorted(seen, key=self.place.__getitem__)

    def _gain(self, op: Op, sources: tuple[Value, ...]) -> float:
        """The time that a table in the place of the op saves; 0 or less if none. Of one source it counts no more ops
        than show that it saves some."""
        if len(sources) == 2:
            cone = self._cone(op, sources, _MOST_OPS + 1)
            return self.worth(cone, 2) * op.result.type.size if len(cone) <= _MOST_OPS else 0.0
        gain = self.worth(self._cone(op, sources, _ENOUGH_OPS), 1) * op.result.type.size
        if gain > 0:
            return gain
        return self.worth(self._cone(op, sources, len(self.place)), 1) * op.result.type.size

    def _lookup(self, op: Op, place: int, threshold: _Gain) -> tuple[float, _Lookup | None]:
        """The op as a lookup and what that saves, if it is worth it and its result type can be an entry."""
        sources, storage = self.sources[op.result], op.result.type.storage
        large = len(sources) == 2
        if not storage.is_integer or (large and storage.bits != 8) or all(v.is_constant for v in sources):
            return 0.0, None
        gain = self._gain(op, sources)
        if gain <= 0 or (large and (gain, -self.number, place) <= threshold):
            return gain, None
        operands, grids = zip(*map(_indexed, sources), strict=True)
        planes = self._evaluated(op, sources, grids)
        if planes is None:
            return gain, None
        return gain, _Lookup(operands, np.broadcast_to(planes, [256] * len(sources)).reshape(-1))

    def _evaluated(self, op: Op, sources: tuple[Value, ...], grids: Sequence[np.ndarray]) -> np.ndarray | None:
        """The op's results for the numbers of its sources; None if some op on the way has no evaluator. What is found
        of tensors on the way serves the ops before."""
        known = self.evaluated.setdefault(sources, {})
        if not known or (len(sources) == 2 and len(known) > _MOST_PLANES):
            known.clear()
            for axis, (source, numbers) in enumerate(zip(sources, grids, strict=True)):
                known[source] = numbers.reshape([-1 if i == axis else 1 for i in range(len(sources))])
        if op.result in known:
            return known[op.result]
        env: dict[Value, np.ndarray] = {}
        for inner in self._cone(op, known, len(self.place)):
            arrays: list[np.ndarray | None] = []
            for value in inner.operands:
                array = None if value is None else env.get(value)
                if value is not None and array is None:
                    array = known[value] if value in known else _scalar(value)
                    if array is None:  # it has no evaluator
                        return None
                arrays.append(array)
            results = evaluate_op(inner, arrays)
            if results is None:
                known.update(dict.fromkeys(inner.results))
                return None
            env.update(zip(inner.results, results, strict=True))
            known.update((v, env[v]) for v in inner.results if v.name or v in self.returned)
        return env[op.result]

    def _shared(self, entries: np.ndarray) -> Value:
        """A constant; equal tables are one."""
        entries = np.ascontiguousarray(entries)
        key = (entries.dtype, entries.tobytes())
        if key not in self.tables:
            table = self.tables[key] = constant(entries)
            assert table.buffer is not None
            table.buffer = self.buffers.setdefault(key, table.buffer)
        return self.tables[key]


def _is_per_channel(op: Op) -> bool:
    return (isinstance(op, Rescale) and op.per_channel) or (
        isinstance(op, (RescaleF64, RescaleF32)) and np.size(op.scale) > 1
    )


def _is_8bit(value: Value) -> bool:
    return value.type.element == value.type.storage and value.type.storage.bits == 8 and value.type.storage.is_integer


def _is_palette(value: Value) -> bool:
    """A constant of few different integers: as good as an 8-bit one."""
    if not value.is_constant or not value.type.storage.is_integer:
        return False
    if not 0 < value.array.size <= _PALETTE_ELEMENTS:
        return False
    return distinct(value.array)[0].size <= 256


def _indexed(source: Value) -> tuple[Value, np.ndarray]:
    """An 8-bit tensor and the value that each of its 256 numbers stands for, smallest first."""
    storage = source.type.storage
    if _is_8bit(source):
        return source, np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype)
    palette, index = distinct(source.array)
    values = np.full(256, palette[0])
    values[: palette.size] = palette
    return constant(index.astype(np.uint8).reshape(source.array.shape)), values


def _scalar(value: Value) -> np.ndarray:
    """A constant operand: a scalar, so that its rank does not matter; a table as it is."""
    return value.array.reshape(()) if value.array.size == 1 else value.array


def _spans(sources: tuple[Value, ...], result: Value) -> bool:
    """Whether the sources broadcast to the result's shape by themselves."""
    try:
        return broadcast(*(v.type.shape for v in sources)) == result.type.shape
    except Misfit:
        return False
