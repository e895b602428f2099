"""Activations that are operators: RELU and its kin, LEAKY_RELU, PRELU, HARD_SWISH.

The RELU kernels scale (x - z1) by input / output, add z and clamp. LEAKY_RELU and PRELU do so with one of two
multipliers, by the sign of x - z1. HARD_SWISH is 16-bit fixed point all through, so a table. Source:
kernels/activations.cc, kernels/internal/reference/leaky_relu.h, prelu.h, hard_swish.h.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.tfl.activation import HardSwish, LeakyRelu, Prelu, Relu, Relu0To1, Relu6, ReluN1To1
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.rule import AS_STATED, Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import centred, kernel_name, per_layer, scaled, symmetric
from tflq.numerics.activation import (
    bounds_undefined,
    float_ratio,
    hard_swish_shift,
    hard_swish_table,
    leaky_multipliers,
    prelu_multipliers,
    relu_range,
)
from tflq.numerics.fixed_point import quantize_multiplier
from tflq.numerics.x86 import LANES

__all__: list[str] = []

_SHIFTED_OUT = "the kernel shifts by more bits than an int32 has"
_MOST_LANES = 8
"""Of the vector registers in which HARD_SWISH is computed: some interpreters have LANES."""


def _unary(
    op: Relu | Relu6 | ReluN1To1 | Relu0To1 | LeakyRelu | Prelu | HardSwish, *storages: ScalarType
) -> tuple[UniformQuantizedType, UniformQuantizedType]:
    """The types of the input and the result, if their storage type is the same one of `storages`. Only PRELU takes zero
    points on int16."""
    source, output = per_layer(op, [op.input, op.output])
    if source.storage != output.storage or source.storage not in storages:
        raise NotApplicable(f"{kernel_name(op)} has no form for {source.storage} → {output.storage}")
    if source.storage is i16 and not isinstance(op, Prelu):
        symmetric(op, source, output)
    return source, output


@rule(Relu, Relu6, ReluN1To1, Relu0To1)
def relu(op: Relu | Relu6 | ReluN1To1 | Relu0To1, b: RuleBuilder) -> Answer:
    """clamp((x - z1) * input / output + z)."""
    source, output = _unary(op, i8, ui8, *((i16,) if isinstance(op, (Relu, Relu6)) else ()))
    storage, name = output.storage, kernel_name(op)
    low, high = relu_range(name, storage.minimum, storage.maximum, output.scale, output.zero_point)
    if bounds_undefined(name, output.scale):
        b.note_undefined(f"a bound of {name} leaves int32")
    multiplier = quantize_multiplier(float_ratio(source.scale, output.scale))
    x, bound, zeros = b.value(op.input), 1 << storage.bits, (source.zero_point, output.zero_point)
    return b.clamp(scaled(b, x, multiplier, storage, bound, input_zp=zeros[0], output_zp=zeros[1]), low, high)


def _saturated(b: RuleBuilder, x: Value, output: UniformQuantizedType) -> Value:
    """An i32 plus the zero point, in the storage type."""
    storage = output.storage
    total = b.add(x, b.constant(np.asarray(output.zero_point))) if output.zero_point else x
    return b.cast(b.clamp(total, storage.minimum, storage.maximum), storage)


@rule(LeakyRelu)
def leaky_relu(op: LeakyRelu, b: RuleBuilder) -> Answer:
    """x - z1 by input / output from zero up, by input * alpha / output below; a negative alpha negates the rounded."""
    source, output = _unary(op, i8, ui8, i16)
    identity, alpha, negated = leaky_multipliers(source.scale, output.scale, op.alpha)
    bound = 1 << source.storage.bits
    x, zero = centred(b, op.input, source), b.constant(np.asarray(0))
    below = scaled(b, x, alpha, i32, bound)
    if negated:
        below = b.sub(zero, below)
    chosen = b.select(b.greater_equal(x, zero), scaled(b, x, identity, i32, bound), below)
    return _saturated(b, chosen, output)


@rule(Prelu)
def prelu(op: Prelu, b: RuleBuilder) -> Answer:
    """x - z1 by input / output from zero up; below, (x - z1) * (alpha - z2) by input * alpha / output. The kernel reads
    alpha's bytes as uint8 beside a uint8 operand, else as int8."""
    elements = _unary(op, i8, ui8, i16)
    slope = per_layer(op, [op.alpha])
    source, output = elements
    (weight,) = slope
    read = ui8 if source.storage is ui8 else i8
    misread = "" if weight.storage is read else f"the kernel reads alpha, stored as {weight.storage}, as {read}"
    if weight.storage not in (i8, ui8, i16):
        raise NotApplicable(f"PRELU on {source.storage} has no form for an alpha of {weight.storage}")
    if not op.alpha.type.is_static:
        raise NotApplicable("the shape of alpha is not known", misread and f"{misread}; {AS_STATED}")
    identity, alpha = prelu_multipliers(source.scale, weight.scale, output.scale)
    bound = 1 << source.storage.bits
    x, zero = centred(b, op.input, source), b.constant(np.asarray(0))
    slopes = b.cast(_read_as(b, b.value(op.alpha), read), i32)
    if weight.zero_point:
        slopes = b.sub(slopes, b.constant(np.asarray(weight.zero_point)))
    steepest = max(read.maximum - weight.zero_point, weight.zero_point - read.minimum)
    below = scaled(b, b.mul(x, slopes), alpha, i32, bound * steepest)
    chosen = b.select(b.greater_equal(x, zero), scaled(b, x, identity, i32, bound), below)
    return Rewritten([_saturated(b, chosen, output)], warning=misread)


def _read_as(b: RuleBuilder, x: Value, to: ScalarType) -> Value:
    """As many of the tensor's bytes as it has elements, the first ones, as an 8-bit type."""
    wide = b.cast(x, i32)
    if x.type.storage.bits == 8:
        return b.cast(wide, to)
    shape = [d or 0 for d in x.type.shape or ()]
    count = int(np.prod(shape))
    low = b.reshape(wide, [count, 1])
    high = b.arithmetic_right_shift(low, b.constant(np.asarray(8)))
    pairs = b.reshape(b.concat([low, high], 1), [2 * count])
    first = b.slice(pairs, (0,), (count,))
    return b.cast(b.reshape(first, shape), to)


@rule(HardSwish)
def hard_swish(op: HardSwish, b: RuleBuilder) -> Answer:
    """A table of the kernel's fixed-point arithmetic."""
    source, output = _unary(op, i8, ui8)
    parameters = (source.scale, source.zero_point, output.scale, output.zero_point)
    try:
        one_by_one, in_lanes = (
            hard_swish_table(source.storage.dtype, *parameters, vectorized=v) for v in (False, True)
        )
    except ValueError as error:
        raise NotApplicable(f"the kernel refuses these parameters: {error}") from error
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
