"""Between real numbers and stored integers on a target that restricts plain builtins.

The model's inputs come by DEQUANTIZE and are whole numbers again after a product; results go by QUANTIZE. Both have the
parameters that the model states, proven on all values. Of uint8 they go by way of int8, which more runtimes have.

QUANTIZE of real numbers is not alike in runtimes: some round halves to even, some multiply by the inverse of the scale.
So it is computed from T(n), the least float32 number that the kernel rounds to n or more (`quantize_thresholds`):

    n' = floor(x / scale + 1/2)              one too many or too few at most, however it is rounded
    n  = n' + (x >= T(n' + 1)) - (x < T(n'))

Beyond int32 the kernel's conversion gives the smallest int32, to which the addition of a zero point below 0 wraps: one
more comparison, but where a cast states no rounding, which saturates. DEQUANTIZE of whole numbers is one product; FLOOR
stands between it and a sum, since a runtime might put the two together. Sources: kernels/internal/reference/quantize.h,
dequantize.h.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.tfl.arithmetic import Floor
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.formats.tflite.lowering.lowering import BYTES, KernelBuilder, Tflite, Twin, centred, integers_of
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i8, i32, parameters, ui8
from tflq.numerics.fixed_point import Rounding
from tflq.numerics.float_basics import in_any_order, quantize_thresholds

_LARGEST: Final = np.finfo(np.float32).max


def scast(op: Scast, k: Tflite) -> Value | None:
    """Stored integers of a tensor with parameters, and the tensor of stored integers."""
    quantized = op.input.type if op.input.type.quantized else op.result.type
    element, x = quantized.element, k.value(op.input)
    if not isinstance(element, UniformQuantizedType) or element.storage not in BYTES:
        return None
    if op.input.type.quantized and x in k.twins:
        return integers_of(k, k.twins[x], element.storage)
    scale, zero = (v.reshape(()) for v in parameters(quantized))
    if op.input.type.quantized:
        return _read(op, k, np.float32(scale), int(zero))
    return _written(op, k, x, element)


def quantize(op: Qcast, k: Tflite) -> Value | None:
    """The stored integers of real numbers, as a twin; with parameters where more than casts reads them."""
    element = op.result.type.element
    if not isinstance(element, UniformQuantizedType) or element.storage not in BYTES or op.sum_rounding is not None:
        return None
    twin = levels(k, k.value(op.input), element, op.rounding)
    if twin is None:
        return None
    stored = integers_of(k, twin, element.storage)
    casts = all(isinstance(reader, (Scast, Dcast)) for reader in k.readers(op.result))
    return stored if casts and k.is_inner(op.result) else _written(op, k, stored, element)


def dequantize(op: Dcast, k: Tflite) -> Value | None:
    """One product of whole numbers; DEQUANTIZE of an argument, and of what a kernel gives."""
    scale, zero = parameters(op.input.type)
    x, producer = k.value(op.input), op.input.producer
    if isinstance(producer, Scast):
        x = k.value(producer.input)
    if x.type.storage not in BYTES or scale.size > 1 or x.is_constant:
        return None
    if x.type.quantized:
        return k.emit(Dequantize, [x], f32)
    number = np.float32(scale.reshape(()))
    if not 0 < number < _LARGEST / 512:
        return None
    return k.mul(k.emit(Floor, [centred(k, x, int(zero.reshape(())))]), number)


def _read(op: Scast, k: Tflite, scale: np.float32, zero: int) -> Value | None:
    """floor(x / scale + 1/2) of the real numbers x that DEQUANTIZE gives, as a twin."""
    storage = op.result.type.storage
    numbers = np.arange(storage.minimum, storage.maximum + 1) - zero
    with np.errstate(all="ignore"):
        inverse = np.float32(1 / np.float64(scale))
        reals = numbers.astype(np.float32) * scale
        sums = in_any_order(reals, inverse, np.float32(0.5))
    if not all((np.abs(v - 0.5 - numbers) < 1 / 16).all() for v in sums):
        return None
    real = k.emit(Dequantize, [k.value(op.input)], f32)
    whole = k.add(k.mul(real, inverse), 0.5)
    return integers_of(k, Twin(k.emit(Floor, [whole]), zero), storage)


def _written(op: Scast | Qcast, k: Tflite, x: Value, element: UniformQuantizedType) -> Value | None:
    """QUANTIZE of the numbers times the scale."""
    storage, scale, zero = element.storage, np.float32(element.scale), element.zero_point
    numbers = np.arange(storage.minimum, storage.maximum + 1) - zero
    with np.errstate(all="ignore"):
        reals = numbers.astype(np.float32) * scale
    edges = quantize_thresholds(scale, np.append(numbers, numbers[-1] + 1))
    if not ((edges[:-1] < reals) & (reals < edges[1:])).all():
        return None
    real = k.mul(centred(k, x, zero), scale)
    type = op.result.type
    if storage is ui8:
        signed = UniformQuantizedType.of(i8, float(scale), zero - 128)
        real = k.emit(Quantize, [real], TensorType(type.shape, signed))
    if op.result.name:
        k.ops.append(Op(Quantize.op_name, [real], [op.result], {}, op.location))
        return op.result
    return k.emit(Quantize, [real], type)


def levels(k: KernelBuilder, x: Value, element: UniformQuantizedType, rounding: Rounding | None) -> Twin | None:
    """The stored integers of float32 numbers, counted from the lowest; None where thresholds are not finite. Without a
    rounding they are rounded half to even, and saturated."""
    scale, zero = np.float32(element.scale), element.zero_point
    numbers = np.arange(element.storage_min, element.storage_max + 1) - zero
    with np.errstate(all="ignore"):
        inverse = np.float32(1 / np.float64(scale))
        low, high = (np.float32(number) * scale for number in (numbers[0], numbers[-1]))
    if x.type.storage is not f32 or not np.finfo(np.float32).tiny < inverse < _LARGEST:
        return None
    edges = quantize_thresholds(scale, np.append(numbers, numbers[-1] + 1), rounding or "half_even")
    if not np.isfinite(edges).all() or not edges[0] < low < high < edges[-1]:
        return None
    last = numbers.size - 1
    limited = k.minimum(k.maximum(x, low), high)
    near = k.emit(Floor, [k.add(k.mul(limited, inverse), np.float32(0.5 - numbers[0]))])
    index = k.minimum(k.maximum(k.cast(near, i32), 0), last)
    below, above = (k.gather(k.constant(side, f32), index) for side in (edges[:-1], edges[1:]))
    down, up = k.cast(k.greater(below, limited), f32), k.cast(k.greater_equal(limited, above), f32)
    level = k.sub(k.add(k.cast(index, f32), up), down)
    if rounding is None:
        return Twin(level, element.storage_min)
    limit = quantize_thresholds(scale, float(1 << 31), rounding).reshape(())
    return Twin(_within_int32(k, x, level, last, zero, limit), element.storage_min)


def _within_int32(k: KernelBuilder, x: Value, level: Value, last: int, zero: int, limit: np.ndarray) -> Value:
    """The level; from the limit on the lowest one, or the highest where the sum with the zero point wraps. A number
    that is none compares as one from there on."""
    if not np.isfinite(limit):
        return level
    if zero >= 0:
        return k.mul(level, k.cast(k.greater(limit, x), f32))
    inside = k.cast(k.greater(x, -limit), f32)
    return k.sub(float(last), k.mul(k.sub(float(last), level), inside))
