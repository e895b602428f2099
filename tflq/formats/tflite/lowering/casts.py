"""Casts between types. quant.dcast and quant.qcast are float builtins with the numbers of the reference kernels:

    dequantize   scale * (q - zero_point), one rounding to float32: q - zero_point is exact in float32 for up to 16
                 bits; infinite where that is beyond float32, which MUL clamps
    quantize     clamp(int32(round_half_away(x / scale)) + zero_point), the division in float32

Rounding half away is truncation of y + sign(y) * p, with p the float32 below 1/2; an attribute may say another
rounding (`_to_truncate`). Beyond int32, and for NaN, the kernel's conversion gives the smallest int32 and the
addition wraps, while CAST saturates: it gives the largest for NaN and from 2^31 up. Adding the zero point, wrapping,
makes the same of both if it is not 0; if it is, 1 is added and taken off the bounds. The clamp is in float32, where
what lies beyond 2^24 is rounded and does not matter. Sources: kernels/internal/reference/dequantize.h, quantize.h.
"""

from __future__ import annotations

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.builder import float_difference, saturated_sum
from tflq.dialects.declare import Operator
from tflq.dialects.quant import Dcast, Qcast, Scast, Truncate
from tflq.dialects.tfl.activation import Relu, Relu6
from tflq.dialects.tfl.arithmetic import Abs, Sign
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.comparison import Greater, Less, SelectV2
from tflq.dialects.tosa import movement as tosa
from tflq.formats.tflite.lowering.lowering import Tflite, as_int32, lowering
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, f32, i1, i32, parameters

# Floats limited and rounded. ROUND is not among the reference kernels: a float sum rounds half to even where a unit in
# the last place is 1, (|x| + 2^23) - 2^23.


def rounded(k: Tflite, x: Value) -> Value:
    """x, a float32, to the nearest whole number, half to even; what is beyond 2^23 is one."""
    unit, magnitude = 1 << 23, k.emit(Abs, [x])
    inside = k.minimum(magnitude, unit)
    whole = k.add(k.sub(k.add(inside, unit), unit), k.sub(magnitude, inside))
    return k.mul(whole, k.emit(Sign, [x]))


def rounded_small(k: Tflite, x: Value) -> Value:
    """x, below 2^22 in magnitude, to the nearest whole number, half to even."""
    return k.sub(k.add(x, 3 << 22), 3 << 22)


def rectifier(low: float, high: float, storage: ScalarType) -> str | None:
    """The activation that limits floats to [low, high]: RELU, RELU6, or none."""
    if low != 0:
        return None
    return {6.0: "RELU6", float(np.finfo(storage.dtype).max): "RELU", np.inf: "RELU"}.get(high)


def limited(k: Tflite, x: Value, low: float, high: float) -> Value:
    """x within [low, high], floats: RELU or RELU6 if that is it, else MAXIMUM and MINIMUM where they can bite."""
    name = rectifier(low, high, x.type.storage)
    if name is not None:
        return k.emit(Relu6 if name == "RELU6" else Relu, [x])
    largest = float(np.finfo(x.type.storage.dtype).max)
    if low > -largest:
        x = k.maximum(x, low)
    if high < largest:
        x = k.minimum(x, high)
    return x


@lowering(Dcast)
def dequantize(op: Dcast, k: Tflite) -> Value:
    scale, zero = parameters(op.input.type)
    x = k.value(op.input)
    if x.is_constant and x.type.quantized:
        x = _plain(x)
    if x.type.storage.bits <= 16:
        x = k.emit(Cast, [x], x.type.with_element(f32))
        zero = zero.astype(np.float32)
        centred = k.sub(x, zero) if zero.any() else x
    elif zero.any() and x.type.storage is not i32:
        raise Refused(f"no kernel takes the zero points of {x.type.storage}", "store it in i32")
    else:
        centred = float_difference(k, x, k.right_shift(x, 16), zero) if zero.any() else k.cast(x, f32)
    return _infinite_beyond(k, centred, scale, k.mul(centred, scale))


def _infinite_beyond(k: Tflite, centred: Value, scale: np.ndarray, product: Value) -> Value:
    """The product, infinite where the steps, within 2^33, times the scale are more than float32 holds."""
    infinity = np.float32(np.inf)
    largest = np.finfo(np.float32).max
    if (scale <= largest / np.float32(2.0**33)).all():
        return product
    with np.errstate(all="ignore"):
        limit = (largest / scale).astype(np.float32)
        limit = np.where(np.isfinite(limit * scale), limit, np.nextafter(limit, np.float32(0)))
        limit = np.where(np.isfinite(np.nextafter(limit, infinity) * scale), np.nextafter(limit, infinity), limit)
    limit = np.where(np.isfinite(scale), limit, np.float32(0))
    comparisons: tuple[tuple[type[Operator], np.ndarray, np.float32], ...]
    comparisons = (Greater, limit, infinity), (Less, -limit, -infinity)
    for kind, bound, end in comparisons:
        beyond = k.emit(kind, k.alike(centred, bound), i1)
        product = k.emit(SelectV2, [beyond, *k.alike(end, product)])
    return product


def _plain(x: Value) -> Value:
    """A constant's integers without its parameters; packed ones unpacked, since CAST reads bytes at least."""
    if x.type.storage.bits < 8:
        return constant(x.array, name=x.name)
    return Value(x.type.stripped(), x.name, buffer=x.buffer)


def _to_truncate(k: Tflite, y: Value, rounding: str) -> Value:
    """A float whose integer part is y, rounded.

    half_up and half_even: the integer part, and 1 or -1 where what is left, which is exact, is a half and more (`half`)
    or more than a half (`more`).
    """
    below = np.nextafter(np.float32(1), np.float32(0))
    if rounding == "toward_zero":
        return y
    if rounding == "half_away":
        return k.add(y, k.mul(k.emit(Sign, [y]), below / 2))
    whole = k.cast(y, i32)
    real = k.cast(whole, f32)
    twice = k.mul(k.sub(y, real), np.float32(2))
    half, more = k.cast(twice, i32), k.cast(k.mul(twice, below), i32)
    if rounding == "half_up":
        step = k.sub(k.add(half, 0, "RELU"), k.sub(0, more, "RELU"))
    else:
        odd = k.sub(whole, k.mul(k.right_shift(whole, 1), 2))
        step = k.add(more, k.mul(k.sub(half, more), odd))
    return k.add(real, k.cast(step, f32))


@lowering(Qcast)
def quantize(op: Qcast, k: Tflite) -> Value:
    """The stored integers; with parameters only where an operator that is kept, or the model's caller, reads them."""
    scale, zero = parameters(op.result.type)
    x = k.value(op.input)
    element, storage = op.result.type.element, op.result.type.storage
    if op.rounding is None and storage.bits <= 16 and (scale == 1).all() and k.sums == "separate":
        y = rounded_small(k, x)  # numbers beyond 2^22 stay beyond the ends
    else:
        y = _to_truncate(k, k.div(x, scale), op.rounding or "half_even")
    typed = bool(op.result.name) or any(not isinstance(r, (Scast, Dcast)) for r in k.readers(op.result))
    result = op.result.type if typed else op.result.type.stripped()
    low, high = element.storage_min, element.storage_max  # type: ignore[union-attr]
    if storage.bits >= 32:
        if storage is not i32:
            raise Refused(f"no kernel quantizes to {storage}", "store it in i32")
        return k.emit(Cast, [saturated_sum(k, y, zero, low, high)], result)
    whole = k.cast(y, i32)
    shift = np.where(zero == 0, 1, zero) if op.rounding else np.zeros_like(zero)  # without a rounding, it saturates
    shifted = k.cast(k.add(whole, shift) if op.rounding else whole, f32)
    top = (high + shift - zero).astype(np.float32)
    over = k.sub(top[()] if (top == high).all() else top, shifted, "RELU")
    above_low = k.cast(k.sub(high - low, over, "RELU"), i32)
    stored = k.add(above_low, low) if low else above_low
    return k.emit(Cast, [k.cast(stored, f32) if storage.bits < 8 else stored], result)


@lowering(Scast)
def scast(op: Scast, k: Tflite) -> Value:
    """A copy of the integers in a tensor with or without parameters; `edges` removes copies that are not needed."""
    if op.result.name:  # a function's result: the tensor that carries its name and parameters
        k.ops.append(Op(Cast.op_name, [k.value(op.input)], [op.result], {}, op.location))
        return op.result
    return k.copy(k.value(op.input), op.result.type)


@lowering(tosa.Cast)
def cast(op: tosa.Cast, k: Tflite) -> Value:
    """CAST, of a rounded float; it saturates at the ends of i32, a narrower type is clamped first."""
    x, to = k.value(op.input), op.result.type.storage
    twin = k.twins.get(x)
    if twin is not None and to == i32:
        return as_int32(k, twin)
    if not (x.type.storage.is_float and to.is_integer):
        return k.cast(x, to)
    if to.bits >= 32:
        return k.cast(rounded(k, x), to)
    return k.cast(k.cast(rounded_small(k, limited(k, x, to.minimum, to.maximum)), i32), to)


@lowering(Truncate)
def truncate(op: Truncate, k: Tflite) -> Value:
    return k.cast(k.value(op.input), op.result.type.storage)
