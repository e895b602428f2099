"""LOG_SOFTMAX over the last axis: y = d - log(sum of exp(d)), d = x - max of the row, in fixed point.

d and log are in Q5.26, the sum in Q12.19; y is rounded to 4 bits behind the point. Two tables of 256 differences hold d
and exp(d). A difference out of Q5.26's range, and one from -16 on, gives the least result whatever the sum is: the
kernel's check against the sum, which keeps d - log from wrapping, makes no difference to it. With m the sum shifted
left to 31 bits, h its leading zeros, and every product round(a * b / 2^31):

    r     m, or sqrt(1/2) m where that has no leading zero more      in [sqrt(1/2), 1)
    log   log(2) * (12 - h, moved by a quarter) + ratio of polynomials in q = 2 (r - 1/2^(1/4))

Source: kernels/activations.cc (LogSoftmaxPrepare), kernels/internal/reference/log_softmax.h,
integer_ops/log_softmax.h, kernels/internal/common.h (log_x_for_x_greater_than_or_equal_to_1_impl).
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.activation import LogSoftmax
from tflq.ir.core import Value
from tflq.ir.types import UniformQuantizedType, i8, i32, ui8
from tflq.legalize.reference.activation.softmax import reciprocal
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.legalize.scaling import per_layer, rounding_shift
from tflq.numerics.fixed_point import rounding_divide_by_pot
from tflq.numerics.softmax import ACCUMULATOR_BITS, difference_table, scaled_differences

__all__: list[str] = []

_GREATEST = (1 << 31) - 1
_LOG_2, _SQRT_HALF, _ROOT = 1488522236, 1518500250, 1805811301  # log(2), 2^(-1/2), 2^(-1/4), in Q0.31
_NUMERATOR, _SQUARE, _OFFSET, _SLOPE = 117049297, 127690142, 1057819769, 638450708  # of the polynomials, in Q0.31
_WHOLE, _QUARTER = 25, 1 << 23  # 1 is 2^25 in Q6.25


@rule(LogSoftmax)
def log_softmax(op: LogSoftmax, b: RuleBuilder) -> Answer:
    """The reference kernel's arithmetic, row by row."""
    source, output = per_layer(op)
    _check(op, source, output)
    x, last = b.value(op.input), (op.input.type.rank or 1) - 1
    d = b.sub(b.cast(x, i32), b.cast(b.reduce("max", x, last), i32))
    index = b.cast(b.add(d, _constant(b, 127)), i8)
    try:
        exponentials = rounding_divide_by_pot(difference_table(1.0, source.scale), ACCUMULATOR_BITS)
        differences = scaled_differences(1.0, source.scale)
    except ValueError as error:
        raise NotApplicable(f"the kernel refuses these parameters: {error}") from error
    total = b.reduce("sum", b.table(index, exponentials), last)
    y = rounding_shift(b, b.sub(b.table(index, differences), _logarithm(b, total)), 22)
    storage = output.storage
    return b.cast(b.clamp(b.add(y, _constant(b, storage.maximum)), storage.minimum, storage.maximum), storage)


def _check(op: LogSoftmax, source: UniformQuantizedType, output: UniformQuantizedType) -> None:
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


def _constant(b: RuleBuilder, value: int) -> Value:
    return b.constant(np.asarray(value))


def _product(b: RuleBuilder, x: Value, y: Value | int) -> Value:
    return b.mul(x, _constant(b, y) if isinstance(y, int) else y, shift=31)


def _plus(b: RuleBuilder, x: Value, number: int) -> Value:
    return b.add(x, _constant(b, number))


def _logarithm(b: RuleBuilder, total: Value) -> Value:
    """log of Q12.19 from 1 on, in Q5.26."""
    headroom = b.clz(total)
    m = b.logical_left_shift(total, _plus(b, headroom, -1))
    half = _product(b, m, _SQRT_HALF)
    first = b.select(
        b.greater(half, _constant(b, (1 << 30) - 1)), _constant(b, _GREATEST), b.mul(half, _constant(b, 2))
    )
    more = b.sub(b.clz(_product(b, total, _SQRT_HALF)), headroom)  # 0 or 1
    second = b.select(b.greater(more, _constant(b, 0)), _constant(b, _GREATEST), m)
    whole = b.sub(_constant(b, 12), headroom)
    power = b.maximum(_in_q6(b, whole, _QUARTER), _in_q6(b, _plus(b, b.sub(whole, more), 1), -_QUARTER))
    numerator, denominator = _polynomials(b, b.minimum(first, second))
    quotient = _product(b, rounding_shift(b, numerator, 6), reciprocal(b, _plus(b, _halved(b, denominator), 1 << 30)))
    return b.mul(b.add(_product(b, power, _LOG_2), quotient), _constant(b, 2))


def _in_q6(b: RuleBuilder, whole: Value, more: int) -> Value:
    return _plus(b, b.mul(whole, _constant(b, 1 << _WHOLE)), more)


def _halved(b: RuleBuilder, x: Value) -> Value:
    return b.arithmetic_right_shift(x, _constant(b, 1))


def _polynomials(b: RuleBuilder, r: Value) -> tuple[Value, Value]:
    """The ratio's numerator, and its denominator less 1, both in Q0.31."""
    p = _plus(b, _halved(b, r), (_ROOT + 1) // 2)
    q = b.mul(_plus(b, r, -_ROOT), _constant(b, 2))
    square = _product(b, q, q)
    numerator = b.add(_product(b, q, r), _product(b, _product(b, q, square), _NUMERATOR))
    inner = b.add(_plus(b, q, _OFFSET), _product(b, square, _SQUARE))
    return numerator, b.add(_product(b, p, inner), _product(b, q, _SLOPE))
