"""Lines in float32 (`tflq.numerics.float_requantize`, `tflq.numerics.float_falling`) as builtins, operation by
operation. Each takes whole numbers in float32 and gives whole numbers.

    MUL, [RELU_N1_TO_1, MUL, ADD,] ADD with RELU6 or RELU_N1_TO_1, MUL, FLOOR
    SUB with RELU, MUL, ADD with RELU, FLOOR
    SUB with RELU, SUB with RELU, MUL, FLOOR
    SUB, MAXIMUM, MINIMUM; MUL, FLOOR; MUL, SUB; MUL, MUL, ADD, [MUL, ADD,] ADD, FLOOR, ADD

In the last two, no constant is added to a product by one, so that none can be put before it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from tflq.dialects.tfl.arithmetic import Floor, Relu, ReluN1To1
from tflq.dialects.tfl.convolution import DepthwiseConv2D
from tflq.ir.core import Value
from tflq.ir.types import f32
from tflq.numerics.float_falling import DistanceRequantization, FallingRequantization, SplitRequantization
from tflq.numerics.float_requantize import N1_TO_1, FloatRequantization
from tflq.select.im2col import Geometry
from tflq.select.lowering import KernelBuilder
from tflq.select.matmul import conv_options

_IMAGE: Final = 4
"""Dims of an image: batch, rows, columns, channels."""
_SHORT: Final = 128
"""Channels up to which a constant for each costs a kernel more than a number for all."""
_POINT: Final = Geometry((1, 1), (0, 0, 0, 0), (1, 1), (1, 1))

Line: TypeAlias = FloatRequantization | FallingRequantization | DistanceRequantization | SplitRequantization


def falls(fit: Line) -> bool:
    """Whether a line wants numbers with the other sign, and 0 where they are negative then."""
    return isinstance(fit, (FallingRequantization, DistanceRequantization))


def added(fit: Line) -> np.ndarray:
    """The number to add to those that a line takes, of the sign that it wants, float32 [1 or C]."""
    if isinstance(fit, (FallingRequantization, DistanceRequantization)):
        return fit.h
    if isinstance(fit, SplitRequantization):
        return -fit.h
    return np.zeros(1, np.float32) if fit.a is None else -fit.a


def on_whole(k: KernelBuilder, x: Value, fit: Line) -> Value:
    """`fit` of whole numbers in float32."""
    if falls(fit):
        return stepped(k, k.sub(k.row(added(fit), f32), x, "RELU"), fit)
    number = added(fit)
    return stepped(k, k.add(x, k.row(number, f32)) if number.any() else x, fit)


def stepped(k: KernelBuilder, x: Value, fit: Line) -> Value:
    """`fit` of whole numbers in float32 that have what it adds (`added`), and the sign that it wants (`falls`)."""
    if isinstance(fit, SplitRequantization):
        return _split(k, x, fit)
    if isinstance(fit, DistanceRequantization):
        total = k.mul(k.sub(k.row(fit.q, f32), x, "RELU"), k.row(fit.m, f32))
    elif isinstance(fit, FallingRequantization):
        total = k.add(k.mul(x, k.row(-fit.m, f32)), k.row(fit.c, f32), "RELU")
    else:
        total = _clamped(k, x, fit)
    return k.emit(Floor, [total])


def _clamped(k: KernelBuilder, x: Value, fit: FloatRequantization) -> Value:
    total, rest = k.mul(x, k.row(fit.m, f32)), k.row(fit.c, f32)
    if fit.e is not None:
        rest = _of_sign(k, _sign(k, x, fit.a), fit.e, fit.c)
    total = k.add(total, rest, fit.clamp.activation)
    return k.mul(total, k.row(fit.gain, f32))


def _of_sign(k: KernelBuilder, sign: Value, e: np.ndarray, c: np.ndarray) -> Value:
    """c + e, c or c - e. The product by a sign is exact, so a kernel may round once or twice: where an image has few
    channels, DEPTHWISE_CONV_2D is MUL and ADD in one."""
    channels = (sign.type.shape or (None,))[-1] or 0
    if sign.type.rank != _IMAGE or not 1 < e.size == c.size == channels <= _SHORT:
        return k.add(k.mul(sign, k.row(e, f32)), k.row(c, f32))
    constants = k.constant(e.reshape(1, 1, 1, -1), f32), k.constant(c, f32)
    options = conv_options(_POINT, "VALID") | {"depth_multiplier": 1}
    return k.emit(DepthwiseConv2D, [sign, *constants], sign.type, **options)


def _split(k: KernelBuilder, x: Value, fit: SplitRequantization) -> Value:
    u = k.minimum(k.maximum(x, k.row(fit.low, f32)), k.row(fit.high, f32))
    n = k.emit(Floor, [k.mul(u, k.row(fit.p, f32))])
    r = k.sub(u, k.mul(n, k.row(fit.step, f32)))
    rest = k.add(k.mul(r, k.row(fit.m, f32)), k.mul(n, k.row(fit.d, f32)))
    if fit.e is not None:
        positive = k.minimum(k.emit(Relu, [n]), k.row(1, f32))
        rest = k.add(rest, k.mul(positive, k.row(fit.e, f32)))
    return k.add(n, k.emit(Floor, [k.add(rest, k.row(fit.c, f32))]))


def _sign(k: KernelBuilder, x: Value, a: np.ndarray | None) -> Value:
    """The sign of x + a, whole numbers."""
    if a is not None and a.any():
        return k.add(x, k.row(a, f32), N1_TO_1.activation)
    return k.emit(ReluN1To1, [x])
