"""Elementwise ops: arithmetic, comparisons, choices, bits, functions of floats, clamps.

Arithmetic is one kernel each on int32 and int64. MUL on 8 bits returns zeros, and comparisons on 8 bits abort the
process, so both widen first; choices take every type. DIV of integers truncates, as INTDIV does.

Neighbouring dims that all operands have, or that the same operands lack, are one dim to an elementwise kernel. Operands
of equal shapes need no broadcast; what still has more than four dims is repeated by BROADCAST_TO until shapes are
equal.

Ops on bits have no kernel that is right everywhere:

    clz                  the number of powers of two, 2^0..2^31, above the value read as unsigned
    logical_left_shift   a product by a power of two out of a table; the product wraps
    logical_right_shift  RIGHT_SHIFT of the bits read as unsigned
    bitwise_and          2 (x & y) + a0 b0 with x = a >> 1, y = b >> 1, a0 and b0 the lowest bits;
                         2 (x & y) = x + y - (x ^ y)
    bitwise_or           (a ^ b) + (a & b)

ERF has no builtin: a polynomial where |x| < 1, 1 - exp(polynomial) beyond (`numerics/unary.py`). CEIL is not among the
reference kernels: it is FLOOR of the negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Final

import numpy as np

from tflq.dialects.builder import constant_in_shape
from tflq.dialects.declare import Operator
from tflq.dialects.inference import broadcast
from tflq.dialects.tfl import arithmetic, comparison
from tflq.dialects.tfl.activation import Logistic, Tanh
from tflq.dialects.tfl.movement import BroadcastTo, ExpandDims, Squeeze
from tflq.dialects.tfl.pooling import ArgMin, Sum
from tflq.dialects.tosa import elementwise as tosa
from tflq.dialects.tosa.movement import ArgMax
from tflq.formats.tflite.lowering.casts import limited
from tflq.formats.tflite.lowering.lowering import BROADCAST_DIMS, KernelBuilder, Tflite, lowering, widened
from tflq.formats.tflite.lowering.pooling import arg_of
from tflq.formats.tflite.lowering.rescale import clamped
from tflq.formats.tflite.lowering.shifts import product_shifted, right_shift
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, i1, i8, i16, i32, i64, ui8, ui16, ui32
from tflq.numerics.unary import LIMIT, inner, outer


def elementwise(k: KernelBuilder, emit: Callable[..., Value], *operands: Value) -> Value:
    """`emit` of the operands, in as few dims as it takes; the result has the broadcast shape."""
    shapes = [v.type.shape for v in operands]
    known = [s for s in shapes if s is not None and None not in s]
    sized = [s for s in known if prod(d or 0 for d in s) != 1]
    if len(known) < len(shapes) or max(map(len, known)) <= BROADCAST_DIMS or len(set(sized)) <= 1 == len(set(known)):
        return emit(*operands)
    whole = broadcast(*shapes) or ()
    ranked = [(1,) * (len(whole) - len(s)) + s for s in known]
    folded = _folded(ranked, len(whole))
    if len(folded[0]) > BROADCAST_DIMS:
        return emit(*(spread(k, v, whole) for v in operands))
    result = emit(*(_seen(k, v, shape) for v, shape in zip(operands, folded, strict=True)))
    return k.reshape(result, whole)


def spread(k: KernelBuilder, x: Value, shape: tuple[int | None, ...]) -> Value:
    """x repeated to a known shape it broadcasts to. BROADCAST_TO has no booleans, which become bytes around it."""
    if x.type.shape == shape:
        return x
    if x.type.storage == i1:
        return k.cast(spread(k, k.cast(x, i8), shape), i1)
    return k.emit(BroadcastTo, [x, k.constant(np.asarray(shape))])


def _folded(shapes: list[tuple[int | None, ...]], rank: int) -> list[tuple[int, ...]]:
    """The shapes with neighbours of one pattern of ones merged."""
    merged: list[list[int]] = [[] for _ in shapes]
    last: tuple[bool, ...] | None = None
    for axis in range(rank):
        dims = [s[axis] or 0 for s in shapes]
        if all(d == 1 for d in dims):
            continue
        pattern = tuple(d == 1 for d in dims)
        for row, d in zip(merged, dims, strict=True):
            if pattern == last:
                row[-1] *= d
            else:
                row.append(d)
        last = pattern
    if any(row == [0] for row in merged):  # RESHAPE takes [0] for the shape of a scalar
        merged = [[1, *row] for row in merged]
    return [tuple(row) for row in merged]


def _seen(k: KernelBuilder, x: Value, shape: tuple[int, ...]) -> Value:
    if x.type.shape == shape:
        return x
    if x.is_constant and x.type.storage.bits >= 8:
        return constant_in_shape(x, shape)
    return k.reshape(x, shape)


@lowering(tosa.Mul)
def mul(op: tosa.Mul, k: Tflite) -> Value:
    a, b = (widened(k, k.value(v)) for v in (op.input1, op.input2))
    shift = op.shift
    product = product_shifted(k, a, b, shift) if shift else elementwise(k, k.mul, a, b)
    return k.cast(product, op.result.type.storage)


@lowering(tosa.Abs)
def absolute(op: tosa.Abs, k: Tflite) -> Value:
    """x * sign(x) of integers, an eighth of the time of ABS; the least one stays."""
    x = k.value(op.input1)
    if x.type.storage.is_float:
        return k.emit(arithmetic.Abs, [x])
    return k.mul(x, k.emit(arithmetic.Sign, [x]))


@lowering(tosa.Negate)
def negate(op: tosa.Negate, k: Tflite) -> Value:
    """output_zp - (x - input1_zp), clamped; i32, which has no zero points, only at its least value."""
    x, storage = k.value(op.input1), op.result.type.storage
    if storage.is_float:
        return k.emit(arithmetic.Neg, [x])
    if storage.bits == 32:
        return k.sub(0, k.maximum(x, -storage.maximum))
    total = op.output_zp + op.input1_zp
    y = k.sub(total, k.cast(x, i32))
    least, most = total - storage.maximum, total - storage.minimum
    return k.cast(clamped(k, y, np.asarray(storage.minimum), np.asarray(storage.maximum), least, most), storage)


_BINARY: Final[Mapping[type[Op], Callable[[Tflite, Value, Value], Value]]] = {
    tosa.Add: Tflite.add,
    tosa.BitwiseXor: Tflite.bitwise_xor,
    tosa.IntDiv: Tflite.div,
    tosa.Maximum: Tflite.maximum,
    tosa.Minimum: Tflite.minimum,
    tosa.Pow: Tflite.pow,
    tosa.Sub: Tflite.sub,
}
_COMPARISONS: Final[Mapping[type[Op], Callable[[Tflite, Value, Value], Value]]] = {
    tosa.Equal: Tflite.equal,
    tosa.Greater: Tflite.greater,
    tosa.GreaterEqual: Tflite.greater_equal,
}


@lowering(*_BINARY)
def binary(
    op: tosa.Add | tosa.BitwiseXor | tosa.IntDiv | tosa.Maximum | tosa.Minimum | tosa.Pow | tosa.Sub, k: Tflite
) -> Value:
    return elementwise(k, partial(_BINARY[type(op)], k), k.value(op.input1), k.value(op.input2))


@lowering(*_COMPARISONS)
def compare(op: tosa.Equal | tosa.Greater | tosa.GreaterEqual, k: Tflite) -> Value:
    a, b = (widened(k, k.value(v)) for v in (op.input1, op.input2))
    return elementwise(k, partial(_COMPARISONS[type(op)], k), a, b)


@lowering(tosa.Select)
def select(op: tosa.Select, k: Tflite) -> Value:
    operands = (k.value(v) for v in (op.condition, op.on_true, op.on_false))
    return elementwise(k, lambda *xs: k.emit(comparison.SelectV2, xs), *operands)


# Bits of integers.


@lowering(tosa.Clz)
def clz(op: tosa.Clz, k: Tflite) -> Value:
    """Comparisons with 32 powers along a last axis, summed; flat, since the kernels broadcast four dims."""
    x, (low, high) = k.value(op.input), k.ranges.of(op.input)
    shape, count = x.type.shape, _count_positive if low >= 0 and high < i32.maximum else _count
    one = shape is not None and shape[-1:] == (1,)
    if one and len(shape or ()) <= 4:
        return count(k, x)
    if shape is None or shape.count(None) > 1:
        axis = -1 if shape is None else len(shape)
        expanded = TensorType(None if shape is None else (*shape, 1), i32)
        counted = count(k, k.emit(ExpandDims, [x, k.constant(axis)], expanded))
        return k.emit(Squeeze, [counted], x.type, squeeze_dims=np.asarray([axis], np.int32))
    return k.reshape(count(k, k.reshape(x, (None, 1))), shape)


def _count(k: KernelBuilder, x: Value) -> Value:
    """clz of x with a last dim of 1."""
    unsigned = k.cast(k.bitcast(x, ui32), i64)
    above = k.cast(k.greater(1 << np.arange(32, dtype=np.int64), unsigned), i32)
    return k.reduce(Sum, above, [-1])


def _count_positive(k: KernelBuilder, x: Value) -> Value:
    """clz of x where x is known to be neither negative nor the greatest: no bits are read anew."""
    powers = np.minimum(1 << np.arange(32, dtype=np.int64), i32.maximum)
    return k.reduce(Sum, k.cast(k.greater(powers, x), i32), [-1])


@lowering(tosa.LogicalLeftShift)
def logical_left_shift(op: tosa.LogicalLeftShift, k: Tflite) -> Value:
    x, amount = k.cast(k.value(op.input1), i32), k.cast(k.value(op.input2), i32)
    powers = (1 << np.arange(32, dtype=np.int64)).astype(np.int32)
    factor = k.constant(powers[amount.array]) if amount.is_constant else k.gather(k.constant(powers), amount)
    return k.cast(elementwise(k, k.mul, x, factor), op.result.type.storage)


@lowering(tosa.LogicalRightShift)
def logical_right_shift(op: tosa.LogicalRightShift, k: Tflite) -> Value:
    storage = op.result.type.storage
    unsigned = {i8: ui8, i16: ui16, i32: ui32}[storage]
    x, amount = k.cast(k.value(op.input1), unsigned), k.cast(k.value(op.input2), unsigned)
    return k.cast(elementwise(k, k.right_shift, x, amount), storage)


@lowering(tosa.BitwiseAnd, tosa.BitwiseOr)
def bitwise(op: tosa.BitwiseAnd | tosa.BitwiseOr, k: Tflite) -> Value:
    a, b = k.cast(k.value(op.input1), i32), k.cast(k.value(op.input2), i32)
    x, y = k.right_shift(a, 1), k.right_shift(b, 1)
    above = k.sub(elementwise(k, k.add, x, y), elementwise(k, k.bitwise_xor, x, y))
    lowest = elementwise(k, k.mul, k.sub(a, k.mul(x, 2)), k.sub(b, k.mul(y, 2)))
    both = k.add(above, lowest)
    if isinstance(op, tosa.BitwiseOr):
        both = k.add(both, elementwise(k, k.bitwise_xor, a, b))
    return k.cast(both, op.result.type.storage)


_LOGICAL: Final[Mapping[type[Op], type[Operator]]] = {
    tosa.LogicalAnd: comparison.LogicalAnd,
    tosa.LogicalOr: comparison.LogicalOr,
    tosa.LogicalXor: comparison.NotEqual,
}


@lowering(*_LOGICAL)
def logical(op: tosa.LogicalAnd | tosa.LogicalOr | tosa.LogicalXor, k: Tflite) -> Value:
    kind = _LOGICAL[type(op)]
    return elementwise(k, lambda *xs: k.emit(kind, xs), k.value(op.input1), k.value(op.input2))


@lowering(tosa.LogicalNot)
def logical_not(op: tosa.LogicalNot, k: Tflite) -> Value:
    return k.emit(comparison.LogicalNot, [k.value(op.input)])


@lowering(tosa.ArithmeticRightShift)
def arithmetic_right_shift(op: tosa.ArithmeticRightShift, k: Tflite) -> Value:
    """x >> n, or with `round` the same half up: t - (t >> 1) with t = x >> (n - 1), which cannot overflow."""
    x, amount = k.value(op.input1), k.value(op.input2)
    storage, narrow = op.result.type.storage, op.result.type.storage.bits < 32
    if narrow:
        x, amount = k.cast(x, i32), k.cast(amount, i32)
    result = _rounded(k, x, amount, k.ranges.of(op.input2)[0]) if op.round else right_shift(k, x, amount)
    return k.cast(result, storage) if narrow else result


def _rounded(k: Tflite, x: Value, amount: Value, least: int) -> Value:
    """`least`: the least amount there can be."""
    one = k.constant(1)
    if least > 0:
        twice = right_shift(k, x, k.constant(amount.array - 1) if amount.is_constant else k.sub(amount, one))
        return k.sub(twice, right_shift(k, twice, one))
    if amount.is_constant and not amount.array.any():
        return x
    some = k.sub(one, k.sub(one, amount, "RELU"))  # min(n, 1): with n = 0 nothing is rounded
    twice = right_shift(k, x, k.sub(amount, some))
    return k.sub(twice, k.mul(right_shift(k, twice, some), some))


@lowering(tosa.BitwiseNot)
def bitwise_not(op: tosa.BitwiseNot, k: Tflite) -> Value:
    """ARG_MIN where an ARGMAX reads the complement, else BITWISE_XOR."""
    x = k.value(op.input)
    following = k.only_user(op.output, ArgMax)
    if following is not None:
        return k.fuse(following, arg_of(following, k, x, ArgMin))
    return k.bitwise_xor(x, ~np.zeros((), x.type.storage.dtype))


# Functions of floats, and clamps.


_UNARY: Final[Mapping[type[Op], type[Operator]]] = {
    tosa.Cos: arithmetic.Cos,
    tosa.Exp: arithmetic.Exp,
    tosa.Floor: arithmetic.Floor,
    tosa.Log: arithmetic.Log,
    tosa.Rsqrt: arithmetic.Rsqrt,
    tosa.Sigmoid: Logistic,
    tosa.Sin: arithmetic.Sin,
    tosa.Tanh: Tanh,
}


@lowering(*_UNARY)
def unary(op: tosa.FloatFunction, k: Tflite) -> Value:
    return k.emit(_UNARY[type(op)], [k.value(op.input)])


@lowering(tosa.Ceil)
def ceil(op: tosa.Ceil, k: Tflite) -> Value:
    x = k.value(op.input)
    return k.emit(arithmetic.Neg, [k.emit(arithmetic.Floor, [k.emit(arithmetic.Neg, [x])])])


@lowering(tosa.Reciprocal)
def reciprocal(op: tosa.Reciprocal, k: Tflite) -> Value:
    x = k.value(op.input1)
    return k.div(1, x)


@lowering(tosa.Erf)
def erf(op: tosa.Erf, k: Tflite) -> Value:
    """Both formulas everywhere, each on the values it is meant for."""
    x = k.value(op.input)
    magnitude = k.emit(arithmetic.Abs, [x])
    near, far = k.minimum(magnitude, 1), k.minimum(k.maximum(magnitude, 1), LIMIT)
    below = k.add(near, k.mul(near, _polynomial(k, k.mul(near, near), inner())))
    tail = k.emit(arithmetic.Exp, [_polynomial(k, far, outer())])
    value = k.emit(comparison.SelectV2, [k.greater(1, magnitude), below, k.sub(1, tail)])
    return k.mul(value, k.emit(arithmetic.Sign, [x]))


def _polynomial(k: Tflite, x: Value, coefficients: np.ndarray) -> Value:
    """Horner's scheme; the constant term is the first."""
    *rest, value = coefficients
    total = k.add(k.mul(x, value), rest.pop())
    while rest:
        total = k.add(k.mul(total, x), rest.pop())
    return total


@lowering(tosa.Clamp)
def clamp(op: tosa.Clamp, k: Tflite) -> Value:
    """MAXIMUM, MINIMUM, each only where it can bite."""
    x, storage = k.value(op.input), op.result.type.storage
    low, high = op.min_val, op.max_val
    if storage.is_float:
        return limited(k, x, low, high)
    if low > storage.minimum:
        x = k.maximum(x, low)
    if high < storage.maximum:
        x = k.minimum(x, high)
    return x
