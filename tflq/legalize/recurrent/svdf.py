"""SVDF on int8 with an int16 state: a filter over the features, a window over time.

    state[b, f, :] = state[b, f, 1:], saturate((x[b] - zero point) . feature[f] * s1)     int16
    y[b, u] = saturate((sum over the unit's filters f and m of state[b, f, m] * time[f, m] + bias[u]) * s2 + zero point)

RELU, the one activation that the kernel takes, is the saturation. Sums wrap in int32.
Sources: kernels/svdf.cc, kernels/internal/reference/svdf.h (EvalIntegerSVDF).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.dialects.tfl.recurrent import SVDF
from tflq.dialects.tosa.bits import BitwiseAnd
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, i32
from tflq.legalize.recurrent.state import read_state, write_state
from tflq.legalize.reference.generic.accumulate import (
    IGNORED_ZERO_POINT,
    Bounds,
    bias_of,
    bounds_of,
    unused_zero_point,
    viewed,
)
from tflq.legalize.reference.generic.rescaled import fixed
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.legalize.scaling import per_layer
from tflq.numerics.recurrent import product_scale

__all__: list[str] = []


@rule(SVDF)
def svdf(op: SVDF, b: RuleBuilder) -> Answer:
    x, feature, time, bias, state = op.input, op.feature, op.time, op.bias, op.state
    elements = per_layer(op, [x, feature, time, state, op.result])
    storages = [e.storage for e in elements]
    if storages != [i8, i8, i16, i16, i8] or (bias is not None and bias.type.storage != i32):
        raise NotApplicable(f"SVDF has no integer kernel for {', '.join(map(str, storages))}")
    if op.fused_activation_function != "RELU":
        raise NotApplicable("the kernel takes only RELU")
    values = (x, feature, time)
    if not all(v.type.is_static for v in values) or not all(v is None or v.is_constant for v in (feature, time, bias)):
        raise NotApplicable("the shapes, or the weights, are not known; bind the batch to convert it")
    batch, depth = (d or 0 for d in x.type.shape or ())
    filters, memory = (d or 0 for d in time.type.shape or ())
    source, weights, _, held, target = elements
    unbiased = b.constant(np.zeros(filters), i32)
    sums = b.conv2d(
        b.reshape(b.value(x), (batch, 1, 1, depth)),
        rows := viewed(b, b.value(feature), (filters, 1, 1, depth)),
        unbiased,
        (batch, 1, 1, filters),
        input_zp=source.zero_point,
    )
    scale = np.asarray([product_scale(source.scale, weights.scale, held.scale)])
    bounds = bounds_of(source, rows, (1, 2, 3), 0, unbiased)
    newest = fixed(b, sums, scale, replace(held, zero_point=0), "NONE", bounds)
    window = _pushed(b, state, b.reshape(newest.value, (batch, filters, 1)), memory)
    total, bounds = _over_time(op, b, window, time, bias)
    scale = np.asarray([product_scale(held.scale, elements[2].scale, target.scale)])
    result = fixed(b, total, scale, target, "NONE", bounds)
    ignored = any(unused_zero_point(v) for v in (feature, time, state))
    others = dict.fromkeys((newest.warning, IGNORED_ZERO_POINT if ignored else ""))
    others.pop(result.warning, None)
    answer = result.rewritten(None, *others)
    exception = "range" if newest.warning else answer.exception
    return replace(answer, note="its state is a variable", exception=exception)


def _pushed(b: RuleBuilder, state: Value, newest: Value, memory: int) -> Value:
    """The state with its oldest column gone and a new last one."""
    batch, filters = (d or 0 for d in (newest.type.shape or ())[:2])
    shape = (batch, filters, memory)
    window = newest
    if memory > 1:
        held = b.reshape(read_state(b, state, (batch, filters * memory)), shape)
        older = b.slice(held, (0, 0, 1), (batch, filters, memory - 1))
        window = b.concat([older, newest], 2)
        write_state(b, state, b.reshape(window, (batch, filters * memory)))
    return window


def _over_time(op: SVDF, b: RuleBuilder, window: Value, time: Value, bias: Value | None) -> tuple[Value, Bounds]:
    """The weighted sums over time and over the filters of a unit, in int32, and their bounds."""
    batch, filters, memory = (d or 0 for d in window.type.shape or ())
    rank = op.rank
    units, terms = filters // rank, rank * memory
    weights = b.value(time).array.astype(np.int64).reshape(1, filters, memory)
    products = b.reshape(b.mul(b.cast(window, i32), b.constant(weights)), (batch, units, terms))
    most = 32768 * np.abs(weights).reshape(units, terms).sum(1)
    if bias is not None:
        offset = bias_of(b, bias, units, i32)
        added = b.constant(np.tile(offset.array.reshape(1, units, 1), (batch, 1, 1)))
        products = b.concat([products, added], 2)
        most = most + np.abs(offset.array.astype(np.int64))
    fits = bool((most < 1 << 31).all())
    sums = b.reduce("sum", products, 2) if fits else _wrapped_sum(b, products, 2)
    return b.reshape(sums, (batch, units)), Bounds(-most, most)


def _wrapped_sum(b: RuleBuilder, terms: Value, axis: int) -> Value:
    """The sum of up to 2^15 i32 terms over an axis, which stays with size 1, as int32 wraps.

    TOSA does not define a sum that leaves int32. So low and high halves are summed apart, and put together by a shift
    to the left, which loses what int32 does not hold.
    """
    mask, half = b.constant(np.asarray(0xFFFF)), b.constant(np.asarray(16))
    low = b.reduce("sum", _lower(b, terms, mask), axis)
    high = b.reduce("sum", b.arithmetic_right_shift(terms, half), axis)
    high = b.add(high, b.arithmetic_right_shift(low, half))
    return b.add(b.logical_left_shift(high, half), _lower(b, low, mask))


def _lower(b: RuleBuilder, x: Value, mask: Value) -> Value:
    return b.emit(BitwiseAnd, [x, mask], x.type)
