"""Facts of a model before it runs: elements of tensors, early results, ranges of integers, accesses of variables.

SHAPE of an open batch is [?, 224, 224, 3]. An op that moves such elements moves the question marks with them (the
evaluator runs on the flags as it does on the elements), and one that computes with a question mark gives one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.analysis.evaluate.registry import evaluate_op, evaluator
from tflq.base.errors import Refused
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.effects import callees, entry_functions, is_handle, is_variable
from tflq.dialects.inference import constant_array
from tflq.dialects.quant import Scast
from tflq.dialects.tfl.movement import Concatenation, Pack, Slice
from tflq.dialects.tfl.pooling import Reduction
from tflq.dialects.tfl.shape import BroadcastArgs, Rank
from tflq.dialects.tfl.shape import Shape as TflShape
from tflq.dialects.tfl.state import AssignVariable, CallOnce, If, ReadVariable, VarHandle
from tflq.dialects.tosa.elementwise import Add, ArithmeticRightShift, Clamp, Clz, Maximum, Minimum, Mul, Sub
from tflq.dialects.tosa.movement import Cast, ReduceMax, ReduceSum, Rescale, Table
from tflq.dialects.traits import (
    Broadcasts,
    Calls,
    ComputedEarly,
    Elementwise,
    MovesElements,
    PersistentIfConstant,
    ReadsShapes,
    SizedBy,
    WithinRange,
)
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import SCALARS, Shape
from tflq.numerics.convolution import channel_sums

LIMIT: Final = 4096
"""Elements of a tensor that is still computed: shapes and indices are small."""


class Known:
    """`open` flags the elements that are not known, which are 1 in `array`; None if all are known."""

    def __init__(self, array: np.ndarray, open: np.ndarray | None = None) -> None:
        self.array: Final = array
        self.open: Final = open

    @property
    def complete(self) -> bool:
        return self.open is None

    @property
    def flags(self) -> np.ndarray:
        return np.zeros(self.array.shape, bool) if self.open is None else self.open

    def elements(self) -> list[int | None]:
        """All elements, as integers."""
        pairs = zip(self.array.reshape(-1).tolist(), self.flags.reshape(-1).tolist(), strict=True)
        return [None if unknown else int(v) for v, unknown in pairs]

    @classmethod
    def of(cls, array: np.ndarray, flags: np.ndarray) -> Known:
        """An array and its flags."""
        if not flags.any():
            return cls(array)
        return cls(np.where(flags, np.ones((), array.dtype), array), flags)

    def same(self, other: Known) -> bool:
        return (
            self.array.dtype == other.array.dtype
            and np.array_equal(self.array, other.array)
            and np.array_equal(self.flags, other.flags)
        )

    def join(self, other: Known) -> Known | None:
        """The elements that are known in both; None if shapes or types differ."""
        if self.array.shape != other.array.shape or self.array.dtype != other.array.dtype:
            return None
        return Known.of(self.array, self.flags | other.flags | (self.array != other.array))


def constant_elements(value: Value) -> Known | None:
    """The elements of a constant of plain numbers."""
    array = constant_array(value)
    return None if array is None else Known(array, None)


def elements_of(op: Op, shapes: Sequence[Shape], known: Sequence[Known | None]) -> list[Known] | None:
    """The results' elements of an op on plain numbers; None if nothing is known of them, or if they are too many."""
    if isinstance(op, TflShape):
        return _shape_of(op, shapes[0])
    if isinstance(op, Rank):
        return None if shapes[0] is None else [Known(np.asarray(len(shapes[0]), np.int32))]
    operands = [k for k in known if k is not None]
    if len(operands) != len(op.operands) or not operands or sum(k.array.size for k in operands) > 1 << 20:
        return None
    if any(v is None or v.type.quantized or not v.type.storage.numpy for v in (*op.operands, *op.results)):
        return None
    try:
        with np.errstate(all="ignore"):
            results = _compute(op, operands)
    except (ValueError, IndexError, ZeroDivisionError, NotImplementedError, OverflowError):
        return None
    if results is None or any(k.array.size > LIMIT for k in results):
        return None
    return results


def _shape_of(op: Op, dims: Shape) -> list[Known] | None:
    if dims is None or not op.result.type.storage.is_integer:
        return None
    dtype = op.result.type.storage.dtype
    return [Known.of(np.asarray([1 if d is None else d for d in dims], dtype), np.asarray([d is None for d in dims]))]


def _compute(op: Op, operands: list[Known]) -> list[Known] | None:
    compute = evaluator.get(type(op))
    if compute is None or not isinstance(op, Operator):
        return None
    flags: Any = [False] * len(op.results)
    if not all(k.complete for k in operands):
        flags = _flags(op, operands, compute)
        if flags is None:
            return None
    arrays = evaluate_op(op, [k.array for k in operands])
    assert arrays is not None
    return [Known.of(a, np.broadcast_to(f, a.shape)) for a, f in zip(arrays, flags, strict=True)]


def _flags(op: Operator, operands: list[Known], compute: Callable[..., Any]) -> list[np.ndarray] | None:
    """Flags of the open elements of the results; None if the flags depend on open elements."""
    moved = op.trait(MovesElements)
    if moved is not None:
        if not all(k.complete or moved.moves(i) for i, k in enumerate(operands)):
            return None
        results = compute(op, *(k.flags if moved.moves(i) else k.array for i, k in enumerate(operands)))
        return [np.asarray(m, bool) for m in (results if isinstance(results, list) else [results])]
    if op.has(Broadcasts, Elementwise) or isinstance(op, BroadcastArgs):
        return [functools.reduce(np.logical_or, [k.flags for k in operands])]
    if isinstance(op, Reduction) and operands[1].complete:
        return [np.any(operands[0].flags, tuple(operands[1].array.reshape(-1).tolist()), keepdims=op.keep_dims)]
    return None


# What the interpreter knows before it runs: results that it computes while it prepares (`ComputedEarly`), and results
# whose size follows from values that it computes only later ("dynamic", `SizedBy`). Source: SetTensorToPersistentRo and
# SetTensorToDynamic in tflite/kernels.


_UNSIZED: Final = (SCALARS["!tfl.string"], SCALARS["!tfl.variant"])


class Prepared:
    """Of one function: the results that are `computed` before it runs, those that are `persistent` from the first run
    on, and the first op whose result is `dynamic`."""

    def __init__(
        self,
        computed: frozenset[Value] = frozenset(),
        persistent: frozenset[Value] = frozenset(),
        dynamic: Op | None = None,
    ) -> None:
        self.computed: Final = computed
        self.persistent: Final = persistent
        self.dynamic: Final = dynamic


def prepared(module: Module) -> list[Prepared]:
    """The facts of each function. An op that runs a function with dynamic results has dynamic results, too."""
    known: dict[int, Prepared] = {}
    for index in range(len(module.functions)):
        _prepare(module, index, known, ())
    return [known[index] for index in range(len(module.functions))]


def first_dynamic(module: Module, function: Function) -> Op | None:
    """The first op whose result is dynamic, of a function that calls those of the module."""
    return _look(module, function, {}, ()).dynamic


def _prepare(module: Module, index: int, known: dict[int, Prepared], within: Sequence[int]) -> Prepared:
    if index in known or index in within or index >= len(module.functions):
        return known.get(index, Prepared())
    known[index] = _look(module, module.functions[index], known, (*within, index))
    return known[index]


def _look(module: Module, function: Function, known: dict[int, Prepared], within: Sequence[int]) -> Prepared:
    computed: set[Value] = set()
    persistent: set[Value] = set()
    dynamic: Op | None = None
    for op in function.ops:
        kind: Any = type(op)
        early, once, sized, calls = _early_traits(kind)
        if early is not None and (
            isinstance(early, ReadsShapes) or all(v is None or _is_known(v, computed) for v in op.operands)
        ):
            computed.update(op.results)
        if once is not None and all(_is_constant(slot.value(op)) for slot in once.slots):
            persistent.update(op.results)
        if dynamic is None:
            called = () if calls is None else [_prepare(module, each, known, within) for each in callees(op)]
            if (
                any(v.type.storage in _UNSIZED for v in op.results)
                or (sized is not None and _is_dynamic(op, sized, computed))
                or (op.results and any(each.dynamic is not None for each in called))
            ):
                dynamic = op
    return Prepared(frozenset(computed), frozenset(persistent), dynamic)


@functools.cache
def _early_traits(
    kind: type,
) -> tuple[ComputedEarly | None, PersistentIfConstant | None, SizedBy | None, Calls | None]:
    """The traits of a class of ops that say what the interpreter knows early."""
    if not issubclass(kind, Operator):
        return None, None, None, None
    return kind.trait(ComputedEarly), kind.trait(PersistentIfConstant), kind.trait(SizedBy), kind.trait(Calls)


def _is_dynamic(op: Op, sized: SizedBy, computed: set[Value]) -> bool:
    if isinstance(op, Slice) and op.result.type.is_static:  # SLICE goes by the shape that is stated
        return False
    return not all(v is None or _is_known(v, computed) for v in [slot.value(op) for slot in sized.slots])


def _is_known(value: Value, computed: set[Value]) -> bool:
    return value in computed or _is_constant(value)


def _is_constant(value: Value | None) -> bool:
    return value is not None and value.is_constant and not is_variable(value)


# Sizes. A model with an open batch computes the shapes that its operators take from SHAPE of a tensor: all of it but
# the batch is known.


def known_elements(
    value: Value, seen: dict[Value, Known | None] | None = None, *, any_batch: bool = False
) -> Known | None:
    """The known elements of an integer tensor, from constants and from the shapes that types state; None if nothing
    follows.

    seen: answers of earlier calls, as long as no type changes. any_batch: the first dim of a tensor is not known even
    if its type states it, since a model can be resized.
    """
    seen = {} if seen is None else seen
    waiting = [value]
    while waiting:
        first = waiting[-1]
        missing = [v for v in _needed(first) if v not in seen]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        if first not in seen:
            seen[first] = _follow(first, seen, any_batch)
    return seen[value]


def _is_small(value: Value) -> bool:
    """Whether it is a tensor of plain integers small enough to be followed."""
    shape = value.type.shape
    small = shape is not None and math.prod(d or 0 for d in shape) <= LIMIT
    return small and value.type.storage.is_integer and not value.type.quantized


def _needed(value: Value) -> list[Value]:
    """The values whose elements those of a value follow from."""
    op = value.producer
    if op is None or not op.name.startswith("tfl.") or not _is_small(value) or op.matches(ReadsShapes):
        return []
    return [v for v in op.operands if v is not None and v is not value]


def _follow(value: Value, seen: Mapping[Value, Known | None], any_batch: bool) -> Known | None:
    """The elements that follow from those of an op's operands. Operands of PACK and CONCATENATION may be unknown."""
    op = value.producer
    if op is None:
        return constant_elements(value)
    if not op.name.startswith("tfl.") or not _is_small(value):
        return None
    joins = isinstance(op, (Pack, Concatenation))
    known = [None if v is None else seen.get(v) or (_open(v) if joins else None) for v in op.operands]
    shapes = [None if v is None else v.type.shape for v in op.operands]
    if any_batch and isinstance(op, TflShape) and shapes[0]:
        shapes = [(None, *shapes[0][1:])]
    elements = elements_of(op, shapes, known)
    return None if elements is None else elements[op.results.index(value)]


def _open(value: Value) -> Known | None:
    """Elements of which none is known; None if their number is not."""
    if not _is_small(value) or not value.type.is_static:
        return None
    shape = value.type.sizes
    return Known.of(np.ones(shape, value.type.storage.dtype), np.ones(shape, bool))


# Bounds of integer values, by interval arithmetic over the ops that make them: with them a cheaper kernel sequence is
# proven. They are those of the numbers before they wrap; where they leave the type, the type's own bounds hold.


Range: TypeAlias = tuple[int, int]
_Rule: TypeAlias = Callable[[Any, Callable[[Value], Range]], Range]

_DEPTH = 12
_UNKNOWN = (-(1 << 64), 1 << 64)
"""Beyond every integer type."""
_TWO_32 = 1 << 32
_FEW = 4
"""Channels up to which Python's own numbers are faster than numpy's."""


def value_range(value: Value) -> Range:
    """Least and greatest value that an integer tensor can hold; what a float makes is not followed."""
    return Ranges().of(value)


def weight_sums(weights: Value, axis: tuple[int, ...]) -> np.ndarray:
    """`channel_sums` of constant weights, int64, over dims that follow each other: kept with their buffer, which each
    form of a layer refers to."""
    shape, remaining = weights.array.shape, tuple(d for i, d in enumerate(weights.array.shape) if i not in axis)
    first, behind = min(axis), max(axis) + 1
    dims = tuple([math.prod(part) for part in (shape[:first], shape[first:behind], shape[behind:])])

    def compute() -> np.ndarray:
        return channel_sums(weights.array.reshape(dims), (1,))

    if weights.buffer is None or "sparsity" in weights.info:
        return compute().reshape(remaining)
    return weights.buffer.once((channel_sums, weights.type.storage, dims), compute).reshape(remaining)


class Ranges:
    """The ranges of values whose ops do not change meanwhile, each computed once. `sums`: those of sums, leading zeros
    and differences to a greatest value are followed, too."""

    def __init__(self, *, sums: bool = False) -> None:
        self.rules: Final[Mapping[type[Op], _Rule]] = _RULES_OF_SUMS if sums else _RULES
        self._known: dict[Value, tuple[int, Range]] = {}

    def of(self, value: Value, depth: int = _DEPTH) -> Range:
        """The range of a value, see `value_range`; at least `depth` ops are followed."""
        known = self._known.get(value)
        if known is None or known[0] < depth:
            known = self._known[value] = depth, _range_of(value, depth, self)
        return known[1]


def _range_of(value: Value, depth: int, ranges: Ranges) -> Range:
    storage = value.type.storage
    if storage.is_float:
        return _UNKNOWN
    whole = (storage.minimum, storage.maximum)
    if value.is_constant:
        array = value.array
        if array.size == 1:
            return (number := int(array.item())), number
        return (int(array.min()), int(array.max())) if array.size else (0, 0)
    op = value.producer
    if op is None or depth == 0:
        return whole
    rule = ranges.rules.get(type(op))
    if rule is None and trait_of(op, WithinRange):
        rule = _moved
    if rule is None:
        return whole
    low, high = rule(op, lambda operand: ranges.of(operand, depth - 1))
    return (low, high) if whole[0] <= low and high <= whole[1] else whole


def _corners(function: Callable[[Any, int, int], int], slack: int = 0) -> _Rule:
    """The range of a function of two operands that is monotone in each; `slack`: how much more it may be."""

    def rule(op: Add | Sub | Mul | Maximum | Minimum | ArithmeticRightShift, of: Callable[[Value], Range]) -> Range:
        values = [function(op, a, b) for a, b in product(of(op.input1), of(op.input2))]
        return min(values), max(values) + slack

    return rule


def _rescale(op: Rescale, of: Callable[[Value], Range]) -> Range:
    """Both ends of all channels, two more than each to leave the rounding out of it, saturated to the type. What the
    op says of its operand need not be followed."""
    storage = op.output.type.storage
    low, high = of(op.input) if op.input_range is None else op.input_range
    ends: list[int] = []
    several = op.multiplier.size > _FEW
    for x in (int(low) - op.input_zp, int(high) - op.input_zp):
        if several and -_TWO_32 < x < _TWO_32:  # the product fits int64, whose shift by 63 leaves the sign
            scaled = (x * op.multiplier.astype(np.int64)) >> np.minimum(op.shift.astype(np.int64), 63)
            scaled_ends = [int(scaled.min()), int(scaled.max())]
        else:
            scaled_ends = [x * m >> s for m, s in zip(op.multiplier.tolist(), op.shift.tolist(), strict=True)]
        ends += scaled_ends
    return max(min(ends) + op.output_zp - 2, storage.minimum), min(max(ends) + op.output_zp + 2, storage.maximum)


def _table(op: Table, of: Callable[[Value], Range]) -> Range:
    return of(op.table) if op.input.type.storage.bits == 8 else (-(1 << 22), 1 << 22)


def _clamp(op: Clamp, of: Callable[[Value], Range]) -> Range:
    low, high = of(op.input)
    return min(max(low, op.min_val), op.max_val), min(max(high, op.min_val), op.max_val)


def _clz(op: Clz, of: Callable[[Value], Range]) -> Range:
    low, high = of(op.input)
    return (0, 32) if low < 0 else (32 - high.bit_length(), 32 - low.bit_length())


def _sum(op: ReduceSum, of: Callable[[Value], Range]) -> Range:
    shape = op.input.type.dims
    count = shape[op.axis] if shape else None
    if count is None:
        return _UNKNOWN
    low, high = of(op.input)
    return low * count, high * count


def _difference(op: Sub, of: Callable[[Value], Range]) -> Range:
    """The range of a difference; at most 0 where the greatest element of x is subtracted from x."""
    (low, high), (least, most) = of(op.input1), of(op.input2)
    greatest = _before_widening(op.input2).producer
    of_input = isinstance(greatest, ReduceMax) and greatest.input is _before_widening(op.input1)
    return low - most, min(high - least, 0) if of_input else high - least


def _before_widening(value: Value) -> Value:
    op = value.producer
    if (
        not isinstance(op, Cast)
        or op.input.type.storage.is_float
        or op.input.type.storage.bits >= value.type.storage.bits
    ):
        return value
    return op.input


def _cast(op: Cast | Scast, of: Callable[[Value], Range]) -> Range:
    return of(op.input)


def _moved(op: Operator, of: Callable[[Value], Range]) -> Range:
    trait = op.trait(WithinRange)
    ranges = [of(value) for slot in (trait.slots if trait else ()) for value in slot.values(op)]
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


_RULES: Final[Mapping[type[Op], _Rule]] = {
    Add: _corners(lambda _, a, b: a + b),
    Sub: _corners(lambda _, a, b: a - b),
    Mul: _corners(lambda op, a, b: (a * b + (1 << op.shift >> 1)) >> op.shift),
    Maximum: _corners(lambda _, a, b: max(a, b)),
    Minimum: _corners(lambda _, a, b: min(a, b)),
    Clamp: _clamp,
    ArithmeticRightShift: _corners(lambda _, a, b: a >> max(b, 0), slack=1),
    Rescale: _rescale,
    Table: _table,
    Cast: _cast,
    Scast: _cast,
}
"""For ops whose results are not elements of their operands."""
_RULES_OF_SUMS: Final[Mapping[type[Op], _Rule]] = {**_RULES, Clz: _clz, ReduceSum: _sum, Sub: _difference}


# Resource variables: which operators read and write each. VAR_HANDLE makes a handle, and an operator may pass it to a
# function that it calls. The shape of a variable follows from what it is initialized with, what is read from it and
# what is assigned to it. Kernels: var_handle.cc, read_variable.cc, assign_variable.cc, call_once.cc.


class Access:
    """An access of an operator that reads or assigns a variable. `once`: the function, by index, that CALL_ONCE runs
    for it; None for an access in every run."""

    __slots__ = ("name", "once", "op")

    def __init__(self, name: str, op: ReadVariable | AssignVariable, once: int | None = None) -> None:
        self.name: Final = name
        self.op: Final = op
        self.once: Final = once

    @property
    def value(self) -> Value:
        """The value that is read or assigned."""
        return self.op.value

    @property
    def written(self) -> bool:
        return isinstance(self.op, AssignVariable)


def variable_name(op: VarHandle) -> str:
    """The name of the variable that a VAR_HANDLE is of."""
    return "/".join(w for w in (op.container, op.shared_name) if w) or "variable"


def accesses(
    module: Module, index: int, handles: Sequence[str | None] = (), callers: tuple[int, ...] = ()
) -> Iterator[Access]:
    """Accesses of variables by a function and those that it calls, in order. handles: the names of the variables that
    its arguments are handles of. callers: the functions that are being followed."""
    if index in callers or not 0 <= index < len(module.functions):
        return
    function = module.functions[index]
    if not function.has_ops(VarHandle, ReadVariable, AssignVariable, Calls):
        return
    names = {v: name for v, name in zip(function.inputs, handles, strict=False) if name}
    for op in function.ops:
        if isinstance(op, VarHandle):
            names[op.result] = variable_name(op)
        elif isinstance(op, (ReadVariable, AssignVariable)):
            if op.resource in names:
                yield Access(names[op.resource], op)
        elif called := callees(op):
            passed = [None if v is None else names.get(v) for v in (op.inputs if isinstance(op, If) else op.operands)]
            for other in called:
                for access in accesses(module, other, passed, (*callers, index)):
                    yield Access(access.name, access.op, other) if isinstance(op, CallOnce) else access
            names.update({v: n for v, n in zip(op.results, passed, strict=False) if n and is_handle(v)})


class Accesses:
    """Accesses of a module's variables, by name and by handle."""

    def __init__(self, module: Module) -> None:
        self._named: dict[str, dict[tuple[Value, int | None], Access]] = {}
        self._names: dict[Value, dict[str, None]] = {}
        for index in entry_functions(module):
            for access in accesses(module, index):
                self._named.setdefault(access.name, {})[access.value, access.once] = access
                self._names.setdefault(access.op.resource, {})[access.name] = None
        self._ordered: dict[str, list[Access]] = {}

    def named(self, name: str) -> Sequence[Access]:
        """The accesses of a variable: initializations, reads and assignments."""
        if name not in self._ordered:
            listed = self._named.get(name, {}).values()
            self._ordered[name] = sorted(listed, key=lambda access: (access.once is None, access.written))
        return self._ordered[name]

    def names(self, handle: Value) -> Iterable[str]:
        """The variables that a value is a handle of."""
        return self._names.get(handle, ())

    def of(self, handle: Value) -> list[Access]:
        """The accesses of the variables that a value is a handle of."""
        return [access for name in self.names(handle) for access in self.named(name)]


def constant_behind(value: Value) -> Value | None:
    """The constant that a value is, under whatever type."""
    while isinstance(value.producer, Scast):
        value = value.producer.input
    return value if value.is_constant else None


def check_starts(module: Module, index: int, used: Container[str]) -> None:
    """Refused unless all that a function does is to give variables constants, none of them in use already: by their
    names, `used`."""
    for access in accesses(module, index):
        if access.name in used:
            raise Refused(f"the variable '{access.name}' is used before it, and variables can only start as constants")
    for inner in module.functions[index].ops:
        if isinstance(inner, AssignVariable):
            if constant_behind(inner.value) is None:
                raise Refused(f"'{inner.value.name}', which a variable starts as, is not a constant")
        elif not isinstance(inner, (VarHandle, Scast)):
            raise Refused(f"the function that it calls has {inner.name}, and variables can only start as constants")
