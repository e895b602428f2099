"""RESIZE: rows, then columns, each two GATHERs weighted by constants:

    rows       x[upper row] * (n - f) + x[lower row] * f        int32, [rows, 1, 1] weights
    columns    the same, [columns, 1] weights, in the result's type

A dim in which every output is one element is one GATHER, or nothing, if that is all of them in order. No constant knows
the batch. NEAREST_NEIGHBOR is the builtin with the flags that agree, if any do, else GATHERs. `resize_float.py` has the
builtin of floats.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tflq.dialects.tfl.pooling import ResizeNearestNeighbor
from tflq.dialects.tosa.movement import Resize
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, TensorType, i32
from tflq.light import NamedTuple
from tflq.numerics.convolution import Steps, float_nearest_index, is_copy, nearest_index, steps_of, taps
from tflq.select.lowering import Kernels, lowering, moved


@lowering(Resize)
def resize(op: Resize, k: Kernels) -> Value:
    x, source, result = k.value(op.input), op.input.type, op.output.type
    if source.shape is None or result.shape is None or None in source.shape[1:3] or None in result.shape[1:3]:
        remedy = "state the sizes of the model's inputs (--batch, --shape)"
        raise UnsupportedError(Reason.at(op.location, f"{op.name} with sizes that are not known", remedy=remedy))
    dims = resized_dims(op)
    if op.mode == "NEAREST_NEIGHBOR":
        return moved(k, x, lambda v, _: _nearest(k, v, dims, result.with_element(v.type.storage)))
    if x in k.twins and not k.restricted:
        from tflq.select.resize_float import float_resize

        made = float_resize(op, k)
        if made is not None:
            return made
    if x.type.storage.is_float:
        return _mixed(k, _mixed(k, x, dims[0]), dims[1])
    x = k.cast(interpolated(k, k.cast(x, i32), dims[0]), result.storage)
    return interpolated(k, x, dims[1])


class Dim(NamedTuple):
    """A dim that is resized."""

    axis: int
    size: int
    out: int
    steps: Steps


def resized_dims(op: Resize) -> list[Dim]:
    """Rows and columns; their sizes are known."""
    sizes, results = op.input.type.shape or (), op.output.type.shape or ()
    steps = zip((1, 2), steps_of(op.scale, op.offset), strict=True)
    return [Dim(axis, sizes[axis] or 0, results[axis] or 0, s) for axis, s in steps]


def _nearest(k: Kernels, x: Value, dims: list[Dim], type: TensorType) -> Value:
    indices = [nearest_index(d.steps, d.size, d.out) for d in dims]
    for flags in product((False, True), repeat=2):
        if all(
            np.array_equal(i, float_nearest_index(d.size, d.out, *flags)) for i, d in zip(indices, dims, strict=True)
        ):
            size = k.constant([d.out for d in dims])
            options = {"align_corners": flags[0], "half_pixel_centers": flags[1]}
            return k.emit(ResizeNearestNeighbor, [x, size], type, **options)
    for index, dim in zip(indices, dims, strict=True):
        x = _taken(k, x, index.astype(np.int32), dim.axis)
    return x


def interpolated(k: Kernels, x: Value, dim: Dim, to: ScalarType | None = None) -> Value:
    """x[lower] * (n - f) + x[upper] * f along a dim, computed in x's type, or in `to`."""
    axis, steps, storage = dim.axis, dim.steps, to or x.type.storage
    lower, upper, fraction = taps(steps, dim.size, dim.out)
    first = k.cast(_taken(k, x, lower, axis), storage)
    if is_copy(steps, dim.size, dim.out):
        return first if steps.n == 1 else k.mul(first, k.constant(steps.n, storage))
    second = k.cast(_taken(k, x, upper, axis), storage)
    weight = fraction.reshape(-1, *(1,) * (3 - axis))
    return k.add(k.mul(first, k.constant(steps.n - weight, storage)), k.mul(second, k.constant(weight, storage)))


def _mixed(k: Kernels, x: Value, dim: Dim) -> Value:
    """x[lower] * (1 - f / n) + x[upper] * f / n along a dim of floats."""
    lower, upper, fraction = taps(dim.steps, dim.size, dim.out)
    first = _taken(k, x, lower, dim.axis)
    if is_copy(dim.steps, dim.size, dim.out) and not fraction.any():
        return first
    weight = (fraction / dim.steps.n).reshape(-1, *(1,) * (3 - dim.axis))
    second, storage = _taken(k, x, upper, dim.axis), x.type.storage
    return k.add(k.mul(first, k.constant(1 - weight, storage)), k.mul(second, k.constant(weight, storage)))


def _taken(k: Kernels, x: Value, index: np.ndarray, axis: int) -> Value:
    """Elements of an axis by index; x itself if that is all of them in order."""
    if index.size == (x.type.shape or ())[axis] and (index == np.arange(index.size)).all():
        return x
    return k.gather(x, k.constant(index), axis)
