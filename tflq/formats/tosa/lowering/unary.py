"""Operators of one operand: absolute values, signs, roots, functions of floats, activations, normalizations.

    sqrt           1 / RSQRT, right for 0 and infinity
    round          half to even, from the distance to the floor: how CAST rounds ties is up to the device
    elu            exp(x) - 1 below 0, an absolute error of 2^-24 where it vanishes
    gelu           x / 2 (1 + erf(x / sqrt 2)), or with tanh; an absolute error of |x| 2^-24 where the bracket vanishes
    softmax        exp(beta (x - max)) / sum
    log_softmax    (x - max) - log(sum of exp(x - max))
    l2             x / max(sqrt(sum of squares), 1e-6), over the last dim
    local response x (bias + alpha * sum of the squares of channels c - radius .. c + radius - 1)^-beta; the sums
                   are one MATMUL by a band of ones

CLAMP is on int8 (int16 by the extension) and floats. Sources: kernels/elementwise.cc, neg.cc, sign.cc, exp.cc,
floor.cc, ceil.cc, round.h, zeros_like.cc, activations.cc, gelu.h, hard_swish.h, elu.h, l2norm.cc,
internal/reference/softmax.h, log_softmax.h, l2normalization.h, reference_ops.h.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.declare import Operator
from tflq.dialects.tfl import activation, arithmetic
from tflq.dialects.tosa import elementwise as tosa
from tflq.dialects.tosa.convolution import MatMul
from tflq.formats.tosa.lowering.arithmetic import positive_power
from tflq.formats.tosa.lowering.context import Tosa, dims_of, lowered_storage, lowering, narrow
from tflq.formats.tosa.lowering.floats import float_activation, float_sign, floating, need_float, reciprocal, scalar
from tflq.formats.tosa.lowering.rescale import limited, plain, stored
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32, i1, i8, i16, i32


@lowering(arithmetic.Abs)
def absolute(op: arithmetic.Abs, t: Tosa) -> Value:
    need_float(t, op, op.input)
    return stored(t.emit(tosa.Abs, [plain(op.input, t)]), op.result, t)


@lowering(arithmetic.Neg)
def negate(op: arithmetic.Neg, t: Tosa) -> Value:
    x = plain(op.input, t)
    if x.type.storage.is_float:
        need_float(t, op)
        return t.emit(tosa.Negate, [x], input1_zp=0, output_zp=0)
    return stored(t.sub(t.constant(np.asarray(0)), x), op.result, t)


@lowering(arithmetic.Sign)
def sign(op: arithmetic.Sign, t: Tosa) -> Value:
    x = plain(op.input, t)
    if x.type.storage.is_float:
        return float_sign(t, x)
    return stored(limited(x, t, -1, 1), op.result, t)


_SAME: Final[dict[type[Operator], type[Operator]]] = {
    activation.Logistic: tosa.Sigmoid,
    arithmetic.Ceil: tosa.Ceil,
    arithmetic.Cos: tosa.Cos,
    arithmetic.Exp: tosa.Exp,
    arithmetic.Floor: tosa.Floor,
    arithmetic.Log: tosa.Log,
    arithmetic.Rsqrt: tosa.Rsqrt,
    arithmetic.Sin: tosa.Sin,
    activation.Tanh: tosa.Tanh,
}
"""TOSA's operator for each of TFLite's that it has."""

_TOSA: Final = (*_SAME.values(), tosa.Erf, tosa.Pow, tosa.Reciprocal)
"""The operators of TOSA that text can have among operators of TFLite."""


@floating(*_SAME, *_TOSA)
def same(op: Operator, t: Tosa, *operands: Value) -> Value:
    return t.emit(_SAME.get(type(op), type(op)), operands)


@floating(arithmetic.Square)
def square(op: Op, t: Tosa, x: Value) -> Value:
    return t.mul(x, x)


@floating(arithmetic.Sqrt)
def sqrt(op: Op, t: Tosa, x: Value) -> Value:
    return reciprocal(t, t.emit(tosa.Rsqrt, [x]))


@floating(arithmetic.Round)
def round_half_to_even(op: Op, t: Tosa, x: Value) -> Value:
    whole = t.emit(tosa.Floor, [x])
    above = t.sub(x, whole)
    zero, half, one, two = (scalar(t, v, x) for v in (0, 0.5, 1, 2))
    odd = t.sub(whole, t.mul(t.emit(tosa.Floor, [t.mul(whole, half)]), two))
    nearest = t.select(t.greater(above, half), one, zero)
    return t.add(whole, t.select(t.equal(above, half), odd, nearest))


@lowering(arithmetic.ZerosLike)
def zeros_like(op: arithmetic.ZerosLike, t: Tosa) -> Value:
    """A constant; where a dim is open, a SELECT that always takes zeros, in the operand's shape."""
    x = op.input
    shape, storage, zero = dims_of(x), lowered_storage(t, op.result), t.zero_point(op.result)
    if None not in shape:
        return t.constant(sized.full([d or 0 for d in shape], zero), storage)
    one = (1,) * len(shape)
    never = t.constant(np.zeros(one), i1)
    return t.select(never, narrow(x, t), t.constant(np.full(one, zero), storage))


# Activations, CLAMP and softmax.


@lowering(tosa.Clamp)
def clamp(op: tosa.Clamp, t: Tosa) -> Value:
    operand, low, high = op.input, op.min_val, op.max_val
    if operand.type.storage.is_float:
        return t.clamp(t.value(operand), low, high)
    x, offset = narrow(operand, t), t.offset(operand)
    if x.type.storage == i8 or (x.type.storage == i16 and t.target.has("int16")):
        return t.clamp(x, low - offset, high - offset)
    return t.cast(limited(t.cast(x, i32), t, low, high), x.type.storage)


@floating(activation.Relu, activation.Relu6, activation.ReluN1To1)
def relu(op: activation.Relu | activation.Relu6 | activation.ReluN1To1, t: Tosa, x: Value) -> Value:
    return float_activation(t, x, op.short_name.upper())


@floating(activation.Relu0To1)
def relu_0_to_1(op: activation.Relu0To1, t: Tosa, x: Value) -> Value:
    return t.clamp(x, 0, 1)


@floating(activation.LeakyRelu)
def leaky_relu(op: activation.LeakyRelu, t: Tosa, x: Value) -> Value:
    scaled = t.mul(x, scalar(t, op.alpha, x))
    return t.select(t.greater(x, scalar(t, 0, x)), x, scaled)


@floating(activation.Prelu)
def prelu(op: activation.Prelu, t: Tosa, x: Value, alpha: Value) -> Value:
    return t.select(t.greater_equal(x, scalar(t, 0, x)), x, t.mul(x, alpha))


@floating(activation.Elu)
def elu(op: activation.Elu, t: Tosa, x: Value) -> Value:
    below = t.sub(t.emit(tosa.Exp, [x]), scalar(t, 1, x))
    return t.select(t.greater(scalar(t, 0, x), x), below, x)


@floating(activation.HardSwish)
def hard_swish(op: activation.HardSwish, t: Tosa, x: Value) -> Value:
    gate = t.clamp(t.add(x, scalar(t, 3, x)), 0, 6)
    return t.mul(t.mul(x, gate), scalar(t, 1 / 6, x))


@floating(activation.Gelu)
def gelu(op: activation.Gelu, t: Tosa, x: Value) -> Value:
    if op.approximate:
        cube = t.mul(t.mul(x, x), x)
        inner = t.add(x, t.mul(cube, scalar(t, 0.044715, x)))
        gate = t.emit(tosa.Tanh, [t.mul(inner, scalar(t, np.sqrt(2 / np.pi), x))])
    else:
        gate = t.emit(tosa.Erf, [t.mul(x, scalar(t, np.sqrt(0.5), x))])
    return t.mul(t.mul(x, scalar(t, 0.5, x)), t.add(gate, scalar(t, 1, x)))


@floating(activation.Softmax)
def softmax(op: activation.Softmax, t: Tosa, x: Value) -> Value:
    centred, beta = _centred(t, x), op.beta
    if beta != 1:
        centred = t.mul(centred, scalar(t, beta, x))
    powers = t.emit(tosa.Exp, [centred])
    return t.mul(powers, reciprocal(t, t.reduce("sum", powers, last_dim(x))))


@floating(activation.LogSoftmax)
def log_softmax(op: activation.LogSoftmax, t: Tosa, x: Value) -> Value:
    centred = _centred(t, x)
    return t.sub(centred, t.emit(tosa.Log, [t.reduce("sum", t.emit(tosa.Exp, [centred]), last_dim(x))]))


def last_dim(x: Value) -> int:
    return len(x.type.dims) - 1


def _centred(t: Tosa, x: Value) -> Value:
    """x less the greatest of its row."""
    if not x.type.shape:
        raise Refused(f"{x.type} has no last dim")
    return t.sub(x, t.reduce("max", x, last_dim(x)))


# L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION.

_LEAST_NORM = 1e-6


@floating(activation.L2Normalization)
def l2_normalization(op: activation.L2Normalization, t: Tosa, x: Value) -> Value:
    if not x.type.shape:
        raise Refused(f"{x.type} has no last dim")
    inverse = t.emit(tosa.Rsqrt, [t.reduce("sum", t.mul(x, x), last_dim(x))])
    return t.mul(x, t.minimum(inverse, scalar(t, 1 / _LEAST_NORM, x)))


@floating(activation.LocalResponseNormalization)
def local_response_normalization(op: activation.LocalResponseNormalization, t: Tosa, x: Value) -> Value:
    shape = x.type.shape
    if not shape or None in shape:
        raise Refused(f"LOCAL_RESPONSE_NORMALIZATION of a shape that is not known, {x.type}")
    depth, radius = shape[-1] or 0, op.radius
    sized.need_few(depth * depth)
    distance = np.arange(depth)[:, None] - np.arange(depth)  # of the channel that is added, from the result's
    band = t.constant(((distance >= -radius) & (distance < radius))[None], f32)
    rows = t.reshape(t.mul(x, x), (1, int(np.prod([d or 0 for d in shape[:-1]])), depth))
    sums = t.emit(MatMul, [rows, band], f32, a_zp=0, b_zp=0)
    base = t.add(t.mul(sums, scalar(t, op.alpha, sums)), scalar(t, op.bias, sums))
    factor = positive_power(t, base, scalar(t, -op.beta, base))
    return t.mul(x, t.reshape(factor, shape))
