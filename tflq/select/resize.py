"""Lowering of RESIZE: rows, then columns, each two GATHERs weighted by constants; NEAREST_NEIGHBOR by the builtin where it agrees.

    rows       x[upper row] * (n - f) + x[lower row] * f        int32, [rows, 1, 1] weights
    columns    likewise, [columns, 1] weights, in the result's type

A dim that every output takes from one element is one GATHER, and none if it takes them in order. No constant knows the batch.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import i32, i64
from tflq.numerics.resize import Steps, float_nearest_index, nearest_index, taps
from tflq.select.highword import high_part, restore
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering("tosa.resize")
def resize(op: Op, k: Kernels) -> Value:
    x, a = k.value(op.operand(0)), op.attributes
    dims = [
        (axis, (x.type.shape or ())[axis] or 0, (op.result.type.shape or ())[axis] or 0, Steps(*a["scale"][at : at + 2], a["offset"][at // 2]))
        for axis, at in ((1, 0), (2, 2))
    ]
    if a["mode"] == "BILINEAR":
        x = k.cast(x, i32)
        for axis, size, out, steps in dims:
            x = _interpolated(k, x if axis == 1 else k.cast(x, op.result.type.storage), axis, size, out, steps)
        return x
    indices = [nearest_index(steps, size, out) for _, size, out, steps in dims]
    for flags in product((False, True), repeat=2):
        if all(np.array_equal(i, float_nearest_index(d[1], d[2], *flags)) for i, d in zip(indices, dims, strict=True)):
            size = k.constant([d[2] for d in dims])
            align_corners, half_pixel_centers = flags
            return k.emit(
                "tfl.resize_nearest_neighbor",
                [x, size],
                op.result.type,
                align_corners=align_corners,
                half_pixel_centers=half_pixel_centers,
            )
    for index, dim in zip(indices, dims, strict=True):
        x = _taken(k, x, index.astype(np.int32), dim[0])
    return x


def _interpolated(k: Kernels, x: Value, axis: int, size: int, out: int, steps: Steps) -> Value:
    """x[lower] * (n - f) + x[upper] * f along an axis."""
    lower, upper, fraction = taps(steps, size, out)
    first = _taken(k, x, lower, axis)
    if not fraction.any():
        return first if steps.n == 1 else k.mul(first, k.constant(steps.n, x.type.storage))
    second = _taken(k, x, upper, axis)
    weight = fraction.reshape(-1, *(1,) * (3 - axis))
    storage = x.type.storage
    return k.add(k.mul(first, k.constant(steps.n - weight, storage)), k.mul(second, k.constant(weight, storage)))


def _taken(k: Kernels, x: Value, index: np.ndarray, axis: int) -> Value:
    """Elements of an axis by index; x itself if that is all of them in order."""
    if index.size == (x.type.shape or ())[axis] and (index == np.arange(index.size)).all():
        return x
    return k.gather(x, k.constant(index), axis)


@lowering("tosa.intdiv")
def divide(op: Op, k: Kernels) -> Value:
    """DIV truncates."""
    x, y = (k.value(v) for v in op.values if v is not op.result)
    return k.emit("tfl.div", [x, y], op.result.type, fused_activation_function="NONE")


@lowering("ext.rounding_divide_by_pot")
def rounding_divide(op: Op, k: Kernels) -> Value:
    """(x + 2^(e-1) - [x < 0]) >> e, for int64: times 2^(32-e), of which the upper word is the quotient."""
    x, exponent, shape = k.value(op.operand(0)), op.attributes["exponent"], op.result.type.shape
    negative = k.cast(k.greater(k.constant(0, i64), x), i64)
    scaled = k.mul(k.sub(x, negative), k.constant(1 << (32 - exponent), i64))
    word = high_part(k, k.add(scaled, k.constant(1 << 31, i64)), i32)
    return restore(k, k.cast(word, op.result.type.storage), shape)
