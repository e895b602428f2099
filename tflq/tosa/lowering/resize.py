"""RESIZE, where its scale is within TOSA's limits; else the elements it reads, by GATHER, and their weighted sum.

    n <= 2048, d < 16 n, -n <= offset < 16 n, -16 n <= border < n; at level 8k n <= 256 d

for each of rows and columns, sampled at (o * d + offset) / n. Along a dim that has been sampled RESIZE takes each
element. RESIZE_BILINEAR of float32 is RESIZE by the ratio of the sizes; RESIZE_NEAREST_NEIGHBOR takes the elements that
the kernel finds, in its float32. Sources: TOSA 1.0 specification, RESIZE; kernels/resize_bilinear.cc,
kernels/resize_nearest_neighbor.cc; `tflq.numerics.resize`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.tfl.resize import ResizeBilinear, ResizeNearestNeighbor
from tflq.dialects.tosa.bits import BitwiseNot
from tflq.dialects.tosa.resize import Resize
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i16, i32, i64
from tflq.numerics.fixed_point import Multiplier
from tflq.numerics.resize import (
    Steps,
    float_nearest_index,
    float_taps,
    is_copy,
    nearest_index,
    rational_steps,
    steps_of,
    taps,
    within_tosa,
)
from tflq.tosa.lowering.floats.arithmetic import need_float
from tflq.tosa.lowering.known import constant_of
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import take

__all__ = ["divided"]

_STILL = Steps(1, 1, 0)
"""Each element as it is."""


@lowering(Resize)
def resize(op: Resize, t: Tosa) -> Value:
    x, shape = t.value(op.input), op.result.type.shape or ()
    steps, sizes, out = steps_of(op.scale, op.offset), _plane(x), _known(shape[1:3])
    if x.type.storage == i16:
        t.need("int16", "RESIZE of int16")
    if op.mode == "NEAREST_NEIGHBOR":
        for axis in (1, 2):
            if not _within(t, steps[axis - 1], sizes[axis - 1], out[axis - 1]):
                x = take(t, x, nearest_index(steps[axis - 1], sizes[axis - 1], out[axis - 1]), axis)
                steps = (_STILL, steps[1]) if axis == 1 else (steps[0], _STILL)
        return _resized(t, x, steps, out, op.mode)
    sums = _weighted(op, x, t)
    offset = t.offset(op.input) * steps[0].n * steps[1].n
    return t.add(sums, t.constant(np.full((1, 1, 1, 1), offset), i32)) if offset else sums


def divided(resized: Resize, exponent: int, t: Tosa) -> Value:
    """RESIZE of int16, whose weights add up to 2^exponent, divided by that and rounded half away from zero: int16.

    RESCALE rounds halves up. Of ~x RESIZE makes -acc - 2^exponent, and the complement of that, divided, is acc with
    halves rounded down. Only of a half the two differ, and then the upper one is right where it is positive.
    """
    source, scale = t.value(resized.input), resized.scale
    if source.type.storage != i16 or resized.mode != "BILINEAR" or scale[0] * scale[2] != 1 << exponent:
        raise Refused("the divisor of a RESIZE is not the sum of its weights")
    t.need("int16", "RESIZE of int16")
    quotient = Multiplier(1 << 30, 1 - exponent)
    up, down = (t.rescale(_weighted(resized, x, t), quotient, i32) for x in (source, t.emit(BitwiseNot, [source])))
    positive = t.greater(up, t.constant(np.zeros((1, 1, 1, 1)), i32))
    return t.cast(t.select(positive, up, t.emit(BitwiseNot, [down])), i16)


def _weighted(op: Resize, x: Value, t: Tosa) -> Value:
    """The weighted sums of x, of the operator's sizes."""
    steps = list(steps_of(op.scale, op.offset))
    out = _known((op.result.type.shape or ())[1:3])
    for axis, (step, made) in enumerate(zip(steps, out, strict=True), 1):
        size = _plane(x)[axis - 1]
        if not _within(t, step, size, made) and is_copy(step, size, made) and step.n <= 2048:
            x, steps[axis - 1] = take(t, x, nearest_index(step, size, made), axis), Steps(step.n, step.n, 0)
    if all(_within(t, s, size, o) for s, size, o in zip(steps, _plane(x), out, strict=True)):
        return _resized(t, x, steps, out, "BILINEAR")
    if x.type.storage == i16:
        raise Refused("RESIZE of int16 outside TOSA's limits, and no other operator adds 48 bits")
    sums = x if x.type.storage.is_float else t.cast(x, i32)
    for axis in (1, 2):
        sums = _interpolated(t, sums, steps[axis - 1], out[axis - 1], axis)
    return sums


@lowering(ResizeNearestNeighbor)
def resize_nearest(op: ResizeNearestNeighbor, t: Tosa) -> Value:
    """The elements at the kernel's positions."""
    x, out = t.value(op.input), _size(op)
    flags = op.align_corners, op.half_pixel_centers
    for axis, (size, made) in enumerate(zip(_plane(x), out, strict=True), 1):
        x = take(t, x, float_nearest_index(size, made, *flags), axis)
    return x


@lowering(ResizeBilinear)
def resize_bilinear(op: ResizeBilinear, t: Tosa) -> Value:
    """Of float32."""
    need_float(t, "RESIZE_BILINEAR")
    x, out = t.value(op.input), _size(op)
    if not x.type.storage.is_float:
        raise Refused(f"RESIZE_BILINEAR of plain {x.type.storage}")
    flags = op.align_corners, op.half_pixel_centers
    sizes = _plane(x)
    steps = [rational_steps(n, o, *flags) for n, o in zip(sizes, out, strict=True)]
    if all(_within(t, s, n, o) for s, n, o in zip(steps, sizes, out, strict=True)):
        return _resized(t, x, steps, out, "BILINEAR")
    for axis, (size, made) in enumerate(zip(sizes, out, strict=True), 1):
        lower, upper, fraction = float_taps(size, made, *flags)
        weight = fraction.reshape(-1, *(1,) * (3 - axis))
        x = _mixed(t, x, (lower, upper), (np.float32(1) - weight, weight), axis)
    return x


def _size(op: ResizeBilinear | ResizeNearestNeighbor) -> tuple[int, int]:
    """The height and width that are asked for."""
    return _known([int(n) for n in constant_of(op.size, "size of the result")])


def _known(dims: Sequence[int | None]) -> tuple[int, int]:
    height, width = dims
    if not height or not width:
        raise Refused("the height and width of the result are not known")
    return height, width


def _plane(x: Value) -> tuple[int, int]:
    """Height and width of a tensor of rank 4."""
    shape = x.type.shape
    if shape is None or len(shape) != 4 or not shape[1] or not shape[2]:
        raise Refused("the height and width of what is resized are not known")
    return shape[1], shape[2]


def _within(t: Tosa, steps: Steps, size: int, out: int) -> bool:
    return within_tosa(steps, size, out, level=t.target.level != "none")


def _resized(t: Tosa, x: Value, steps: Sequence[Steps], out: tuple[int, int], mode: str) -> Value:
    """RESIZE; none if it would take each element as it is."""
    rows, columns = steps
    height, width = _plane(x)
    if mode == "NEAREST_NEIGHBOR" and rows == columns == _STILL and out == (height, width):
        return x
    storage = x.type.storage
    if mode == "BILINEAR" and not storage.is_float:
        storage = i64 if storage == i16 else i32
    batch, *_, channels = x.type.shape or ()
    return t.emit(
        Resize,
        [x],
        TensorType((batch, *out, channels), storage),
        scale=(rows.n, rows.d, columns.n, columns.d),
        offset=(rows.offset, columns.offset),
        border=(rows.border(height, out[0]), columns.border(width, out[1])),
        mode=mode,
    )


def _interpolated(t: Tosa, x: Value, steps: Steps, out: int, axis: int) -> Value:
    """x[lower] * (n - f) + x[upper] * f along a dim; of floats, divided by n."""
    size = (x.type.shape or ())[axis] or 0
    lower, upper, fraction = taps(steps, size, out)
    if is_copy(steps, size, out):
        fraction, upper = np.zeros_like(fraction), lower
    weights = np.stack([steps.n - fraction, fraction]).reshape(2, -1, *(1,) * (3 - axis))
    if x.type.storage.is_float:
        weights = weights / np.float32(steps.n)
    return _mixed(t, x, (lower, upper), (weights[0], weights[1]), axis)


def _mixed(
    t: Tosa, x: Value, index: tuple[np.ndarray, np.ndarray], weights: tuple[np.ndarray, np.ndarray], axis: int
) -> Value:
    """Two elements of a dim for each index, weighted and added; only of the first where all others weigh nothing."""
    terms = [
        t.mul(take(t, x, i, axis), t.constant(w[None] if w.ndim == 3 else w[None, None], x.type.storage))
        for i, w in zip(index, weights, strict=True)
        if w.any()
    ]
    return terms[0] if len(terms) == 1 else t.add(*terms)
