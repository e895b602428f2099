"""The lowering of one op of the integer form to TOSA 1.0, and the state of the function.

    @lowering(Add)
    def add(op: Add, t: Tosa) -> Value | Sequence[Value]: ...

`t.value(operand)` is the operand in the form being built, `t.<operator>(...)` emits operators. What the target or TOSA
itself lacks is `Refused`, with a clause such as "TOSA has no 64-bit division"; all refusals of a model are reported
together.

TOSA computes on signed integers. A uint8 tensor of the integer form is here an int8 one that holds its values less 128
(0..255 → -128..127); only a function's arguments and results stay uint8, behind RESCALEs that TOSA marks as unsigned.
So zero points move by 128 as well (`zero_point`), a constant is read less 128, and data movement can ignore it.

TOSA 1.0 has no run-time shapes: what an operator of TFLite takes as a tensor of sizes, axes or indices must be known
here, because the file says it, or because it follows from constants and from shapes (`analysis.known`).

CONCAT takes 64 tensors at most at level 8k (MAX_TENSOR_LIST_SIZE), so more are joined in groups. It takes int16 only
with the extension of that name; without it the values are joined as int32.

TOSA 1.0 has no int64, only the 48 bits that a convolution, MATMUL or RESIZE sums in. A value that is provably within
int32 is kept as one: a widening CAST then needs no operator, and arithmetic on such values is in int32 if the result
cannot leave it. A product that can is left to the RESCALE that reads it (`widened_product`). All else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.analysis.known import Accesses, Range, Ranges, accesses, known_elements
from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.builder import Builder, Kind, constant_in_shape
from tflq.dialects.inference import broadcast, product
from tflq.dialects.quant import Scast
from tflq.dialects.registry import Registry, form_of
from tflq.dialects.tfl.shape import Fill, Rank
from tflq.dialects.tfl.shape import Range as TflRange
from tflq.dialects.tfl.shape import Shape as TflShape
from tflq.dialects.tosa.elementwise import Clamp, LogicalNot, Mul
from tflq.dialects.tosa.movement import Gather, Identity, Pad, Tile
from tflq.dialects.traits import Broadcasts
from tflq.formats.lowering import WITHOUT_NUMBERS, need_elements
from tflq.formats.tosa.rules import Target
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import (
    ElementType,
    ScalarType,
    Shape,
    TensorType,
    element_storage,
    f8e4m3fn,
    f8e5m2,
    i4,
    i8,
    i16,
    i32,
    i64,
    ui4,
    ui8,
)
from tflq.numerics.fixed_point import Multiplier
from tflq.transforms.pass_manager import Note, Searches

ONE: Final = Multiplier(1 << 30, 1)
"""The scale of a RESCALE that only changes type or zero point."""


class TosaBuilder(Builder):
    """A `Builder` whose ops are those of TOSA, to the letter. Operands of elementwise operators need equal ranks there:
    one of fewer dims is reshaped, a constant without an operator."""

    def ranked(self, x: Value, rank: int) -> Value:
        """x with as many dims, ones in front. ValueError if its rank is not known or larger."""
        shape = x.type.shape
        if shape is None or len(shape) > rank:
            raise ValueError(f"'{x.name}' {x.type} cannot have {rank} dims")
        if len(shape) == rank:
            return x
        return self.reshape(x, (1,) * (rank - len(shape)) + shape)

    def aligned(self, *xs: Value) -> list[Value]:
        """The values, all of the largest rank among them."""
        ranks = [-1 if x.type.shape is None else len(x.type.shape) for x in xs]
        rank = max(0, *ranks)
        return list(xs) if min(ranks) == rank else [self.ranked(x, rank) for x in xs]

    def reshape(self, x: Value, shape: Sequence[int | None]) -> Value:
        """RESHAPE; of a constant, the constant in that shape. No operator if x has the shape. Misfit if the shape has
        not as many elements."""
        if x.type.shape == tuple(shape):
            return x
        if x.is_constant and x.type.storage.bits >= 8 and None not in shape:
            return constant_in_shape(x, shape)
        return super().reshape(x, shape)

    def emit(
        self,
        kind: Kind,
        operands: Sequence[Value | None],
        type: TensorType | ScalarType | None = None,
        **attributes: Any,
    ) -> Value:
        """Emits an operator; operands that broadcast get equal ranks."""
        if len(operands) > 1 and not isinstance(kind, str) and kind.trait(Broadcasts) is not None:
            operands = self.aligned(*[v for v in operands if v is not None])
        return Builder.emit(self, kind, operands, type, **attributes)

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """CLAMP, also of floats."""
        if not x.type.storage.is_float:
            return super().clamp(x, int(low), int(high))
        return self.emit(Clamp, [x], min_val=float(low), max_val=float(high))

    def as_bool(self, x: Value) -> Value:
        """x != 0."""
        zero = self.constant(np.zeros((1,) * len(x.type.dims)), x.type.storage)
        return self.emit(LogicalNot, [self.equal(x, zero)])

    # --- data movement -------------------------------------------------------------------------------------------

    def slice(self, x: Value, start: Sequence[int], size: Sequence[int | None]) -> Value:
        """SLICE; no operator if it takes all of x. A size of None is the rest of a dim that is not known."""
        return x if tuple(size) == x.type.dims and not any(start) else super().slice(x, start, size)

    def pad(self, x: Value, padding: Sequence[tuple[int, int]], fill: float = 0) -> Value:
        """PAD by (before, after) per dim with a value of x's type; no operator if there is nothing to add."""
        if not any(map(any, padding)):
            return x
        value = float(fill) if x.type.storage.is_float else int(fill)
        flat = tuple(int(n) for pair in padding for n in pair)
        return self.emit(Pad, [x], padding=flat, pad_const=value)

    def tile(self, x: Value, multiples: Sequence[int]) -> Value:
        """TILE; no operator if every multiple is 1."""
        return x if all(m == 1 for m in multiples) else self.emit(Tile, [x], multiples=tuple(multiples))

    def gather(self, values: Value, indices: Value) -> Value:
        """GATHER: values [N, K, C], indices i32 [N, W] → [N, W, C]."""
        return self.emit(Gather, [values, indices])

    def lookup(self, table: Value, index: Value) -> Value:
        """table[index] for an i32 index of any shape: GATHER from a constant of any type, whose buffer it shares."""
        shape = index.type.shape
        values = self.reshape(table, (1, *table.type.dims, 1))
        count = None if shape is None else product(shape)
        return self.reshape(self.gather(values, self.reshape(index, (1, count))), shape or ())

    def spread(self, x: Value, shape: Sequence[int]) -> Value:
        """x tiled to a shape it broadcasts to."""
        x = self.ranked(x, len(shape))
        if broadcast(x.type.shape, tuple(shape)) != tuple(shape):
            raise ValueError(f"{x.type} does not broadcast to {tuple(shape)}")
        return self.tile(x, [m if d == 1 else 1 for d, m in zip(x.type.dims, shape, strict=True)])


# Variables in functions that control flow calls. Only an entry point reads and writes variables, each once: a branch or
# a loop is given what it reads, and gives back what it writes. A handle of a variable that is passed on is no argument:
# the function is lowered for the variable's name.


@dataclass(frozen=True)
class Scope:
    """The variables of a function that is called.

    handles: the name of the variable that each argument is a handle of, if it is one. inputs: the variables that the
    function gets, with the types of their values. returned: those that it gives back.
    """

    handles: tuple[str | None, ...] = ()
    inputs: tuple[tuple[str, TensorType], ...] = ()
    returned: tuple[str, ...] = ()


NO_STATE = Scope()


class Use:
    """The use of a variable by functions: a value that it holds there, and whether they write it."""

    __slots__ = ("like", "written")

    def __init__(self, like: Value, written: bool) -> None:
        self.like: Final = like
        self.written: Final = written


def uses(module: Module, index: int, handles: Sequence[str | None]) -> dict[str, Use]:
    """The variables that a function and those it calls use; `handles`: the names of those its arguments stand for."""
    result: dict[str, Use] = {}
    for access in accesses(module, index, handles):
        if access.once is None:
            known = result.get(access.name)
            like = access.value if known is None else known.like
            result[access.name] = Use(like, access.written or (known is not None and known.written))
    return result


class Tosa(TosaBuilder):
    """A `TosaBuilder` that knows the lowered values of the integer form's values."""

    def __init__(self, target: Target, report: Callable[[Note], None]) -> None:
        super().__init__()
        self.target = target
        self.module = Module([])
        """The module being lowered."""
        self.callee: Callable[[int, Scope], int] = lambda index, _: index
        """The index that a function of the module will have for an operator that calls it with these variables."""
        self.lower_ops: Callable[[Sequence[Op]], None] = lambda _: None
        """Lowers the ops of a function in the place of its call."""
        self.variables: dict[str, Value] = {}
        """The initial values of the module's variables."""
        self.searched = Searches(self.module)
        """Makes the searches of the conversion that take long."""
        self.accesses = Accesses(self.module)
        """Accesses of variables in the module being lowered."""
        self.handles: dict[Value, str] = {}
        """The names of the variables that values are handles of."""
        self.scope: Scope | None = None
        """The variables of a function that control flow calls; None if it reads and writes them itself."""
        self.variable_values: dict[str, Value] = {}
        """The values of variables at this place in the function, as far as they are known."""
        self.written: dict[str, Op] = {}
        """The last write of each variable."""
        self.ranges = Ranges()
        """Least and greatest values of integer tensors of the integer form."""
        self._report = report
        self._lowered: dict[Value, Value] = {}

    def value(self, operand: Value) -> Value:
        """The lowered operand, of `storage(operand)`."""
        result = self._lowered.get(operand)
        if result is None:
            if not operand.is_constant:
                raise Refused(f"'{operand.name}' is neither computed nor a constant")
            result = self._lowered[operand] = self._constant(operand)
        return result

    def find(self, operand: Value) -> Value | None:
        """The lowered operand; None if it has not been lowered."""
        return self._lowered.get(operand)

    def set(self, operand: Value, lowered: Value) -> None:
        """Records the lowered value, and gives it the name, if it has none yet."""
        if operand.name and not lowered.name and lowered.producer is not None:
            lowered.name = operand.name
        self._lowered[operand] = lowered

    def storage(self, value: Value) -> ScalarType:
        """The element type of a lowered value."""
        return signed(value.type.element)

    def type(self, value: Value) -> TensorType:
        """The type of a lowered value."""
        return value.type.with_element(signed(value.type.element))

    def zero_point(self, operand: Value, zero_point: int = 0) -> int:
        """The zero point of a lowered operand."""
        return zero_point - self.offset(operand)

    def offset(self, operand: Value) -> int:
        """By how much an operand's integers are less than in the integer form: 128 for uint8."""
        return 128 if element_storage(operand.type.element) == ui8 else 0

    def note(self, text: str) -> None:
        """Tells the report something of the operator being lowered."""
        self._report(Note(self.location, text))

    def warn(self, text: str, exception: str, remedy: str) -> None:
        """Warns that the result is not the interpreter's. `exception`: the reason, as `tflq.legalize.caveats` names
        it; `remedy`: what the user can do."""
        self._report(Note(self.location, text, exception, remedy))

    def need(self, name: str, reason: str) -> None:
        """Refused unless the target has a profile or an extension; `reason` says what needs it."""
        if not self.target.has(name):
            kind = "profile" if name.startswith("pro_") else "extension"
            raise Refused(f"{reason} needs the {kind} {name}, which the target lacks")

    def _constant(self, operand: Value) -> Value:
        """A constant's stored integers, signed; int4 and int2 unpacked where the target lacks the type."""
        storage = element_storage(operand.type.element)
        if storage == ui8:
            return constant((operand.array ^ np.uint8(128)).view(np.int8))
        if "sparsity" in operand.info:
            return constant(operand.array)
        if storage == ui4 or (storage.bits < 8 and not (storage == i4 and self.target.has("int4"))):
            return constant(operand.array.astype(np.int8))
        return Value(TensorType(operand.type.shape, storage), operand.name, buffer=operand.buffer)


class NarrowTosa(Tosa):
    """A `Tosa` for targets that lack operators."""

    def emit(
        self,
        kind: Kind,
        operands: Sequence[Value | None],
        type: TensorType | ScalarType | None = None,
        **attributes: Any,
    ) -> Value:
        """Emits an operator; in the place of one that the target lacks, its equal by others, if there is one."""
        result = super().emit(kind, operands, type, **attributes)
        place = len(self.ops) - 1
        equal = None if result.producer is None else self._instead_of(result.producer)
        if equal is None:
            return result
        del self.ops[place]  # the operator whose place is taken
        return equal

    def _instead_of(self, op: Op) -> Value | None:
        """The substitute of an operator that the target lacks; None if the target has it, or without a substitute."""
        function = substitute.get(type(op))
        if function is None:
            return None
        operands = [v.type.storage for v in op.present_operands]
        if self.target.takes(op.name.removeprefix("tosa."), operands, [v.type.storage for v in op.results]):
            return None
        return function(op, self)


def signed(element: ElementType) -> ScalarType:
    """The storage type, int8 for uint8."""
    storage = element_storage(element)
    return i8 if storage == ui8 else storage


Lowering: TypeAlias = Callable[[Any, Tosa], Value | Sequence[Value]]
lowering: Final[Registry[Lowering]] = Registry("tflq.formats.tosa.lowering")
"""The lowering of each op that has a form in TOSA."""

Substitute: TypeAlias = Callable[[Any, Tosa], Value | None]
substitute: Final[Registry[Substitute]] = Registry("tflq.formats.tosa")
"""The substitute of each operator that a target may lack; None where there is none."""


@lowering(Scast, Identity)
def same(op: Scast | Identity, t: Tosa) -> Value:
    """No operator: the stored integers stay."""
    return t.value(op.input)


LACKING: Final = WITHOUT_NUMBERS | {f8e4m3fn, f8e5m2}
"""Element types that no operator is lowered on."""


def lowered(op: Op, t: Tosa) -> Value | Sequence[Value]:
    """The lowered results of an op. Refused if the op has no form in TOSA."""
    lower = form_of(lowering, op, "TOSA")
    need_elements(op, LACKING)
    return lower(op, t)


def lowered_value(op: Op, t: Tosa) -> Value:
    """The lowered result of an op with one result."""
    result = lowered(op, t)
    assert isinstance(result, Value)
    return result


# What many families use: sizes that are known, and reshape, join, cut, take.

_MOST = 64
_I31 = 1 << 31


def known_array(value: Value) -> np.ndarray | None:
    """The elements of a tensor, if all are known."""
    if value.is_constant:
        return value.array
    known = known_elements(value)
    return known.array if known is not None and known.complete else None


def constant_of(value: Value, what: str) -> np.ndarray:
    """The elements of an operand that must be known; `what` is its role: "axes"."""
    array = known_array(value)
    if array is None:
        name = f" '{value.name}'" if value.name else ""
        raise Refused(f"its {what}{name} is computed when the model runs, and TOSA 1.0 has no run-time shapes")
    return array


def numbers_of(value: Value, what: str) -> list[int]:
    """The elements of such an operand as integers."""
    return [int(v) for v in constant_of(value, what).reshape(-1)]


def known_axis(axis: Value, rank: int) -> int:
    """The axis, of a tensor of a rank, that an operand holds."""
    return numbers_of(axis, "axis")[0] % rank


def dims_of(value: Value) -> tuple[int | None, ...]:
    """A tensor's dims. Refused if not even their number is known."""
    shape = value.type.shape
    if shape is None:
        name = f" of '{value.name}'" if value.name else ""
        raise Refused(f"the rank{name} is not known, and TOSA 1.0 has no run-time shapes")
    return shape


def reshaped(t: Tosa, x: Value, shape: Shape) -> Value:
    """RESHAPE; Refused if more than one dim is open."""
    if shape is None or shape.count(None) > 1:
        raise Refused("the shape of the result has more than one dim that is not known, and TOSA infers only one")
    return t.reshape(x, shape)


def joined(t: Tosa, parts: Sequence[Value], axis: int) -> Value:
    """CONCAT of the tensors that have elements; no operator if that is one."""
    parts = [p for p in parts if dims_of(p)[axis] != 0] or list(parts[:1])
    if parts[0].type.storage == i16 and len(parts) > 1 and not t.target.has("int16"):
        return t.cast(joined(t, [t.cast(p, i32) for p in parts], axis), i16)
    while len(parts) > _MOST:
        parts = [joined(t, parts[i : i + _MOST], axis) for i in range(0, len(parts), _MOST)]
    return parts[0] if len(parts) == 1 else t.concat(parts, axis)


def part(t: Tosa, x: Value, axis: int, start: int, size: int) -> Value:
    """SLICE along one axis."""
    shape = dims_of(x)
    starts, sizes = [0] * len(shape), list(shape)
    starts[axis], sizes[axis] = start, size
    return t.slice(x, starts, sizes)


def take(t: Tosa, x: Value, index: np.ndarray, axis: int) -> Value:
    """x.take(index, axis); a SLICE or a TILE where that is all it is."""
    shape = list(x.type.dims)
    size, count = shape[axis], int(index.size)
    if (np.diff(index) == 1).all():
        return part(t, x, axis, int(index[0]), count)
    if size == 1:
        return t.tile(x, [count if a == axis else 1 for a in range(len(shape))])
    order = [axis, *(a for a in range(len(shape)) if a != axis)]
    rest = [shape[a] for a in order[1:]]
    moved = any(shape[a] != 1 for a in range(axis))
    first = t.transpose(x, order) if moved else x
    indices = constant(np.ascontiguousarray(index, np.int32).reshape(1, -1))
    rows = t.gather(t.reshape(first, (1, size, product(rest))), indices)
    if moved:
        return t.transpose(t.reshape(rows, (count, *rest)), np.argsort(order).tolist())
    shape[axis] = count
    return t.reshape(rows, shape)


def lowered_storage(t: Tosa, value: Value) -> ScalarType:
    """The element type of a lowered value: int32 for int64, which TOSA lacks."""
    storage = t.storage(value)
    return i32 if storage == i64 else storage


# int64 of the integer form.


def fits_int32(bounds: Range) -> bool:
    return bounds[0] >= -_I31 and bounds[1] < _I31


def narrow(operand: Value, t: Tosa) -> Value:
    """The lowered operand; an int64 one in int32. Refused if it may not fit."""
    if operand.type.storage != i64:
        return t.value(operand)
    if operand.is_constant and fits_int32(t.ranges.of(operand)):
        return t.constant(operand.array, i32)
    value = t.value(operand)
    if value.type.storage != i32:
        raise Refused(f"'{operand.name}' is int64, which TOSA lacks")
    return value


def in_int32(op: Op, t: Tosa) -> list[Value]:
    """The operands of arithmetic, in int32 if it is on int64. Refused if the operands or the result may not fit."""
    if op.result.type.storage == i64 and not fits_int32(t.ranges.of(op.result)):
        raise Refused(f"'{op.result.name}' is int64, which TOSA lacks, and may leave int32")
    return [narrow(v, t) for v in op.present_operands]


def widened_product(value: Value, t: Tosa) -> tuple[Value, Value] | None:
    """The operands of a product of int64s that may leave int32, both within it."""
    op = value.producer
    if not isinstance(op, Mul) or value.type.storage != i64 or op.shift:
        return None
    x, y = op.input1, op.input2
    both = fits_int32(t.ranges.of(x)) and fits_int32(t.ranges.of(y))
    return (x, y) if both and not fits_int32(t.ranges.of(value)) else None


def product_by(x: Value, y: Value, multiplier: int, shift: int, t: Tosa) -> Value | None:
    """(x y multiplier + 2^(shift - 1)) >> shift of two operands within int32, by MUL with a shift.

    The product of such a MUL has 64 bits. None unless one of the operands, multiplied, fits int32.
    """
    for a, b in ((x, y), (y, x)):
        reach = max(abs(v) for v in t.ranges.of(b))
        if reach * multiplier < _I31:
            scaled = t.mul(narrow(b, t), t.constant(np.asarray(multiplier)))
            return t.mul(narrow(a, t), scaled, shift=shift)
    return None


# SHAPE, RANK, RANGE and FILL.


@lowering(TflShape, Rank, TflRange)
def known_sizes(op: TflShape | Rank | TflRange, t: Tosa) -> Value:
    """A constant, where no dim is left open. Sources: kernels/shape.cc, rank.cc, range.cc."""
    array = known_array(op.result)
    if array is None:
        raise Refused("its result is known only when the model runs, and TOSA 1.0 has no run-time shapes")
    return t.constant(np.ascontiguousarray(array).reshape(array.shape), lowered_storage(t, op.result))


@lowering(Fill)
def fill(op: Fill, t: Tosa) -> Value:
    """TILE of one element. Source: kernels/fill.cc."""
    shape, one = numbers_of(op.dims, "shape"), narrow(op.value, t)
    if one.is_constant:
        return t.constant(sized.full(shape, one.array.reshape(())), one.type.storage)
    return t.spread(t.reshape(one, ()), shape)
