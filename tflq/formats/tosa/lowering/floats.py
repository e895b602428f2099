"""Float arithmetic that TOSA lacks (quotients, remainders, rounding, fused activations), and float operands.

TOSA's only division is RECIPROCAL. A quotient is a * (1 / b), 1.5 units in the last place at most from the real one.
FLOOR_DIV and FLOOR_MOD must be right where a / b is near a whole number, so they look at the remainder a - q b,
computed without rounding though TOSA has no fused multiply-add: q b is the sum of two float32 numbers (Dekker 1971), on
Veltkamp's split of a number in two of 12 bits. Kernels: div.cc, floor_div.cc, floor_mod.cc.

    @floating(Exp)
    def exp(op: Op, t: Tosa, x: Value) -> Value: ...

is how a float operator of TFLite becomes float operators of TOSA. The operands come as float32: half precision is
widened, and the result narrowed. Integer tensors are refused, as is any float operator, by its name, on a target
without the profile pro_fp.
"""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import TypeAlias

import numpy as np

from tflq.analysis.hybrid import BLOCKS, BLOCKS_REMEDY, REMEDY, as_read, rounding
from tflq.base.errors import Refused
from tflq.dialects.declare import Operator
from tflq.dialects.tfl.convolution import FullyConnected
from tflq.dialects.tosa.elementwise import Abs, Floor, Reciprocal, Tanh
from tflq.formats.tosa.lowering.context import Tosa, lowering
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import UniformQuantizedSubChannelType, f16, f32, i4

_SPLIT = 4097
_BELOW_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))
_LIMIT = 2.0**33
_ACTIVATIONS = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def scalar(t: Tosa, number: float, like: Value) -> Value:
    """A float constant that broadcasts to a tensor, of its type and rank."""
    return t.constant(np.full((1,) * len(like.type.dims), number), like.type.storage)


def reciprocal(t: Tosa, x: Value) -> Value:
    """1 / x; of a constant, a constant."""
    if not (x.is_constant and x.type.storage.numpy):
        return t.emit(Reciprocal, [x])
    with np.errstate(divide="ignore", over="ignore"):
        return t.constant(x.type.storage.dtype.type(1) / x.array, x.type.storage)


def remainder(t: Tosa, a: Value, q: Value, b: Value) -> Value:
    """a - q b, rounded once: q b = p + e without error, and a - p has none if q is the quotient, give or take one."""
    p = t.mul(q, b)
    q_high, q_low = _halves(t, q)
    b_high, b_low = _halves(t, b)
    e = t.sub(t.mul(q_high, b_high), p)
    e = t.add(t.add(e, t.mul(q_high, b_low)), t.mul(q_low, b_high))
    e = t.add(e, t.mul(q_low, b_low))
    return t.sub(t.sub(a, p), e)


def _halves(t: Tosa, x: Value) -> tuple[Value, Value]:
    """x as the sum of two numbers of 12 bits at most, whose products are exact."""
    if x.is_constant:
        with np.errstate(over="ignore", invalid="ignore"):
            high = (x.array * np.float32(_SPLIT)) - (x.array * np.float32(_SPLIT) - x.array)
            return t.constant(high, f32), t.constant(x.array - high, f32)
    scaled = t.mul(x, scalar(t, _SPLIT, x))
    upper = t.sub(scaled, t.sub(scaled, x))
    return upper, t.sub(x, upper)


def ratio(t: Tosa, x: Value, scale: np.ndarray) -> Value:
    """x / scale to 2^-22, relatively, for positive float32 scales, however small or large."""
    normal = np.where(scale < 2.0**-125, 2.0**64, np.where(scale > 2.0**125, 2.0**-64, 1.0))
    if (normal != 1).any():
        x = t.mul(x, t.constant(normal, f32))
    return t.mul(x, t.constant(1 / (scale.astype(np.float64) * normal), f32))


def close_quotient(t: Tosa, x: Value, scale: np.ndarray) -> Value:
    """x / scale for positive float32 scales: float32's quotient, but where it is within 2^-24 units of a tie. Of one
    beyond int32 only that is right."""
    q = t.clamp(ratio(t, x, scale), -_LIMIT, _LIMIT)
    rest = remainder(t, x, q, t.constant(scale, f32))
    return t.add(q, ratio(t, rest, scale))


def rounded_half_away(t: Tosa, x: Value) -> Value:
    """x rounded to nearest, half away from zero: the floor of |x| and the number below 1/2, with x's sign."""
    size = t.emit(Floor, [t.add(t.emit(Abs, [x]), scalar(t, _BELOW_HALF, x))])
    zero = scalar(t, 0, x)
    return t.select(t.greater(zero, x), t.sub(zero, size), size)


def need_float(t: Tosa, operator: Op | str, x: Value | None = None) -> None:
    """Refused, naming the operator, unless the target computes in float. With x, nothing is needed if that is not
    float."""
    if x is not None and not x.type.storage.is_float:
        return
    t.need("pro_fp", f"{operator if isinstance(operator, str) else operator.short_name.upper()} in float")


def fused_activation(t: Tosa, x: Value, name: str) -> Value:
    """A fused activation. Kernels without state clamp, and ignore every other activation. Source:
    kernels/kernel_util.h, CalculateActivationRange."""
    return float_activation(t, x, name) if name in _ACTIVATIONS else x


def float_activation(t: Tosa, x: Value, name: str) -> Value:
    """An activation, also that of a recurrent operator."""
    if name == "NONE":
        return x
    need_float(t, name)
    if name == "TANH":
        return t.emit(Tanh, [x])
    if name not in _ACTIVATIONS:
        raise Refused(f"the activation {name} has no form in float")
    return t.clamp(x, *_ACTIVATIONS[name])


def float_div(t: Tosa, a: Value, b: Value) -> Value:
    """a / b, as a * (1 / b); the reciprocal of a constant is a constant."""
    need_float(t, "DIV")
    return t.mul(a, reciprocal(t, b))


def float_sign(t: Tosa, x: Value) -> Value:
    """1, −1, or x itself where it is 0 or not a number."""
    need_float(t, "SIGN")
    zero = scalar(t, 0, x)
    negative = t.select(t.greater(zero, x), scalar(t, -1, x), x)
    return t.select(t.greater(x, zero), scalar(t, 1, x), negative)


def float_floor_div(t: Tosa, a: Value, b: Value) -> Value:
    """⌊a / b⌋: exact while it is below 2^22 in magnitude, and a and b below 2^100."""
    need_float(t, "FLOOR_DIV")
    a, b, _ = _positive_divisor(t, a, b)
    q, rest = _nearest_quotient(t, a, b)
    return t.sub(q, t.select(t.greater(scalar(t, 0, q), rest), scalar(t, 1, q), scalar(t, 0, q)))


def float_floor_mod(t: Tosa, a: Value, b: Value) -> Value:
    """a - ⌊a / b⌋ b, rounded once, while ⌊a / b⌋ is below 2^22 in magnitude, and a and b below 2^100."""
    need_float(t, "FLOOR_MOD")
    a, b, flipped = _positive_divisor(t, a, b)
    _, rest = _nearest_quotient(t, a, b)
    rest = t.select(t.greater(scalar(t, 0, rest), rest), t.add(rest, b), rest)
    return t.select(flipped, t.sub(scalar(t, 0, rest), rest), rest)


def _positive_divisor(t: Tosa, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """a and b, both with the other sign where b is negative, and where that is."""
    a, b = t.aligned(a, b)
    zero = scalar(t, 0, b)
    flipped = t.greater(zero, b)
    return t.select(flipped, t.sub(zero, a), a), t.emit(Abs, [b]), flipped


def _nearest_quotient(t: Tosa, a: Value, b: Value) -> tuple[Value, Value]:
    """The whole number nearest to a / b, either one where two are about as near, and the exact remainder: the floor if
    that is not negative, else one more."""
    q = t.mul(a, reciprocal(t, b))
    q = t.emit(Floor, [t.add(q, scalar(t, 0.5, q))])
    return q, remainder(t, a, q, b)


_Floating: TypeAlias = Callable[..., Value]


def floating(*kinds: type[Operator] | UnionType) -> Callable[[_Floating], _Floating]:
    """Registers a function of an op and its operands, all float32, for classes of ops."""

    def register(function: _Floating) -> _Floating:
        @lowering(*kinds, module=function.__module__)
        def lower(op: Op, t: Tosa) -> Value:
            need_float(t, op)
            operands = [_wide(t, op, v) for v in op.present_operands]
            return t.cast(function(op, t, *operands), op.result.type.storage)

        return function

    return register


def _wide(t: Tosa, op: Op, operand: Value) -> Value:
    if operand.type.storage not in (f32, f16):
        raise Refused(f"{op.short_name.upper()} of {operand.type.storage} has no form in TOSA")
    return t.cast(t.value(operand), f32)


# Float operands of operators that TFLite computes in float on quantized constants (hybrid kernels).
#
# Constants are dequantized once, as the kernels read them: stored * scale in float32, per layer, per axis or per block.
# The kernels ignore zero points, read bytes of uint8 as int8, and take 0 where they find no scale. Where parameters say
# something else that must hold, legalization has made the constant float before (`tflq.legalize.fallback`).
#
# The kernels round activations to 8 bits as they run, by a scale per row of the input or per item of the batch.
# Activations stay float here; the report says how far that is from the interpreter's (`tflq.analysis.hybrid`).
#
# Sources: kernels/conv.cc, depthwise_conv.cc, transpose_conv.cc, fully_connected.cc, batch_matmul.cc, svdf.cc,
# basic_rnn.cc, embedding_lookup.cc, internal/portable_tensor_utils.cc.


def real(t: Tosa, operand: Value) -> Value:
    """A float operand as float32; a quantized or half-precision constant as what it stands for to a kernel."""
    if operand.type.quantized:
        if not operand.is_constant:
            raise Refused(f"'{operand.name}' is quantized and not constant")
        return constant(as_read(operand))
    x = t.value(operand)
    if x.type.storage == f16 and x.is_constant:
        return constant(x.array.astype(np.float32))
    if x.type.storage != f32:
        raise Refused(f"'{operand.name}' is {x.type.storage}, not f32")
    return x


def factor(op: Op, t: Tosa, operand: Value, axis: int) -> Value:
    """An operand of a product as float32. For quantized weights, whose dim `axis` counts the results, a warning says
    how far the product is from the kernel's."""
    x = real(t, operand)
    if not operand.type.quantized:
        return x
    if isinstance(operand.type.element, UniformQuantizedSubChannelType):
        if not (isinstance(op, FullyConnected) and operand.type.storage == i4):
            return constant(np.zeros_like(x.array))  # the kernel finds no scale, and says so
        t.warn(BLOCKS.format(operand.name), "inexact", BLOCKS_REMEDY)
    t.warn(rounding(op, operand.name, x.array, axis, "TOSA's operators"), "inexact", REMEDY)
    return x
