"""RESIZE: rows, then columns, each two GATHERs weighted by constants:

    rows       x[upper row] * (n - f) + x[lower row] * f        int32, [rows, 1, 1] weights
    columns    the same, [columns, 1] weights, in the result's type

A dim in which every output is one element is one GATHER, or nothing, if that is all of them in order. No constant knows
the batch. NEAREST_NEIGHBOR is the builtin with the flags that agree, if any do, else GATHERs.

Where 8 bits are there as float32, RESIZE_BILINEAR is the builtin, if its positions are exact
(`tflq.numerics.resize.float_kernel`):

    ADD of 1/2, RESIZE_BILINEAR, FLOOR     where a half is rounded up: weights add up to 1
    RESIZE_BILINEAR, MUL, ADD, FLOOR       away from zero: a factor a little above 1 takes halves to the other side

The mean is a multiple of 1 / (n_y n_x) and exact. Either rounding is proven on all that there can be.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

import numpy as np

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.base import sized
from tflq.base.errors import Reason, UnsupportedError
from tflq.dialects.declare import trait_of
from tflq.dialects.tfl.arithmetic import Floor
from tflq.dialects.tfl.pooling import ResizeBilinear, ResizeNearestNeighbor
from tflq.dialects.tosa.movement import Rescale, Resize
from tflq.dialects.traits import Tabulable
from tflq.formats.tflite.lowering.lowering import Tflite, Twin, integers_of, lowering, moved
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, f32, i32
from tflq.numerics.float_basics import multiply_add
from tflq.numerics.resize import Sampling, float_kernel, float_nearest_index, is_copy, nearest_index, steps_of, taps


@lowering(Resize)
def resize(op: Resize, k: Tflite) -> Value:
    x, source, result = k.value(op.input), op.input.type, op.output.type
    if source.shape is None or result.shape is None or None in source.shape[1:3] or None in result.shape[1:3]:
        remedy = "state the sizes of the model's inputs (--batch, --shape)"
        raise UnsupportedError(Reason.at(op.location, f"{op.name} with sizes that are not known", remedy=remedy))
    dims = resized_dims(op)
    if op.mode == "NEAREST_NEIGHBOR":
        return moved(k, x, lambda v, _: _nearest(k, v, dims, result.with_element(v.type.storage)))
    if x in k.twins and not k.restricted:
        integers = float_resize(op, k)
        if integers is not None:
            return integers
    if x.type.storage.is_float:
        return _mixed(k, _mixed(k, x, dims[0]), dims[1])
    x = k.cast(interpolated(k, k.cast(x, i32), dims[0]), result.storage)
    return interpolated(k, x, dims[1])


class Dim(NamedTuple):
    """A dim that is resized."""

    axis: int
    size: int
    out: int
    steps: Sampling


def resized_dims(op: Resize) -> list[Dim]:
    """Rows and columns; their sizes are known."""
    sizes, results = op.input.type.dims, op.output.type.dims
    sized.need_few(max(results[1] or 0, results[2] or 0))
    steps = zip((1, 2), steps_of(op.scale, op.offset), strict=True)
    return [Dim(axis, sizes[axis] or 0, results[axis] or 0, s) for axis, s in steps]


def _nearest(k: Tflite, x: Value, dims: list[Dim], type: TensorType) -> Value:
    indices = [nearest_index(d.steps, d.size, d.out) for d in dims]
    for flags in product((False, True), repeat=2):
        if all(
            np.array_equal(i, float_nearest_index(d.size, d.out, *flags)) for i, d in zip(indices, dims, strict=True)
        ):
            size = k.constant([d.out for d in dims])
            options = {"align_corners": flags[0], "half_pixel_centers": flags[1]}
            return k.emit(ResizeNearestNeighbor, [x, size], type, **options)
    for index, dim in zip(indices, dims, strict=True):
        x = _gathered(k, x, index.astype(np.int32), dim.axis)
    return x


def interpolated(k: Tflite, x: Value, dim: Dim, to: ScalarType | None = None) -> Value:
    """x[lower] * (n - f) + x[upper] * f along a dim, computed in x's type, or in `to`."""
    axis, steps, storage = dim.axis, dim.steps, to or x.type.storage
    lower, upper, fraction = taps(steps, dim.size, dim.out)
    first = k.cast(_gathered(k, x, lower, axis), storage)
    if is_copy(steps, dim.size, dim.out):
        return first if steps.n == 1 else k.mul(first, steps.n)
    second = k.cast(_gathered(k, x, upper, axis), storage)
    weight = fraction.reshape(-1, *(1,) * (3 - axis))
    return k.add(k.mul(first, steps.n - weight), k.mul(second, weight))


def _mixed(k: Tflite, x: Value, dim: Dim) -> Value:
    """x[lower] * (1 - f / n) + x[upper] * f / n along a dim of floats."""
    lower, upper, fraction = taps(dim.steps, dim.size, dim.out)
    first = _gathered(k, x, lower, dim.axis)
    if is_copy(dim.steps, dim.size, dim.out) and not fraction.any():
        return first
    weight = (fraction / dim.steps.n).reshape(-1, *(1,) * (3 - dim.axis))
    second = _gathered(k, x, upper, dim.axis)
    return k.add(k.mul(first, 1 - weight), k.mul(second, weight))


def _gathered(k: Tflite, x: Value, index: np.ndarray, axis: int) -> Value:
    """Elements of an axis by index; x itself if that is all of them in order."""
    if index.size == x.type.dims[axis] and (index == np.arange(index.size)).all():
        return x
    return k.gather(x, k.constant(index), axis)


# The builtin of floats.


_BITS: Final = (22, 20, 18, 16, 14, 12)
"""Of the last place in which factors differ from 1."""


class _Line(NamedTuple):
    """floor(x m + c), or floor(x + c) without an m, is the level less `offset`."""

    m: np.float32 | None
    c: np.float32
    offset: int


def float_resize(op: Resize, k: Tflite) -> Value | None:
    """The 8-bit integers that are computed from the sums, with their twin.

    None where positions are not exact, where others read the sums, or without a proof.
    """
    twin, source, result = k.twins[k.value(op.input)], op.input.type, op.output.type
    kernel = float_kernel(steps_of(op.scale, op.offset), (source.shape or ())[1:3], (result.shape or ())[1:3])
    rounding = _rounding(op, k)
    if kernel is None or not rounding:
        return None
    line = _line(op, rounding, kernel.parts, twin.offset)
    if line is None:
        return None
    size = k.constant(result.sizes[1:3])
    options = {"align_corners": kernel.align_corners, "half_pixel_centers": kernel.half_pixel_centers}
    image = twin.value if line.m else k.add(twin.value, line.c)
    mean = k.emit(ResizeBilinear, [image, size], result.with_element(f32), **options)
    if line.m:
        mean = k.add(k.mul(mean, line.m), line.c)
    level = k.emit(Floor, [mean])
    k.fused.update(rounding)
    last = rounding[-1].result
    return k.fuse(rounding[-1], integers_of(k, Twin(level, line.offset), last.type.storage))


def _rounding(op: Resize, k: Tflite) -> list[Op] | None:
    """The ops that make 8 bits of the sums, in order; None if others read what is between."""
    ops, values = list[Op](), [op.output]
    while values[-1].type.storage.bits > 8:
        readers = [r for r in k.readers(values[-1]) if r not in ops and trait_of(r, Tabulable) is not None]
        ready = [r for r in readers if all(v in values or _is_one_number(v) for v in r.present_operands)]
        if not ready or (isinstance(ready[0], Rescale) and ready[0].per_channel):
            return None
        ops.append(ready[0])
        values.append(ready[0].result)
    alone = all(k.is_inner(v) and all(r in ops for r in k.readers(v)) for v in values[:-1])
    return ops if alone else None


def _is_one_number(value: Value) -> bool:
    return value.is_constant and value.array.size == 1


def _line(op: Resize, rounding: list[Op], parts: int, offset: int) -> _Line | None:
    """The line from a mean, less by `offset`, to the level of each sum; None if no candidate is right.

    parts: how many parts of the mean make a whole number.
    """
    storage, (rows, columns) = op.input.type.storage, steps_of(op.scale, op.offset)
    counts = np.arange(storage.minimum * parts, storage.maximum * parts + 1, dtype=np.int32)
    sums = counts * np.int32(rows.n * columns.n // parts)
    known = {op.output: sums}
    for step in rounding:
        operands = [None if v is None else known[v] if v in known else v.array.reshape(()) for v in step.operands]
        results = evaluate_op(step, operands)
        if results is None:
            return None
        known.update(zip(step.results, results, strict=True))
    levels = known[rounding[-1].result].astype(np.int64)
    mean = ((counts - offset * parts) / np.float64(parts)).astype(np.float32)
    if np.array_equal(np.floor(mean + np.float32(0.5)) + offset, levels):
        return _Line(None, np.float32(0.5), offset)
    for m in (np.float32(1 + 2.0**-bits) for bits in _BITS):
        c = np.float32(0.5 + offset * np.float64(m))
        if np.array_equal(np.floor(multiply_add(mean, m, np.full(1, c))), levels):
            return _Line(m, c, 0)
    return None
