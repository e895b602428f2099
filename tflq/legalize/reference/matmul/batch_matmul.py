"""BATCH_MATMUL on int8 and int16.

    result = clamp(scale(sum_k (x[..., m, k] - x_zp) * (y[..., k, n] - y_zp)) + zp)

`scale` is the fixed-point multiplier by the legacy product of the scales. int8 sums in 32 bits, int16, which has no
zero points, in 64. int8 into int32 is the plain sum of products of stored integers: neither scales nor zero points are
read. The kernel reads the scale of an operand that is quantized per axis as 0, so that the result is its zero point
everywhere. adj_x and adj_y swap the last two dims of an operand; the dims before these broadcast. Sources:
kernels/batch_matmul.cc, kernels/internal/reference/batch_matmul.h.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.inference import broadcast
from tflq.dialects.tfl.matmul import BatchMatMul
from tflq.dialects.tosa.matmul import MatMul
from tflq.ir.core import Value
from tflq.ir.types import (
    ScalarType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    is_quantized,
)
from tflq.legalize.reference.generic.accumulate import Bounds, bounds_of, unused_zero_point
from tflq.legalize.reference.generic.rescaled import fixed
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import per_layer, symmetric
from tflq.light import dataclass
from tflq.numerics.convolution import legacy_scale

__all__ = ["product", "sizes_of"]

_ACCUMULATORS = {(i8, i8, i8): i32, (i8, i8, i32): i32, (i16, i16, i16): i64, (i16, i8, i16): i64}
"""What the kernel sums in, for the types of x, y and the result."""
_WRITTEN = {(i8, i8): i32, (i16, i16): i16, (i16, i8): i16}
"""What it writes into a result of any other type."""

_SCALE_OF_NOTHING = (
    "the kernel reads the scale of an operand that is quantized per axis as 0: the result is its zero point everywhere"
)
_IGNORED_ZERO_POINTS = "the kernel ignores zero points where the result is int32, and one is not 0"


@dataclass(frozen=True, slots=True)
class Sizes:
    """The result's shape, and how many products there are in a sum, if that is known."""

    shape: Shape
    depth: int | None


@rule(BatchMatMul)
def batch_matmul(op: BatchMatMul, b: RuleBuilder) -> Answer:
    """tosa.transpose per adjoint, tosa.matmul, tosa.rescale."""
    x, y, result = op.lhs, op.rhs, op.result
    types = (x.type.storage, y.type.storage, result.type.storage)
    acc = _ACCUMULATORS.get(types)
    if acc is None:
        written = _WRITTEN.get(types[:2], types[2])
        words = "" if written == types[2] else f"the kernel writes {written} into a result of {types[2]}"
        raise NotApplicable(f"no integer form for {types[0]} by {types[1]} into {types[2]}", unsettled=words)
    sizes = sizes_of(op)
    sides = b.value(x), b.value(y)
    if types[2] == i32:
        ignored = unused_zero_point(x) or unused_zero_point(y)
        return Rewritten([product(op, b, sides, sizes.shape, acc)], warning=_IGNORED_ZERO_POINTS if ignored else "")
    if (without := _without_scale(op, b, sizes.shape, acc)) is not None:
        return without
    left, right, target = elements = per_layer(op)
    if acc == i64:
        symmetric(op, *elements)
    scale = np.asarray([legacy_scale(left.scale, right.scale, target.scale)])
    sums = product(op, b, sides, sizes.shape, acc, (left.zero_point, right.zero_point))
    bounds = _bounds(b, left, right, y, sizes.depth, bool(op.adj_y))
    at_least = None if sizes.depth is not None else _of_products(left, right, 1)
    answer = fixed(b, sums, scale, target, "NONE", bounds or Bounds.of(acc), at_least)
    return answer.rewritten()


def _without_scale(op: BatchMatMul, b: RuleBuilder, shape: Shape, acc: ScalarType) -> Rewritten | None:
    """The zero point everywhere, where an operand is quantized per axis and the result per layer; else None."""
    target = op.result.type.element
    operands = (op.lhs.type.element, op.rhs.type.element)
    if not isinstance(target, UniformQuantizedType) or not all(map(is_quantized, operands)):
        return None
    if not any(isinstance(e, UniformQuantizedPerAxisType) and e.scales.size > 1 for e in operands):
        return None
    scaled = fixed(
        b,
        product(op, b, (b.value(op.lhs), b.value(op.rhs)), shape, acc),
        np.zeros(1),
        target,
        "NONE",
        Bounds(np.zeros(1, np.int64), np.zeros(1, np.int64)),
    )
    return scaled.rewritten(None, _SCALE_OF_NOTHING)


def sizes_of(op: BatchMatMul) -> Sizes:
    """The sizes of the product; NotApplicable where the kernel takes no such shapes."""
    x, y = op.lhs.type.shape, op.rhs.type.shape
    if x is None or y is None:
        raise NotApplicable("the rank of an operand is not known")
    if not (2 <= len(x) <= 5 and 2 <= len(y) <= 5):
        raise NotApplicable(f"the kernel takes ranks 2 to 5, not {len(x)} by {len(y)}")
    rows, depth = (x[-1], x[-2]) if op.adj_x else (x[-2], x[-1])
    depths, columns = (y[-1], y[-2]) if op.adj_y else (y[-2], y[-1])
    if depth is not None and depths is not None and depth != depths:
        raise NotApplicable(f"rows of {depth} do not meet columns of {depths}")
    try:
        outer = broadcast(x[:-2], y[:-2]) or ()
    except ValueError as error:
        raise NotApplicable(str(error)) from error
    return Sizes((*outer, rows, columns), depths if depth is None else depth)


def product(
    op: BatchMatMul,
    b: RuleBuilder,
    sides: tuple[Value, Value],
    shape: Shape,
    acc: ScalarType,
    zero_points: tuple[int, int] = (0, 0),
) -> Value:
    """The accumulator of two sides in the integer form."""
    x, y = sides
    x, y = _swapped(b, x) if op.adj_x else x, _swapped(b, y) if op.adj_y else y
    return b.emit(MatMul, [x, y], TensorType(shape, acc), a_zp=zero_points[0], b_zp=zero_points[1])


def _swapped(b: RuleBuilder, x: Value) -> Value:
    """x with its last two dims swapped."""
    *outer, rows, columns = range(x.type.rank or 0)
    return b.transpose(x, (*outer, columns, rows))


def _bounds(
    b: RuleBuilder,
    left: UniformQuantizedType,
    right: UniformQuantizedType,
    y: Value,
    depth: int | None,
    adjoint: bool,
) -> Bounds | None:
    """Bounds of the accumulator, from the right side itself if it is constant; None if the depth is not known."""
    if depth is None:
        return None
    none = b.constant(np.zeros((), np.int64), i64)
    if y.is_constant:
        return bounds_of(left, b.value(y), ((y.type.rank or 0) - (1 if adjoint else 2),), right.zero_point, none)
    return _of_products(left, right, depth)


def _of_products(left: UniformQuantizedType, right: UniformQuantizedType, depth: int) -> Bounds:
    """Bounds of a sum of so many products of any stored numbers."""
    sides = [(e.storage.minimum - e.zero_point, e.storage.maximum - e.zero_point) for e in (left, right)]
    ends = [depth * x * y for x in sides[0] for y in sides[1]]
    return Bounds(np.asarray([min(ends)], np.int64), np.asarray([max(ends)], np.int64))
