"""The memory that a TFLite file's activations need while it runs, by the rule of the interpreter's memory planner.

Each tensor lives from the operator that makes it to the last one that reads it. Those that live all the time are
placed first, then the others from the largest to the smallest, each in the tightest gap between tensors that live when
it does, or behind them, at multiples of 64 bytes. A view has the place of its source, a result that is computed in
place the place of an operand that nothing else reads. Kernels ask for scratch memory; they are the optimized ones, with
one thread and without delegate.

Source: ArenaPlanner in tflite/arena_planner.cc, SimpleMemoryArena::Allocate in tflite/simple_memory_arena.cc; scratch
memory: `Prepare` in tflite/kernels/ conv.cc, depthwise_conv.cc, conv3d.cc, transpose_conv.cc, batch_matmul.cc,
fully_connected.cc, reduce.cc, add_n.cc and svdf.cc.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from tflq.analysis.known import Prepared, prepared
from tflq.analysis.lifetimes import Lifetimes
from tflq.dialects.declare import Operator
from tflq.dialects.effects import callees, is_variable
from tflq.dialects.tfl.arithmetic import RFFT2D, AddN
from tflq.dialects.tfl.convolution import (
    BatchMatMul,
    Conv2D,
    Conv3D,
    Conv3DTranspose,
    DepthwiseConv2D,
    FullyConnected,
    TransposeConv,
)
from tflq.dialects.tfl.pooling import (
    AxesReduced,
    Mean,
    NumbersReduced,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    Sum,
)
from tflq.dialects.tfl.state import Custom
from tflq.dialects.traits import Calls, InPlace, Recurrent, View
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, f32, i4, i8, i16, i32, i64, ui8

# The scratch memory that kernels ask for.


_MOST_IM2COL: Final = 1 << 30
"""Bytes from which on a window matrix is not made (kMaxIm2colBufferSizeMobile)."""
_FILTER_WIDTH, _FILTER_DEPTH = 4, 32
"""Units and inputs from which on int4 weights have a kernel whose scratch depends on the machine."""


class Scratch:
    """Bytes of each tensor: `shared` ones live while the operator runs, `persistent` ones as long as the
    interpreter."""

    __slots__ = ("persistent", "shared")

    def __init__(self, shared: tuple[int, ...] = (), persistent: tuple[int, ...] = ()) -> None:
        self.shared: Final = shared
        self.persistent: Final = persistent


_NONE: Final = Scratch()


def bytes_of(value: Value) -> int:
    """Bytes of a tensor as the file states its shape: an open dim is 1."""
    return _sized(value.type.dims, value.type.storage)


def scratch_of(op: Op) -> Scratch | None:
    """The scratch memory of an operator's kernel; None if it is not known."""
    kind: Any = type(op)
    size = _size_for(kind)
    return size(op) if callable(size) else size


@cache
def _size_for(kind: type) -> Callable[[Any], Scratch | None] | Scratch | None:
    """The scratch memory of all operators of a class, or the function that gives it for one."""
    if kind in _SIZES:
        return _SIZES[kind]
    if issubclass(kind, Operator) and kind.has(Recurrent):
        return _recurrent
    return None if issubclass(kind, (Custom, Conv3DTranspose, RFFT2D)) else _NONE


def _dims(value: Value) -> tuple[int, ...]:
    return tuple(1 if dim is None else dim for dim in value.type.dims)


@lru_cache(maxsize=1024)
def _sized(dims: tuple[int | None, ...], element: ScalarType) -> int:
    bits = max(element.bits, 8) if element.bits == 1 else element.bits
    return -(-math.prod(1 if dim is None else dim for dim in dims) * bits // 8)


def _conv_2d(op: Conv2D) -> Scratch:
    (batch, height, width, channels), (_, *window), output = _dims(op.input), _dims(op.filter), _dims(op.output)
    element, weights = op.input.type.storage, op.filter.type.storage
    hybrid = element == f32 and weights in (i8, ui8, i4)
    strides = (op.stride_h, op.stride_w, op.dilation_h_factor, op.dilation_w_factor)
    shared: list[int] = []
    if max(*strides, *window[:2]) != 1:
        columns = _sized((*output[:3], *window), i8 if hybrid else element)
        if columns < _MOST_IM2COL or hybrid:
            shared.append(columns)
    if not hybrid:
        return Scratch(tuple(shared))
    rows = batch * height * width * (channels // window[2] if window[2] else 1)
    shared += [math.prod(_dims(op.input)), 4 * rows, 4 * math.prod(output)]
    if not isinstance(op.filter.type.element, UniformQuantizedPerAxisType):
        return Scratch(tuple(shared))
    return Scratch((*shared, 4 * rows), (4 * output[3],))


def _depthwise(op: DepthwiseConv2D) -> Scratch:
    if op.input.type.storage != f32 or op.filter.type.storage != i8:
        return Scratch()
    dims = _dims(op.input)
    return Scratch((math.prod(dims), 4 * dims[0], 4 * dims[0]))


def _conv_3d(op: Conv3D) -> Scratch:
    window, output = _dims(op.filter)[:4], _dims(op.output)
    strides = (op.stride_d, op.stride_h, op.stride_w, op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor)
    if max(*strides, *window[:3]) == 1:
        return Scratch()
    return Scratch((_sized((*output[:4], math.prod(window)), op.input.type.storage),))


def _transposed(op: TransposeConv) -> Scratch | None:
    (_, height, width, _), weights = _dims(op.input), _dims(op.filter)
    element = op.input.type.storage
    if element == f32 and op.filter.type.storage == i8:
        return None
    persistent = [4 * height * width * math.prod(weights[:3]), bytes_of(op.filter)]
    if element != f32:
        bias = op.bias.type.storage if op.bias is not None else i64
        persistent.append(_sized(_dims(op.output), bias if element == i16 else i32))
    return Scratch((), tuple(persistent))


def _batch_matmul(op: BatchMatMul) -> Scratch:
    left, right = bytes_of(op.lhs), bytes_of(op.rhs)
    shared, persistent = ([left], [right]) if op.rhs.is_constant else ([left, right], [])
    if op.lhs.type.storage == f32 and op.rhs.type.storage == i8:
        lhs, rhs = _dims(op.lhs), _dims(op.rhs)
        rows, units = lhs[-1] if op.adj_x else lhs[-2], rhs[-2] if op.adj_y else rhs[-1]
        factors = 4 * math.prod(lhs[:-2]) * rows
        shared += [math.prod(lhs), factors, 4 * units * rows, factors]
        persistent.append(4 * math.prod(rhs[:-2]) * units)
    return Scratch(tuple(shared), tuple(persistent))


def _fully_connected(op: FullyConnected) -> Scratch | None:
    weights = op.weights.type.storage
    if op.input.type.storage != f32 or weights == f32:
        return Scratch()
    units, depth = _dims(op.weights)
    if op.weights.info.get("sparsity") or (weights == i4 and units >= _FILTER_WIDTH and depth >= _FILTER_DEPTH):
        return None
    elements = math.prod(_dims(op.input))
    batch = elements // depth if depth else 0
    return Scratch((elements, 4 * batch, 4 * units * batch, 4 * batch), (4 * units,))


def _reduced(op: AxesReduced) -> Scratch:
    return Scratch((4 * len(_dims(op.input)), 4 * math.prod(_dims(op.axes))))


def _summed(op: NumbersReduced) -> Scratch:
    element, count = op.input.type.storage, math.prod(_dims(op.output))
    wide = 8 if element in (i32, i64) else 4
    return Scratch((*_reduced(op).shared, wide * count))


def _recurrent(op: Op) -> Scratch | None:
    from tflq.dialects.tfl.recurrent import SVDF

    if not isinstance(op, SVDF) or op.input.type.storage != i8:
        return None
    batch, filters, units = _dims(op.input)[0], _dims(op.feature)[0], _dims(op.output)[-1]
    return Scratch((4 * batch * filters, 4 * batch * units))


def _add_n(op: AddN) -> Scratch:
    return Scratch((bytes_of(op.present_operands[0]),))


_SIZES: Final[dict[type[Op], Callable[[Any], Scratch | None]]] = {
    Conv2D: _conv_2d,
    DepthwiseConv2D: _depthwise,
    Conv3D: _conv_3d,
    TransposeConv: _transposed,
    BatchMatMul: _batch_matmul,
    FullyConnected: _fully_connected,
    Mean: _summed,
    Sum: _summed,
    ReduceProd: _summed,
    **dict.fromkeys((ReduceMax, ReduceMin, ReduceAny, ReduceAll), _reduced),
    AddN: _add_n,
}


# The planner.


_ALIGNMENT: Final = 64
_LEAST_BYTES: Final = 4
"""Bytes up to which a tensor is not computed in place."""
_ALWAYS: Final = 1 << 60
"""The last operator of what lives to the end."""


@dataclass(frozen=True, slots=True)
class Arena:
    """Memory that the activations of a function need while it runs: `Conversion.arena`.

    Attributes:
        shared: Bytes of the part in which tensors reuse each other's place. None if the sizes of some tensors depend on
            values: see `dynamic`.
        kept: Bytes for variables, and for what kernels keep for themselves.
        dynamic: The operator whose results have sizes that depend on values.
        beside: Operators, by name, whose kernels need scratch memory of unknown size on top.

    Example:
        ```python
        before = tflq.inspect("in.tflite").summary.functions[0].arena
        after = tflq.convert("in.tflite").arena
        print(before.bytes, after.bytes)
        ```
    """

    shared: int | None
    kept: int
    dynamic: str = ""
    beside: tuple[str, ...] = ()

    @property
    def bytes(self) -> int | None:
        """Shared and kept bytes together. None if only a run can tell."""
        return None if self.shared is None else self.shared + self.kept

    def to_json(self) -> dict[str, Any]:
        """The fields and `bytes` as JSON values."""
        sizes = {"bytes": self.bytes, "shared": self.shared, "kept": self.kept}
        return {**sizes, "dynamic": self.dynamic or None, "beside": list(self.beside)}


def arenas(module: Module) -> list[Arena]:
    """The arena of each function of a module on TFLite's operators, without those of functions that it runs."""
    return [_arena(f, p) for f, p in zip(module.functions, prepared(module), strict=True)]


def arena_of(module: Module) -> Arena:
    """The arena that running the first function needs: its own, and those of the functions that its operators run, each
    of which the interpreter plans by itself."""
    reached, waiting = {0}, [0]
    while waiting:
        called = {index for op in module.functions[waiting.pop()].ops_with(Calls) for index in callees(op)}
        new = {index for index in called - reached if index < len(module.functions)}
        reached |= new
        waiting += new
    every = arenas(module)
    parts = [every[index] for index in sorted(reached)]
    shared = [part.shared for part in parts if part.shared is not None]
    return Arena(
        sum(shared) if len(shared) == len(parts) else None,
        sum(part.kept for part in parts),
        next((part.dynamic for part in parts if part.dynamic), ""),
        tuple(dict.fromkeys(name for part in parts for name in part.beside)),
    )


def offsets(module: Module, function: int = 0) -> dict[Value, int]:
    """Where in its arena each argument and result of a function is, if it has a place there; values that share memory
    have the same."""
    plan = _Plan(module.functions[function], prepared(module)[function])
    places = _place(plan.spans)
    return {value: places[at] for value, at in plan.numbers.items() if at < len(places)}


class _Span:
    """One tensor: its bytes, its number in the file, and the first and last operator that it lives for."""

    __slots__ = ("first", "last", "number", "size")

    def __init__(self, size: int, first: int, last: int = _ALWAYS, number: int = 0) -> None:
        self.size = size
        self.first = first
        self.last = last
        self.number = number

    @property
    def always(self) -> bool:
        return self.first == 0 and self.last == _ALWAYS


@cache
def _sharing(kind: type) -> View | InPlace | None:
    """The trait of a class of ops whose results can be where an operand is."""
    return kind.trait(View) or kind.trait(InPlace) if issubclass(kind, Operator) else None


class _Plan:
    """The tensors of one function: the `spans` that the planner places, their `numbers` by value, and the bytes of
    those that are `persistent`."""

    def __init__(self, function: Function, known: Prepared) -> None:
        self._function = function
        self._known = known
        self.spans: list[_Span] = []
        self.numbers: dict[Value, int] = {}
        self.beside: dict[str, None] = {}
        self._persistent: list[int] = []
        self._ends = {*function.inputs, *function.outputs}
        self._readers = Counter(v for op in function.ops for v in op.present_operands)
        self._readers.update(function.outputs)
        self._readers.update(function.inputs)
        self._roots = self._shared()
        # the number of each tensor in the file's table, or of what was not read from a file in use
        self._index = {value: at for at, value in enumerate(function.tensors or function.values())}
        for value in self._standing():
            self._add(value, 0)
        self._walk()

    @property
    def persistent(self) -> int:
        return _end([_Span(size, 0) for size in self._persistent])

    def _standing(self) -> list[Value]:
        """Inputs that have a place of their own, and the variables."""
        used = dict.fromkeys((*self._function.inputs, *self._readers))
        self._persistent += [bytes_of(v) for v in (*filter(is_variable, used), *self._known.persistent)]
        return [v for v in used if v in self._ends and self._function.inputs.count(v) and self._is_placed(v)]

    def _is_placed(self, value: Value) -> bool:
        outside = value.is_constant or is_variable(value) or value in self._known.persistent
        return not outside and value not in self._known.computed

    def _add(self, value: Value, first: int) -> None:
        root = self._roots.get(value)
        if root is not None:
            self.numbers[value] = self.numbers[root]
        elif value not in self.numbers:
            self.numbers[value] = len(self.spans)
            self.spans.append(_Span(bytes_of(value), first, number=self._index.get(value, 0)))

    def _shared(self) -> dict[Value, Value]:
        """The tensor in whose memory each view, and each result that is computed in place, is."""
        roots: dict[Value, Value] = {}
        for op in self._function.ops:
            kind: Any = type(op)
            trait = _sharing(kind)
            if trait is None or not op.results:
                continue
            changed = not isinstance(trait, View)
            for slot in trait.slots:
                value = slot.value(op)
                if value is not None and self._can_share(value, op.result, changed=changed):
                    root = roots.get(value, value)
                    if not changed or self._readers[root] <= 1:
                        roots[op.result] = root
                    break
        return {v: root for v, root in roots.items() if bytes_of(v) == bytes_of(root)}

    def _can_share(self, value: Value, result: Value, *, changed: bool) -> bool:
        if value in self._ends or result in self._ends or not self._is_placed(value) or not self._is_placed(result):
            return False
        if not changed:
            return True
        size = bytes_of(value)
        return size == bytes_of(result) and size > _LEAST_BYTES and self._readers[value] <= 1

    def _walk(self) -> None:
        """Spans of all results and of what kernels ask for, in the order of the operators. The last reader of a value
        ends its span."""
        left = Counter(self._readers)
        roots, numbers = self._roots, self.numbers
        for value, root in roots.items():
            left[root] += left.pop(value, 0)
        for number, op in enumerate(self._function.ops):
            for result in op.results:
                if self._is_placed(result):
                    self._add(result, number)
            for operand in op.operands:
                if operand is None:
                    continue
                root = roots.get(operand, operand)
                left[root] -= 1
                if left[root] == 0 and root in numbers:
                    self.spans[numbers[root]].last = number
            self._add_scratch(op, number)

    def _add_scratch(self, op: Op, number: int) -> None:
        scratch = scratch_of(op)
        if scratch is None:
            self.beside[op.code if isinstance(op, Custom) else _opcode(op)] = None
            return
        self.spans += [_Span(size, number, number) for size in scratch.shared]
        self._persistent += scratch.persistent


def _arena(function: Function, known: Prepared) -> Arena:
    plan = _Plan(function, known)
    beside = tuple(plan.beside)
    if known.dynamic is not None:
        return Arena(None, plan.persistent, _where(function, known.dynamic), beside)
    return Arena(_end(plan.spans), plan.persistent, "", beside)


def _where(function: Function, op: Op) -> str:
    return f"operator {function.ops.index(op)} ({_opcode(op)})"


def _opcode(op: Op) -> str:
    return op.short_name.upper()


def _end(spans: Sequence[_Span]) -> int:
    return max((at + span.size for at, span in zip(_place(spans), spans, strict=True)), default=0)


def _place(spans: Sequence[_Span]) -> list[int]:
    """The offset of each span. Those that live all the time are one behind the other. For another one we look only at
    those that live with it: alive when it begins, or beginning later."""
    places = [0] * len(spans)
    end = 0
    for i in sorted((i for i, span in enumerate(spans) if span.always and span.size), key=lambda i: spans[i].number):
        places[i] = _aligned(end)
        end = places[i] + spans[i].size
    lifetimes = Lifetimes()
    last = max((s.first if s.last == _ALWAYS else s.last for s in spans), default=0)
    others = (i for i, span in enumerate(spans) if not span.always and span.size)
    for i in sorted(others, key=lambda i: (-spans[i].size, spans[i].first, -i)):
        span, until = spans[i], min(spans[i].last, last)
        occupied = sorted((places[j], places[j] + spans[j].size) for j in lifetimes.beside(span.first, until))
        places[i] = _gap(occupied, span.size, end)
        lifetimes.add(i, span.first, until)
    return places


def _aligned(at: int) -> int:
    return -(-at // _ALIGNMENT) * _ALIGNMENT


def _gap(occupied: Sequence[tuple[int, int]], size: int, at: int) -> int:
    """Where a tensor goes, from a place on, between others that are sorted by where they begin."""
    best, fit = None, None
    for begin, end in occupied:
        aligned = _aligned(at)
        if aligned + size <= begin and (fit is None or begin - aligned < fit):
            best, fit = aligned, begin - at
        at = max(at, end)
        if fit == 0:
            break
    return _aligned(at) if best is None else best
