"""Activations that are operators, and normalizations along the last axis, as the reference kernels compute them.

    RELU and its kin       clamp((x - z1) * input / output + z)
    LEAKY_RELU, PRELU      the same by one of two multipliers, depending on the sign of x - z1
    HARD_SWISH             16-bit fixed point, so a table
    LOGISTIC, TANH         a table (8-bit); interpolation in one (int16)
    SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION    fixed point, row by row: below

Sources: kernels/activations.cc, kernels/internal/reference/leaky_relu.h, prelu.h, hard_swish.h.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from tflq.dialects.builder import Operand
from tflq.dialects.tfl.activation import (
    HardSwish,
    L2Normalization,
    LeakyRelu,
    Logistic,
    LogSoftmax,
    Prelu,
    Relu,
    Relu0To1,
    Relu6,
    ReluN1To1,
    Softmax,
    Tanh,
)
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.movement import seen_by_kernel
from tflq.legalize.probing import centred, kernel_name, per_layer, rounding_shift, scaled, sloped, stored, symmetric
from tflq.legalize.rule import (
    FOLLOWS_PARAMETERS,
    Answer,
    NotApplicable,
    Rewritten,
    RuleBuilder,
    kernel_parameters,
    rule,
)
from tflq.numerics.activation import (
    ACCUMULATOR_BITS,
    NEWTON_OFFSET,
    NEWTON_ONE,
    NEWTON_SLOPE,
    NEWTON_STEPS,
    bounds_undefined,
    difference_table,
    exp_table_16bit,
    hard_swish_shift,
    hard_swish_table,
    reciprocal_table_16bit,
    relu_range,
    scaled_differences,
)
from tflq.numerics.fixed_point import (
    LANES,
    Multiplier,
    checked_log2,
    rounding_divide_by_pot,
)
from tflq.numerics.reference import Slopes
from tflq.numerics.unary import logistic, sigmoid_16bit_table, sigmoid_input_scaling, sigmoid_table, tanh

_SHIFTED_OUT = "the kernel shifts by more bits than an int32 has"
_MOST_LANES = 8
"""The most elements that an interpreter's HARD_SWISH computes at once; some have LANES."""
_GREATEST = i32.maximum


def _types(
    op: Relu | Relu6 | ReluN1To1 | Relu0To1 | LeakyRelu | Prelu | HardSwish | Logistic | Tanh, *storages: ScalarType
) -> tuple[UniformQuantizedType, UniformQuantizedType]:
    """The types of the input and the result, if both are stored as the same one of `storages`. Only PRELU takes zero
    points on int16."""
    source, output = per_layer(op, [op.input, op.result])
    if source.storage != output.storage or source.storage not in storages:
        raise NotApplicable(f"{kernel_name(op)} has no form for {source.storage} → {output.storage}")
    if source.storage is i16 and not isinstance(op, Prelu):
        symmetric(op, source, output)
    return source, output


@rule(Relu, Relu6, ReluN1To1, Relu0To1)
def relu(op: Relu | Relu6 | ReluN1To1 | Relu0To1, b: RuleBuilder) -> Answer:
    """clamp((x - z1) * input / output + z)."""
    source, output = _types(op, i8, ui8, *((i16,) if isinstance(op, (Relu, Relu6)) else ()))
    storage, name = output.storage, kernel_name(op)
    low, high = relu_range(name, storage.minimum, storage.maximum, output.scale, output.zero_point)
    if bounds_undefined(name, output.scale):
        b.note_undefined(f"a bound of {name} leaves int32")
    multiplier = b.kernel_set.relu(source, output)
    x, bound, zeros = b.value(op.input), 1 << storage.bits, (source.zero_point, output.zero_point)
    return b.clamp(scaled(b, x, multiplier, storage, bound, input_zp=zeros[0], output_zp=zeros[1]), low, high)


@rule(LeakyRelu)
def leaky_relu(op: LeakyRelu, b: RuleBuilder) -> Answer:
    """x - z1 times input / output where it is at least 0, else times input * |alpha| / output. The latter is
    negated after rounding if alpha is negative."""
    source, output = _types(op, i8, ui8, i16)
    parameters = b.kernel_set.leaky_relu(source, output, op.alpha)
    x = centred(b, op.input, source)
    if isinstance(parameters, Slopes):
        return sloped(b, x, parameters, output)
    identity, alpha, negated = parameters
    bound = 1 << source.storage.bits
    below = scaled(b, x, alpha, i32, bound)
    if negated:
        below = b.sub(0, below)
    chosen = b.select(b.greater_equal(x, 0), scaled(b, x, identity, i32, bound), below)
    return stored(b, chosen, output)


@rule(Prelu)
def prelu(op: Prelu, b: RuleBuilder) -> Answer:
    """x - z1 times input / output where it is at least 0. Else (x - z1) * (alpha - z2) times input * alpha / output.
    The kernel reads alpha's bytes as uint8 if the operand is uint8, else as int8."""
    source, output = _types(op, i8, ui8, i16)
    (weight,) = per_layer(op, [op.alpha])
    read = ui8 if source.storage is ui8 else i8
    misread = "" if weight.storage is read else f"the kernel reads alpha, stored as {weight.storage}, as {read}"
    if weight.storage not in (i8, ui8, i16):
        raise NotApplicable(f"PRELU on {source.storage} has no form for an alpha of {weight.storage}")
    if not op.alpha.type.is_static:
        raise NotApplicable("the shape of alpha is not known", misread and f"{misread}; {FOLLOWS_PARAMETERS}")
    identity, alpha = b.kernel_set.prelu(source, weight, output)
    bound = 1 << source.storage.bits
    x = centred(b, op.input, source)
    slopes = b.cast(_read_as(b, b.value(op.alpha), read), i32)
    if weight.zero_point:
        slopes = b.sub(slopes, weight.zero_point)
    steepest = max(read.maximum - weight.zero_point, weight.zero_point - read.minimum)
    below = scaled(b, b.mul(x, slopes), alpha, i32, bound * steepest)
    chosen = b.select(b.greater_equal(x, 0), scaled(b, x, identity, i32, bound), below)
    return Rewritten([stored(b, chosen, output)], warning=misread)


def _read_as(b: RuleBuilder, x: Value, to: ScalarType) -> Value:
    """The first bytes of a tensor of 8 or 16 bits, one for each element, as an 8-bit type."""
    wide = b.cast(x, i32)
    if x.type.storage.bits == 8:
        return b.cast(wide, to)
    shape = x.type.sizes
    count = int(np.prod(shape))
    low = b.reshape(wide, [count, 1])
    high = b.arithmetic_right_shift(low, 8)
    pairs = b.reshape(b.concat([low, high], 1), [2 * count])
    return b.cast(b.reshape(b.slice(pairs, (0,), (count,)), shape), to)


@rule(HardSwish)
def hard_swish(op: HardSwish, b: RuleBuilder) -> Answer:
    """A table of the kernel's fixed-point arithmetic."""
    source, output = _types(op, i8, ui8)
    parameters = (source.scale, source.zero_point, output.scale, output.zero_point)
    with kernel_parameters:
        one_by_one, in_lanes = (
            hard_swish_table(source.storage.dtype, *parameters, vectorized=v) for v in (False, True)
        )
    vectorized = False
    if hard_swish_shift(source.scale) > 31:
        b.note_undefined(_SHIFTED_OUT)
        shape = op.result.type.shape
        known = math.prod(d for d in shape or () if d is not None)
        vectorized = b.probing or (shape is not None and known % _MOST_LANES == 0)
        settled = vectorized or (op.result.type.is_static and known < LANES)
        if not settled and not np.array_equal(one_by_one, in_lanes):
            raise NotApplicable("the kernel's result is undefined in C++", unsettled=_SHIFTED_OUT)
    return b.table(b.value(op.input), in_lanes if vectorized else one_by_one)


# LOGISTIC and TANH.
#
# 8-bit: one table of 256 entries, filled in float32. int16: x is brought to steps of 1 / (3 * 4096), and |x|
# interpolates in 256 entries of the sigmoid, 2^9 steps apart (TANH: tanh(x) = 2 * sigmoid(2x) - 1, so 2^8); the result
# is mirrored where x is negative.
# Sources: kernels/activations.cc (SigmoidPrepare, TanhPrepare), kernels/internal/common.h (LUTPopulate),
# kernels/internal/reference/integer_ops/logistic.h, tanh.h.


@rule(Logistic, Tanh)
def logistic_tanh(op: Logistic | Tanh, b: RuleBuilder) -> Answer:
    source, output = _types(op, i8, ui8, i16)
    storage, hyperbolic, bits = source.storage, isinstance(op, Tanh), 15 if source.storage is i16 else 8
    demanded = not hyperbolic and output.scale != 2.0**-bits
    if demanded or (storage is i16 and checked_log2(output.scale) != -15):
        raise NotApplicable(
            f"{kernel_name(op)} on {storage} demands a result of scale 2^-{bits}, here {output.scale:g}"
        )
    x = b.value(op.input)
    if storage is not i16:
        return b.table(x, b.kernel_set.table(tanh if hyperbolic else logistic, source, output))
    scaling = sigmoid_input_scaling(source.scale, (0, 1) if hyperbolic else (0,))
    if not 0 < scaling[0] < 1 << 16:  # the product with an int16 leaves int32
        b.note_undefined("the product with the operand's multiplier leaves int32")
        return b.table(x, sigmoid_16bit_table(*scaling, hyperbolic=hyperbolic))
    return _sigmoid_16bit(b, x, *scaling, hyperbolic=hyperbolic)


def _sigmoid_16bit(b: RuleBuilder, x: Value, multiplier: int, shift: int, *, hyperbolic: bool) -> Value:
    """The interpolated value, as table value << bits with 2^bits steps between entries, mirrored and rounded."""
    bits = 8 if hyperbolic else 9
    rescaled = b.mul(b.cast(x, i32), multiplier)
    if shift:
        rescaled = b.arithmetic_right_shift(rescaled, shift, round=True)
    magnitude = b.maximum(rescaled, b.sub(0, rescaled))
    whole = b.arithmetic_right_shift(magnitude, bits)
    index = b.cast(b.sub(b.minimum(whole, 255), 128), i8)
    fraction = b.sub(magnitude, b.mul(whole, 1 << bits))
    base, slope = sigmoid_table(), np.append(np.diff(sigmoid_table()), 0).astype(np.int32)
    base[-1] = 65535 if hyperbolic else 65534
    y = b.add(b.table(index, base << bits), b.mul(fraction, b.table(index, slope)))
    positive = b.greater_equal(rescaled, 0)
    if hyperbolic:
        mirrored = b.sub((1 << 23) + (1 << 7) - 1, y)
        chosen = b.select(positive, b.sub(y, (1 << 23) - (1 << 7)), mirrored)
        return b.cast(b.arithmetic_right_shift(chosen, 8), i16)
    mirrored = b.sub((1 << 25) + (1 << 9) - 1, y)
    chosen = b.select(positive, b.add(y, 1 << 9), mirrored)
    return b.cast(b.arithmetic_right_shift(chosen, 10), i16)


# SOFTMAX over the last axis.
#
# 8-bit: the differences to the row's maximum index a table of exponentials; the reciprocal of their sum is found by
# Newton steps on the sum shifted to 31 bits, then result = round(exp * reciprocal * 2^-(35 - clz(sum))) (8-bit results;
# 2^-(27 - clz) for int16), plus the least value of the type. int16: table, sum, table of the reciprocal, product. The
# kernels ignore the result's scale, and the operand's zero point, which cancels. The kernel aborts when a row of
# 8-bit results sums to 512 maxima or more, since it would shift by more than 31: by so much, 0 is left.
# Source: kernels/internal/reference/softmax.h (Softmax, SoftmaxInt16); arithmetic in `tflq.numerics.activation`.


_MAXIMA = 512
"""In a sum of so many, a result of 8 bits is shifted by more than 31."""
_FORMS: tuple[tuple[ScalarType, ScalarType], ...] = ((i8, i8), (ui8, ui8), (i8, i16), (ui8, i16), (i16, i16))


@rule(Softmax)
def softmax(op: Softmax, b: RuleBuilder) -> Answer:
    """exp(beta * d) / the row's sum of that, d = x - max of the row."""
    source, output = per_layer(op)
    if (source.storage, output.storage) not in _FORMS:
        raise NotApplicable(f"SOFTMAX has no form for {source.storage} → {output.storage}")
    if not op.input.type.rank:
        raise NotApplicable(f"the rank of '{op.input.name}' is 0 or unknown")
    _softmax_check(op, source, output)
    with kernel_parameters:
        if source.storage is i16:
            return _softmax_16bit(op, b, b.kernel_set.softmax(source, op.beta))
        result = _softmax_8bit(op, b, difference_table(op.beta, source.scale), output.storage)
    ignored = output.storage is ui8 and (output.scale, output.zero_point) != (1 / 256, 0)
    return Rewritten([result], warning="the kernel ignores the result's scale and zero point" if ignored else "")


def _softmax_check(op: Softmax, source: UniformQuantizedType, output: UniformQuantizedType) -> None:
    """The result's parameters, where the kernel checks them: scale 2^-bits, zero point at the least value."""
    storage = output.storage
    if source.storage is i16:
        symmetric(op, source)
    if source.storage != storage or storage is ui8:
        return
    scale, zero_point = (1 / 256, -128) if storage is i8 else (1 / 32768, 0)
    if output.zero_point != zero_point or abs(output.scale - scale) > 0.001 * scale:
        wanted = f"a result of scale {scale:g} and zero point {zero_point}"
        raise NotApplicable(f"SOFTMAX on {storage} demands {wanted}, here {output.scale:g} and {output.zero_point}")


def _differences(op: Softmax | LogSoftmax, b: RuleBuilder) -> Value:
    """x - max of the row, as i32: at most 0."""
    x = b.value(op.input)
    return b.sub(b.cast(x, i32), b.cast(_over_row(b, "max", x), i32))


def _over_row(b: RuleBuilder, kind: Literal["sum", "max"], x: Value) -> Value:
    return b.reduce(kind, x, (x.type.rank or 1) - 1)


def _softmax_8bit(op: Softmax, b: RuleBuilder, table: np.ndarray, storage: ScalarType) -> Value:
    index = b.cast(b.add(_differences(op, b), 127), i8)
    total = _over_row(b, "sum", b.table(index, rounding_divide_by_pot(table, ACCUMULATOR_BITS)))
    headroom = b.clz(total)
    inverse = _reciprocal(b, b.logical_left_shift(total, b.sub(headroom, 1)))
    exponent = b.sub(ACCUMULATOR_BITS + 31 - storage.bits, headroom)
    product = b.mul(b.table(index, table), inverse, shift=31)
    if (op.input.type.shape or (None,))[-1] in range(_MAXIMA) or storage.bits > 8:
        result = b.arithmetic_right_shift(product, exponent, round=True)
    else:
        twice = b.arithmetic_right_shift(product, b.minimum(b.sub(exponent, 1), 31))
        result = b.sub(twice, b.arithmetic_right_shift(twice, 1))
    if storage.minimum:
        result = b.add(result, storage.minimum)
    return b.cast(b.minimum(result, storage.maximum), storage)


def _reciprocal(b: RuleBuilder, half: Value) -> Value:
    """1 / (2 * half) in Q0.31, saturated, of a value in [1/2, 1) in Q0.31.

    The last doubling saturates: 2 * min(r, 2^30), less one where r reaches 2^30.
    """
    r = b.add(b.mul(half, NEWTON_SLOPE, shift=31), NEWTON_OFFSET)
    for _ in range(NEWTON_STEPS):
        error = b.sub(NEWTON_ONE, b.mul(half, r, shift=31))
        r = b.add(r, b.mul(b.mul(r, error, shift=31), 4))
    return b.add(b.minimum(r, 1 << 30), b.minimum(r, (1 << 30) - 1))


def _interpolated(b: RuleBuilder, x: Value, table: np.ndarray) -> Value:
    """An int16 table's value: TOSA's 23-bit interpolation, rounded to 16 bits; as i32."""
    return b.arithmetic_right_shift(b.table(x, table), 7, round=True)


def _to_16bit(b: RuleBuilder, x: Value) -> Value:
    return b.cast(b.clamp(x, i16.minimum, i16.maximum), i16)


def _softmax_16bit(op: Softmax, b: RuleBuilder, multiplier: Multiplier) -> Value:
    rescaled = scaled(b, _differences(op, b), multiplier, i32, 1 << 16)
    terms = _interpolated(b, _to_16bit(b, b.add(rescaled, 32767)), exp_table_16bit())
    total = _over_row(b, "sum", terms)
    headroom = b.clz(total)
    normal = b.logical_left_shift(total, b.sub(headroom, 1))
    fraction = b.sub(b.arithmetic_right_shift(normal, 14, round=True), 3 << 15)
    inverse = _interpolated(b, _to_16bit(b, fraction), reciprocal_table_16bit())
    shift = b.sub(31, headroom)
    result = b.arithmetic_right_shift(b.mul(terms, inverse), shift, round=True)
    return b.cast(b.clamp(result, 0, i16.maximum), i16)


# LOG_SOFTMAX over the last axis: y = d - log(sum of exp(d)), d = x - max of the row, in fixed point.
#
# d and log are in Q5.26, the sum in Q12.19; y is rounded to 4 bits behind the point. Two tables of 256 differences
# hold d and exp(d). Differences outside of Q5.26's range, and those from -16 down, give the least result whatever the
# sum is, so the kernel's check against the sum, which keeps d - log from wrapping, is left out. With m the sum shifted
# left to 31 bits, h its leading zeros, and every product round(a * b / 2^31):
#
#     r     m, or sqrt(1/2) m where that has no leading zero more      in [sqrt(1/2), 1)
#     log   log(2) * (12 - h, moved by a quarter) + ratio of polynomials in q = 2 (r - 1/2^(1/4))
#
# Source: kernels/activations.cc (LogSoftmaxPrepare), kernels/internal/reference/log_softmax.h,
# integer_ops/log_softmax.h, kernels/internal/common.h (log_x_for_x_greater_than_or_equal_to_1_impl).


_LOG_2, _SQRT_HALF, _ROOT = 1488522236, 1518500250, 1805811301  # log(2), 2^(-1/2), 2^(-1/4), in Q0.31
_NUMERATOR, _SQUARE, _OFFSET, _SLOPE = 117049297, 127690142, 1057819769, 638450708  # of the polynomials, in Q0.31
_WHOLE, _QUARTER = 25, 1 << 23  # 1 is 2^25 in Q6.25


@rule(LogSoftmax)
def log_softmax(op: LogSoftmax, b: RuleBuilder) -> Answer:
    """d - log(the row's sum of exp(d))."""
    source, output = per_layer(op)
    storage, x = output.storage, op.input
    if source.storage != storage or storage not in (i8, ui8):
        raise NotApplicable(f"LOG_SOFTMAX has no kernel for {source.storage} → {storage}")
    if output.scale != 1 / 16 or output.zero_point != storage.maximum:
        wanted = f"a result of scale 1/16 and zero point {storage.maximum}"
        raise NotApplicable(f"LOG_SOFTMAX demands {wanted}, here {output.scale:g} and {output.zero_point}")
    if not x.type.shape:
        raise NotApplicable(f"the rank of '{x.name}' is 0 or unknown")
    if (x.type.shape[-1] or 1 << 12) >= 1 << 12:
        raise NotApplicable("the sum overflows in the kernel from rows of 4096 on")
    index = b.cast(b.add(_differences(op, b), 127), i8)
    with kernel_parameters:
        exponentials = rounding_divide_by_pot(difference_table(1.0, source.scale), ACCUMULATOR_BITS)
        differences = scaled_differences(1.0, source.scale)
    total = _over_row(b, "sum", b.table(index, exponentials))
    return stored(b, rounding_shift(b, b.sub(b.table(index, differences), _logarithm(b, total)), 22), output)


def _product(b: RuleBuilder, x: Value, y: Operand) -> Value:
    return b.mul(x, y, shift=31)


def _logarithm(b: RuleBuilder, total: Value) -> Value:
    """log of a Q12.19 that is at least 1, in Q5.26."""
    headroom = b.clz(total)
    m = b.logical_left_shift(total, b.add(headroom, -1))
    half = _product(b, m, _SQRT_HALF)
    first = b.select(b.greater(half, (1 << 30) - 1), _GREATEST, b.mul(half, 2))
    more = b.sub(b.clz(_product(b, total, _SQRT_HALF)), headroom)  # 0 or 1
    second = b.select(b.greater(more, 0), _GREATEST, m)
    whole = b.sub(12, headroom)
    power = b.maximum(_in_q6(b, whole, _QUARTER), _in_q6(b, b.add(b.sub(whole, more), 1), -_QUARTER))
    numerator, denominator = _polynomials(b, b.minimum(first, second))
    quotient = _product(b, rounding_shift(b, numerator, 6), _reciprocal(b, b.add(_halved(b, denominator), 1 << 30)))
    return b.mul(b.add(_product(b, power, _LOG_2), quotient), 2)


def _in_q6(b: RuleBuilder, whole: Value, more: int) -> Value:
    return b.add(b.mul(whole, 1 << _WHOLE), more)


def _halved(b: RuleBuilder, x: Value) -> Value:
    return b.arithmetic_right_shift(x, 1)


def _polynomials(b: RuleBuilder, r: Value) -> tuple[Value, Value]:
    """The ratio's numerator, and its denominator less 1, both in Q0.31."""
    p = b.add(_halved(b, r), (_ROOT + 1) // 2)
    q = b.mul(b.add(r, -_ROOT), 2)
    square = _product(b, q, q)
    numerator = b.add(_product(b, q, r), _product(b, _product(b, q, square), _NUMERATOR))
    inner = b.add(b.add(q, _OFFSET), _product(b, square, _SQUARE))
    return numerator, b.add(_product(b, p, inner), _product(b, q, _SLOPE))


# L2_NORMALIZATION over the last axis.
#
#     s = sum of (x - zero_point)^2;  y = (x - zero_point) / sqrt(s) * 128 + the result's zero point
#
# 1 / sqrt(s) is a mantissa and a right shift, for every row: s is brought into [2^27, 2^29) by an even shift; five
# Newton steps from 1 in Q3.28, r = 3/2 r - s/2 r^3, which never saturate, give the mantissa. s = 0 counts as 1, which
# has the greatest mantissa. y is rounded twice: int8 takes the factor of 128 off the shift, uint8 multiplies by it
# first.
# Source: kernels/l2norm.cc, kernels/internal/reference/l2normalization.h, integer_ops/l2normalization.h,
# kernels/internal/common.h (GetInvSqrtQuantizedMultiplierExp).


_RAW = "the kernel ignores the operand's several scales and their zero points"
_BITS = 7
"""The result has a scale of 2^-7."""
_ONE, _HALF_OF_THREE, _HALF_SQRT_2 = 1 << 28, (1 << 28) + (1 << 27), 1518500250


@rule(L2Normalization)
def l2_normalization(op: L2Normalization, b: RuleBuilder) -> Answer:
    """The kernel's fixed-point arithmetic, row by row."""
    (output,), operand = per_layer(op, op.results), op.input
    storage = output.storage
    if operand.type.storage != storage or storage not in (i8, ui8):
        raise NotApplicable(f"L2_NORMALIZATION has no kernel for {operand.type.storage} → {storage}")
    zero_point = 128 if storage is ui8 else 0
    if output.scale != 2.0**-_BITS or output.zero_point != zero_point:
        wanted = f"a result of scale 2^-{_BITS} and zero point {zero_point}"
        raise NotApplicable(f"L2_NORMALIZATION demands {wanted}, here {output.scale:g} and {output.zero_point}")
    if not operand.type.rank:
        raise NotApplicable(f"the rank of '{operand.name}' is 0 or unknown")
    x, zero = b.cast(b.value(operand), i32), seen_by_kernel(operand)[1]
    x = b.sub(x, zero) if zero else x
    mantissa, shift = inverse_square_root(b, _over_row(b, "sum", b.mul(x, x)))
    if storage is ui8:
        x = b.mul(x, 1 << _BITS)
    else:
        x = b.logical_left_shift(x, b.maximum(b.sub(_BITS, shift), 0))
        shift = b.maximum(b.sub(shift, _BITS), 0)
    result = stored(b, rounding_shift(b, b.mul(x, mantissa, shift=31), shift), output)
    return Rewritten([result], warning="" if isinstance(operand.type.element, UniformQuantizedType) else _RAW)


def inverse_square_root(b: RuleBuilder, s: Value) -> tuple[Value, Value]:
    """Mantissa and right shift of 1 / sqrt(s); the greatest mantissa for 0, 1 and a sum that wrapped."""
    positive = b.maximum(s, 2)
    large = b.greater_equal(positive, 1 << 29)
    quarters = b.select(large, 1, 0)
    positive = b.arithmetic_right_shift(positive, b.add(quarters, quarters))
    pairs = b.arithmetic_right_shift(b.sub(b.clz(positive), 3), 1)
    half = rounding_shift(b, b.logical_left_shift(positive, b.add(pairs, pairs)), 2)
    r = b.constant(_ONE)
    for _ in range(5):
        cube = b.mul(b.mul(b.mul(r, r, shift=31), r, shift=31), 1 << 6)
        step = b.sub(b.mul(r, _HALF_OF_THREE, shift=31), b.mul(half, cube, shift=31))
        r = b.mul(step, 1 << 3)
    shift = b.sub(b.add(quarters, 11), pairs)
    back = b.maximum(b.sub(0, shift), 0)
    mantissa = b.logical_left_shift(b.mul(r, _HALF_SQRT_2, shift=31), back)
    return b.select(b.greater(2, s), _GREATEST, mantissa), b.maximum(shift, 0)
