"""tosa.matmul as int8 BATCH_MATMUL, or float BATCH_MATMUL on integer values.

With x = sum a_i X_i + c and y = sum b_j Y_j + d in int8 digits, c' = c - x_zp and d' = d - y_zp,

    sum (x - x_zp) (y - y_zp) = sum_ij a_i b_j X_i . Y_j  +  d' sum(x - c)  +  c' sum(y - y_zp)

The second term is one number per row of x, the third one per column of y: products with ones, which is several times
faster than SUM, where the length of the sums is known. int32 arithmetic wraps, as the kernel's does, so only the final
sum has to fit.

The float form takes the zero points off first and cuts the sums where a part could reach 2^24.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.reduction import Sum
from tflq.dialects.tosa.matmul import MatMul
from tflq.ir.core import Value, constant
from tflq.ir.types import ScalarType, Shape, f32, i8, i16, i32
from tflq.numerics.exact_sums import ProductBounds
from tflq.select.digits import Digits, digits
from tflq.select.lowering import Kernels, lowering
from tflq.select.mac_float import float_parts, float_ranges
from tflq.select.sums import WeightedSum, fits_int32

__all__: list[str] = []


@lowering(MatMul)
def matmul(op: MatMul, k: Kernels) -> Value:
    """The float form where that was asked for and is exact, else the int8 form."""
    x, y = k.value(op.input1), k.value(op.input2)
    zero_points = (op.a_zp, op.b_zp)
    acc, shape = op.output.type.storage, op.output.type.shape
    if acc.is_float:
        return k.batch_matmul(x, y, shape, to=acc)
    element = i32 if acc == i32 or fits_int32(k, op) else acc
    result = _float_product(k, x, y, zero_points, shape, element) if k.mac == "float32" else None
    return k.cast(result or _byte_product(k, x, y, zero_points, shape, element), acc)


def _depth(x: Value, y: Value) -> int | None:
    """The number of products in a sum, if it is known."""
    columns, rows = (x.type.shape or (None,))[-1], (y.type.shape or (None, None))[-2]
    return rows if columns is None else columns


def _byte_product(
    k: Kernels, x: Value, y: Value, zero_points: tuple[int, int], shape: Shape, element: ScalarType
) -> Value:
    """The products of digits and what the offsets and zero points add, in `element`."""
    left, right, depth = digits(k, x), digits(k, y), _depth(x, y)
    column_factor, row_factor = left.offset - zero_points[0], right.offset - zero_points[1]
    sums = WeightedSum(k, element)
    for a in left.parts:
        for b in right.parts:
            sums.add(k.batch_matmul(a.value, b.value, shape), a.coefficient * b.coefficient)
    if row_factor:
        sums.add(_sum(k, x, left, -1, left.offset, row_factor, depth, element), 1)
    if column_factor:
        return sums.plus(_sum(k, y, right, -2, zero_points[1], column_factor, depth, element))
    return sums.plus(k.constant(np.asarray(0), element))


def _sum(
    k: Kernels, x: Value, parts: Digits, axis: int, less: int, factor: int, depth: int | None, element: ScalarType
) -> Value:
    """factor * sum(x - less) over one of the last two dims, which stays with size 1."""
    if x.is_constant:
        total = factor * (x.array.astype(np.int64) - less).sum(axis, keepdims=True)
        return k.constant(total.astype(element.dtype), element)
    sums = WeightedSum(k, element)
    shape = list(x.type.shape or ())
    shape[axis] = 1
    if depth is None:
        wide = k.cast(x, element)
        if less:
            wide = k.sub(wide, k.constant(np.asarray(less), element))
        sums.add(k.reduce(Sum, wide, (len(shape) + axis,), True, tuple(shape)), factor)
        return sums.plus(k.constant(np.asarray(0), element))
    ones = k.constant(np.ones((1, depth), np.int8), i8)
    for part in parts.parts:
        operands = (part.value, ones) if axis == -1 else (ones, part.value)
        sums.add(k.batch_matmul(*operands, tuple(shape), adj_y=axis == -1), part.coefficient * factor)
    known = np.asarray(depth * factor * (parts.offset - less))
    return sums.plus(k.constant(known.astype(element.dtype), element))


def _float_product(
    k: Kernels, x: Value, y: Value, zero_points: tuple[int, int], shape: Shape, element: ScalarType
) -> Value | None:
    """Float BATCH_MATMUL per pair of parts and run of the sums, in `element`; None where no cut makes it exact."""
    depth = _depth(x, y)
    if depth is None or (any(zero_points) and i16 in (x.type.storage, y.type.storage)):
        return None
    splits = [
        [bounds.runs() for bounds in _products(y, zero_points[1], depth, *ends)]
        for ends in float_ranges(x.type.storage, zero_points[0])
    ]
    if any(runs is None for row in splits for runs in row):
        return None
    left, right = float_parts(k, x, zero_points[0]), float_parts(k, y, zero_points[1])
    sums = WeightedSum(k, element)
    for a, row in zip(left, splits, strict=True):
        for b, runs in zip(right, row, strict=True):
            for run in runs or ():
                pieces = _run(k, a.value, -1, run), _run(k, b.value, -2, run)
                product = k.batch_matmul(*pieces, shape, to=f32)
                sums.add(k.cast(product, i32), a.coefficient * b.coefficient)
    return sums.plus(k.constant(np.asarray(0), element))


def _products(y: Value, zero_point: int, depth: int, low: int, high: int) -> list[ProductBounds]:
    """What the products of x in [low, high] and each float part of y add to a sum; one column for all if y is not
    known."""
    if y.is_constant and y.type.storage != i16:
        columns = np.moveaxis(y.array.astype(np.float64) - zero_point, -2, -1).reshape(-1, depth)
        return [ProductBounds.of(np.maximum(columns, 0), np.minimum(columns, 0), low, high)]
    found = []
    for ends in float_ranges(y.type.storage, zero_point):
        products = [0, *(a * b for a in (low, high) for b in ends)]
        found.append(ProductBounds(*(np.full((1, depth), v, np.float64) for v in (min(products), max(products)))))
    return found


def _run(k: Kernels, x: Value, axis: int, run: slice) -> Value:
    """x between the bounds of `run` along one of the last two dims."""
    shape = list(x.type.shape or ())
    if (run.start, run.stop) == (0, shape[axis]):
        return x
    if x.is_constant:
        return constant(np.ascontiguousarray(x.array[..., run] if axis == -1 else x.array[..., run, :]))
    place = len(shape) + axis
    shape[axis] = run.stop - run.start
    begin, end = [0] * len(shape), [0] * len(shape)
    begin[place], end[place] = run.start, run.stop
    whole = (1 << len(shape)) - 1 ^ 1 << place
    return k.strided_slice(x, begin, end, [1] * len(shape), tuple(shape), begin_mask=whole, end_mask=whole)
