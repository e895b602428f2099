"""What lowerings of many families use: sizes that are known, int64 in int32, and reshape, join, cut, take.

TOSA 1.0 has no run-time shapes: what an operator of TFLite takes as a tensor of sizes, axes or indices must be known
here, because the file says it, or because it follows from constants and from shapes (`analysis.known`).

CONCAT takes 64 tensors at most at level 8k (MAX_TENSOR_LIST_SIZE), so more are joined in groups. It takes int16 only
with the extension of that name; without it the values are joined as int32.

TOSA 1.0 has no int64, only the 48 bits that a convolution, MATMUL or RESIZE sums in. A value that is provably within
int32 is kept as one: a widening CAST then needs no operator, and arithmetic on such values is in int32 if the result
cannot leave it. A product that can is left to the RESCALE that reads it (`widened_product`). All else is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.analysis.known import LIMIT, Known, Range, constant_elements, elements_of
from tflq.dialects.inference import product
from tflq.dialects.tfl.shape import Fill, Rank
from tflq.dialects.tfl.shape import Range as TflRange
from tflq.dialects.tfl.shape import Shape as TflShape
from tflq.dialects.tosa.elementwise import Mul
from tflq.errors import Refused
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import ScalarType, Shape, i16, i32, i64
from tflq.tosa.lowering.context import Tosa, lowering

_MOST = 64
_I31 = 1 << 31


def known_elements(value: Value) -> Known | None:
    """What is known of a tensor's elements, whatever the model is run on."""
    return _elements(value, {})


def _elements(value: Value, seen: dict[Value, Known | None]) -> Known | None:
    if value not in seen:
        seen[value] = _computed(value, seen) if value.producer else constant_elements(value)
    return seen[value]


def _computed(value: Value, seen: dict[Value, Known | None]) -> Known | None:
    """What is known of a result of an op."""
    op, shape = value.producer, value.type.shape
    if op is None or not op.name.startswith("tfl.") or not value.type.storage.is_integer:
        return None
    if shape is None or (product(shape) or 0) > LIMIT:
        return None
    computes = not isinstance(op, (TflShape, Rank))
    known = [_elements(v, seen) if computes and v is not None else None for v in op.operands]
    elements = elements_of(op, [None if v is None else v.type.shape for v in op.operands], known)
    return None if elements is None else elements[op.results.index(value)]


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
    shape = list(x.type.shape or ())
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
    taken = t.gather(t.reshape(first, (1, size, product(rest))), indices)
    if moved:
        return t.transpose(t.reshape(taken, (count, *rest)), np.argsort(order).tolist())
    shape[axis] = count
    return t.reshape(taken, shape)


def kept_storage(t: Tosa, value: Value) -> ScalarType:
    """The element type of what a value becomes: int32 for int64, which TOSA lacks."""
    storage = t.storage(value)
    return i32 if storage == i64 else storage


# int64 of the integer form.


def fits_int32(bounds: Range) -> bool:
    return bounds[0] >= -_I31 and bounds[1] < _I31


def narrow(operand: Value, t: Tosa) -> Value:
    """What an operand has become; an int64 one in int32. Refused if it may not fit."""
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
    return [narrow(v, t) for v in op.reads]


def widened_product(value: Value, t: Tosa) -> tuple[Value, Value] | None:
    """The operands of a product of int64s that may leave int32, both within it."""
    op = value.producer
    if not isinstance(op, Mul) or value.type.storage != i64 or op.shift:
        return None
    x, y = op.input1, op.input2
    both = fits_int32(t.ranges.of(x)) and fits_int32(t.ranges.of(y))
    return (x, y) if both and not fits_int32(t.ranges.of(value)) else None


def product_by(x: Value, y: Value, multiplier: int, shift: int, t: Tosa) -> Value | None:
    """(x y multiplier + 2^(shift - 1)) >> shift of two operands within int32, by MUL with a shift, whose product has 64
    bits; None unless one of the operands, multiplied, fits int32."""
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
    return t.constant(np.ascontiguousarray(array).reshape(array.shape), kept_storage(t, op.result))


@lowering(Fill)
def fill(op: Fill, t: Tosa) -> Value:
    """TILE of one element. Source: kernels/fill.cc."""
    shape, one = numbers_of(op.dims, "shape"), narrow(op.value, t)
    if one.is_constant:
        return t.constant(np.full(shape, one.array.reshape(())), one.type.storage)
    return t.spread(t.reshape(one, ()), shape)
