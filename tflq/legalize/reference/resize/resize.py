"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, which work on stored integers and disregard scales and zero points.

    int8, int16   RESIZE in steps of 1/1024, divided by 2^20 and rounded half away from zero
    uint8         a (1 - fy) (1 - fx) + b fy (1 - fx) + c (1 - fy) fx + d fy fx + 0.5 in float32, truncated; in integers
                  where that is proven to be RESIZE by the ratio of the sizes, divided and rounded
    nearest       one element

Sources: kernels/resize_bilinear.cc, kernels/resize_nearest_neighbor.cc; `tflq.numerics.resize` has the arithmetic.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.rescale import RoundingDivideByPot
from tflq.dialects.tfl import resize as tfl
from tflq.dialects.tfl.arithmetic import Add, Mul
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tfl.resize import ResizeBilinear, ResizeNearestNeighbor
from tflq.dialects.tosa.arithmetic import IntDiv
from tflq.dialects.tosa.resize import Resize
from tflq.ir.core import Value
from tflq.ir.types import TensorType, f32, i8, i16, i32, i64, ui8
from tflq.legalize.reference.resize.any_size import weighted_sums
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.resize import (
    Steps,
    float_taps,
    integer_steps,
    is_copy,
    nearest_steps,
    rational_steps,
    uint8_is_rational,
)

__all__: list[str] = []

_RAW = "the kernel resizes the stored integers, though source and result have different quantization parameters"
_FLOAT = "computed in float32 as the kernel does: at these sizes no integer form is proven equal"


@rule(ResizeBilinear)
def resize_bilinear(op: ResizeBilinear, b: RuleBuilder) -> Answer:
    """result = the four elements around each position, weighted."""
    x, size = op.input, op.size
    if reason := _unsupported(op):
        raise NotApplicable(reason)
    height, width = _plane(x)
    if not size.is_constant or height is None or width is None:
        return _of_any_size(op, b)
    flags = op.align_corners, op.half_pixel_centers
    source, out = (height, width), (int(size.array[0]), int(size.array[1]))
    if min(source) < 1 or min(out) < 1:
        raise NotApplicable("there are no elements to resize")
    warning = _RAW if x.type.element != op.result.type.element else ""
    if x.type.storage == ui8 and not _has_integer_form(source, out, *flags):
        return Rewritten([_in_float(b, b.value(x), source, out, *flags)], _FLOAT, warning)
    find = rational_steps if x.type.storage == ui8 else integer_steps
    rows, columns = (find(n, o, *flags) for n, o in zip(source, out, strict=True))
    if rows is None or columns is None:
        raise NotApplicable("at these sizes the kernel reads beyond the last row or column")
    if is_copy(rows, height, out[0]) and is_copy(columns, width, out[1]):
        taken = _resize(b, b.value(x), source, out, rows, columns, "NEAREST_NEIGHBOR")
        return Rewritten([taken], warning=warning)
    acc = _resize(b, b.value(x), source, out, rows, columns, "BILINEAR")
    return Rewritten([_divided(b, acc, x, rows.n * columns.n)], warning=warning)


def _of_any_size(op: ResizeBilinear, b: RuleBuilder) -> Answer:
    """The same where the size of the operand or of the result is not known."""
    x, size = op.input, op.size
    reason = f"the size of '{x.name}' or of the result is not known"
    if x.type.storage == ui8:
        raise NotApplicable(reason, f"{reason}, and the kernel computes in float32: the result can be two counts away")
    if size.type.storage != i32 or size.type.shape != (2,):
        raise NotApplicable(reason)
    acc = weighted_sums(
        b, b.value(x), b.value(size), align_corners=op.align_corners, half_pixel_centers=op.half_pixel_centers
    )
    made = b.restated(_divided(b, acc, x, 1 << 20), op.result.type.shape)
    return Rewritten([made], warning=_RAW if x.type.element != op.result.type.element else "")


@rule(ResizeNearestNeighbor)
def resize_nearest(op: ResizeNearestNeighbor, b: RuleBuilder) -> Answer:
    """result = the nearest element; by the kernel where sizes are not known, or TOSA would take another one."""
    x, size = op.input, op.size
    if reason := _unsupported(op):
        raise NotApplicable(reason)
    height, width = _plane(x)
    warning = _RAW if x.type.element != op.result.type.element else ""
    if size.is_constant and height and width and (size.array > 0).all():
        flags, out = (op.align_corners, op.half_pixel_centers), (int(size.array[0]), int(size.array[1]))
        rows, columns = (nearest_steps(n, o, *flags) for n, o in zip((height, width), out, strict=True))
        if rows is not None and columns is not None:
            taken = _resize(b, b.value(x), (height, width), out, rows, columns, "NEAREST_NEIGHBOR")
            return Rewritten([taken], warning=warning)
    return Rewritten(
        [b.emit(type(op), [b.value(x), b.value(size)], op.output.type.stripped(), **op.attributes)], warning=warning
    )


def _unsupported(op: tfl.Resize) -> str:
    """Why no rule applies, if none does."""
    source, target = op.input.type, op.output.type
    if source.storage != target.storage or source.storage not in (i8, ui8, i16):
        return f"no kernel resizes {source.storage} to {target.storage}"
    return "" if source.shape is not None and len(source.shape) == 4 else "the operand's rank is not known to be 4"


def _plane(x: Value) -> tuple[int | None, int | None]:
    """Height and width of a tensor of rank 4."""
    shape = x.type.shape
    return (None, None) if shape is None else (shape[1], shape[2])


def _has_integer_form(
    size: tuple[int, int], out: tuple[int, int], align_corners: bool, half_pixel_centers: bool
) -> bool:
    """Whether the uint8 kernel is the ratio's RESIZE, and that fits int32."""
    rows, columns = (rational_steps(n, o, align_corners, half_pixel_centers) for n, o in zip(size, out, strict=True))
    return 256 * rows.n * columns.n < 1 << 31 and uint8_is_rational(size, out, align_corners, half_pixel_centers)


def _resize(
    b: RuleBuilder, x: Value, size: tuple[int, int], out: tuple[int, int], rows: Steps, columns: Steps, mode: str
) -> Value:
    """tosa.resize; BILINEAR widens: i32 for 8 bits, i64 (TOSA's i48) for 16."""
    widened = i64 if x.type.storage == i16 else i32
    batch, channels = (x.type.shape or (None,))[0], (x.type.shape or (None,))[-1]
    return b.emit(
        Resize,
        [x],
        TensorType((batch, *out, channels), widened if mode == "BILINEAR" else x.type.element),
        scale=(rows.n, rows.d, columns.n, columns.d),
        offset=(rows.offset, columns.offset),
        border=(rows.border(size[0], out[0]), columns.border(size[1], out[1])),
        mode=mode,
    )


def _divided(b: RuleBuilder, acc: Value, x: Value, divisor: int) -> Value:
    """acc / divisor, rounded half away from zero, in x's storage type."""
    storage = x.type.storage
    if storage == i16:
        type = acc.type.with_element(i16)
        return b.emit(RoundingDivideByPot, [acc], type, exponent=divisor.bit_length() - 1)
    if storage == i8:
        acc = b.add(acc, b.arithmetic_right_shift(acc, b.constant(31)))  # a half below zero goes down, too
    if divisor > 1:
        acc = b.add(acc, b.constant(divisor // 2))
        if divisor & (divisor - 1):
            acc = b.emit(IntDiv, [acc, b.constant(divisor)], acc.type)
        else:
            acc = b.arithmetic_right_shift(acc, b.constant(divisor.bit_length() - 1))
    return b.cast(acc, storage)


def _in_float(
    b: RuleBuilder, x: Value, size: tuple[int, int], out: tuple[int, int], align_corners: bool, half_pixel_centers: bool
) -> Value:
    """The uint8 kernel's own float32 operations, in its order, on whole tensors."""
    one = np.float32(1)
    y0, y1, fy = float_taps(size[0], out[0], align_corners, half_pixel_centers)
    x0, x1, fx = float_taps(size[1], out[1], align_corners, half_pixel_centers)
    real = b.cast(x, f32)

    def weighted(value: Value, index: np.ndarray, axis: int, weight: np.ndarray) -> Value:
        shape = tuple(len(index) if a == axis else d for a, d in enumerate(value.type.shape or ()))
        taken = b.emit(Gather, [value, b.constant(index)], TensorType(shape, f32), axis=axis, batch_dims=0)
        factor = b.constant(weight.reshape(-1, *(1,) * (3 - axis)), f32)
        return b.emit(Mul, [taken, factor], taken.type, fused_activation_function="NONE")

    def added(left: Value, right: Value) -> Value:
        return b.emit(Add, [left, right], left.type, fused_activation_function="NONE", pot_scale_int16=False)

    upper, lower = weighted(real, y0, 1, one - fy), weighted(real, y1, 1, fy)
    total = weighted(upper, x0, 2, one - fx)
    total = added(total, weighted(lower, x0, 2, one - fx))
    total = added(total, weighted(upper, x1, 2, fx))
    total = added(total, weighted(lower, x1, 2, fx))
    return b.truncate(added(total, b.constant(np.float32(0.5), f32)), ui8)
