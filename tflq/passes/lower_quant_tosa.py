"""Quantization casts as ops of `tosa` on the stored integers, rounding and saturating as TFLite's kernels do.

    qcast(x) = scast(cast(clamp(round(x / scale) + zero_point, storage_min, storage_max)))
    dcast(q) = (cast(scast(q)) - zero_point) * scale

The order is TFLite's (kernels/internal/reference/quantize.h and dequantize.h): the zero point is added after rounding,
and the clamp comes before the cast, so that what is out of range saturates. Where the storage type's bound is no value
of the expressed type (i32 in f32), the clamp is to the next one inside.

Scales and zero points are constants that broadcast, so the four cases of the dialect's specification differ only in the
shape that is computed on: a ranked tensor as it is; a scalar as a tensor of rank 0; an unranked tensor flattened to one
dim (per-layer) or to three around the channel (per-axis); sub-channel with each blocked dim split in two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.builder import Builder
from tflq.dialects.quant.casts import Dcast, Qcast
from tflq.errors import UnsupportedError
from tflq.ir.core import Op, Value
from tflq.ir.types import (
    BareType,
    QuantizedType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    index,
    signless,
)

__all__ = ["lowered"]


_ROUNDINGS = {"half_away": "math.round", "half_even": "math.roundeven", "toward_zero": "math.trunc"}


def lowered(op: Qcast | Dcast, ops: list[Op], rounding: str) -> Value:
    """What a quant.qcast or quant.dcast results in; its ops go to the end of `ops`. `rounding`: where the op says none.

    UnsupportedError for an expressed type that numpy has not, and for half_up, which no op of MLIR's rounds.
    """
    b = Builder(ops)
    b.location = op.location
    return _quantize(b, op, rounding) if isinstance(op, Qcast) else _dequantize(b, op)


def _quantize(b: Builder, op: Qcast, rounding: str) -> Value:
    target = op.result.type
    element = _uniform(target)
    work = _flatten(b, op.input, element)
    scale, zero_point = _parameters(element, work)
    low, high = _bounds(element)
    scaled = _elementwise(b, "tfl.div", work.value, scale, fused_activation_function="NONE")
    stored = b.emit(_rounding(op, rounding), [scaled], scaled.type)
    if zero_point.any():
        stored = _elementwise(b, "tosa.add", stored, zero_point)
    bounded = _elementwise(b, "tosa.minimum", _elementwise(b, "tosa.maximum", stored, low), high)
    if element.storage.signed:
        whole = b.cast(bounded, element.storage)
    else:
        whole = b.emit("arith.fptoui", [bounded], bounded.type.with_element(signless(element.storage)))
    return b.scast(work.restore(whole, target.stored()), target)


def _rounding(op: Qcast, default: str) -> str:
    """The op of MLIR's math dialect that rounds as qcast says. UnsupportedError for half_up, which has none."""
    rounding = op.rounding or default
    if rounding not in _ROUNDINGS:
        raise UnsupportedError(f"lower-quant-ops has no op that rounds {rounding}; {', '.join(_ROUNDINGS)} have one")
    return _ROUNDINGS[rounding]


def _dequantize(b: Builder, op: Dcast) -> Value:
    source = op.input
    element = _uniform(source.type)
    work = _flatten(b, b.scast(source, source.type.stored()), element)
    scale, zero_point = _parameters(element, work)
    real = work.value.type.with_element(_expressed(element))
    signed = element.storage.signed
    value = b.cast(work.value, real.storage) if signed else b.emit("arith.uitofp", [work.value], real)
    if zero_point.any():
        value = _elementwise(b, "tosa.sub", value, zero_point)
    return work.restore(_elementwise(b, "tosa.mul", value, scale, shift=0), op.result.type)


def _elementwise(b: Builder, name: str, x: Value, parameter: np.ndarray, **attributes: int | str) -> Value:
    """An op on `x` and a constant that broadcasts to its shape."""
    element = x.type.element
    assert isinstance(element, ScalarType)
    return b.emit(name, [x, b.constant(parameter, element)], x.type, **attributes)


def _uniform(type: TensorType) -> QuantizedType:
    element = type.element
    assert isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType))
    return element


def _expressed(element: QuantizedType) -> ScalarType:
    if not element.expressed.numpy:
        raise UnsupportedError(f"lower-quant-ops cannot write constants of the expressed type {element.expressed}")
    return element.expressed


def _bounds(element: QuantizedType) -> tuple[np.ndarray, np.ndarray]:
    """The storage range in the expressed type, rounded inwards."""
    dtype = _expressed(element).dtype
    low, high = (np.asarray(bound).astype(dtype) for bound in (element.storage_min, element.storage_max))
    if float(low) < element.storage_min:
        low = np.nextafter(low, dtype.type(np.inf))
    if float(high) > element.storage_max:
        high = np.nextafter(high, dtype.type(-np.inf))
    return low, high


@dataclass(frozen=True)
class _Work:
    """The value to compute on, which of its dims is the channel, and the way back from there to a given type."""

    value: Value
    channel: int
    restore: Callable[[Value, TensorType], Value]


def _parameters(element: QuantizedType, work: _Work) -> tuple[np.ndarray, np.ndarray]:
    """Scales and zero points, shaped to broadcast against the value that is computed on."""
    if isinstance(element, UniformQuantizedType):
        return np.asarray(element.scale), np.asarray(element.zero_point)
    view: tuple[int, ...]
    if isinstance(element, UniformQuantizedPerAxisType):
        view = (-1, *([1] * (len(work.value.type.shape or ()) - 1 - work.channel)))
    else:
        blocks = enumerate(element.scales.shape)
        view = tuple(n for axis, count in blocks for n in ((count, 1) if axis in element.axes else (count,)))
    return element.scales.reshape(view), element.zero_points.reshape(view)


def _flatten(b: Builder, x: Value, element: QuantizedType) -> _Work:
    if isinstance(x.type, BareType):
        tensor = b.emit("tensor.from_elements", [x], TensorType((), x.type.element))
        return _Work(tensor, 0, lambda value, result: b.emit("tensor.extract", [value], result))
    if isinstance(element, UniformQuantizedSubChannelType):
        return _split_blocks(b, x, element)
    if x.type.shape is None:
        return _flatten_unranked(b, x, element)
    channel = element.axis if isinstance(element, UniformQuantizedPerAxisType) else 0
    return _Work(x, channel, lambda value, _: value)


def _split_blocks(b: Builder, x: Value, element: UniformQuantizedSubChannelType) -> _Work:
    if not x.type.is_static:
        raise UnsupportedError("lower-quant-ops needs a static shape for sub-channel quantization")
    sizes = dict(zip(element.axes, element.block_sizes, strict=True))
    dims: list[int] = []
    for axis, dim in enumerate(x.type.shape or ()):
        dims += [(dim or 0) // sizes[axis], sizes[axis]] if axis in sizes else [dim or 0]
    return _Work(b.reshape(x, dims), 0, lambda value, result: b.reshape(value, result.shape or ()))


def _flatten_unranked(b: Builder, x: Value, element: QuantizedType) -> _Work:
    shape = b.emit("shape.shape_of", [x], TensorType((None,), index))
    if isinstance(element, UniformQuantizedPerAxisType):
        before = _split_at(b, shape, element.axis)[0]
        after = _split_at(b, shape, element.axis + 1)[1]
        sizes = [_count(b, before), _size(b, element.scales.size), _count(b, after)]
        work = TensorType((None, element.scales.size, None), x.type.element)
    else:
        sizes = [_count(b, shape)]
        work = TensorType((None,), x.type.element)
    flat = b.emit("tensor.from_elements", sizes, TensorType((len(sizes),), index))
    flattened = b.emit("tensor.reshape", [x, flat], work)
    return _Work(flattened, 1, lambda value, result: b.emit("tensor.reshape", [value, shape], result))


def _count(b: Builder, dims: Value) -> Value:
    return b.emit("shape.num_elements", [dims], BareType.of(index))


def _split_at(b: Builder, shape: Value, axis: int) -> list[Value]:
    return b.op("shape.split_at", [shape, _size(b, axis)], [shape.type, shape.type]).results


def _size(b: Builder, number: int) -> Value:
    value = b.constant(number, index)
    value.type = BareType.of(index)
    return value
