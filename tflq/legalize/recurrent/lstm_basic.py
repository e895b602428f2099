"""The basic kernel of LSTM on uint8: one step, its state in Q4.11, activations in 1/128 about 128.

    rows = [x, h]                               a result, too
    gates = saturate((rows - 128) . (w - zero point) * s + bias)      int16 in Q3.12, a result: i, g, f, o in a row
    c = saturate(round(i * g / 2^4) + f * c)    i, f, o = logistic(gate), g = tanh(gate), in Q0.15
    h = 128 + saturate(round(o * tanh(2 c) / 2^8))

The gates' sums are scaled with two roundings, each half up: the kernel multiplies with ruy, whatever the resolver.
Products in Q0.15 are rounded half up, quotients half away from zero; 2 c is saturated to Q3.12. A previous activation
or state that is a variable tensor takes the new one.
Sources: kernels/lstm.cc (basic), kernels/internal/optimized/optimized_ops.h (LstmCell).
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.effects import is_variable
from tflq.dialects.ext.tables import Table16Bit
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.recurrent.state import read_state, write_state
from tflq.legalize.reference.generic.accumulate import bias_of, viewed, weight_zero_point
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder
from tflq.legalize.scaling import per_layer, rounding_shift
from tflq.numerics.fixed_16bit import LOGISTIC_BITS, logistic_table, tanh_table
from tflq.numerics.fixed_point import quantize_multiplier
from tflq.numerics.recurrent import power_of_two

__all__ = ["basic_lstm"]

_STATE_BITS = 4
_STORAGES = (ui8, ui8, ui8, i32, i16, ui8, i16, ui8, i16)


def basic_lstm(op: Op, b: RuleBuilder) -> Answer:
    x, before, weights, bias, state = (op.operand(i) for i in range(5))
    elements = per_layer(op)
    if tuple(e.storage for e in elements) != _STORAGES:
        raise NotApplicable("the basic kernel takes uint8 with an int16 state")
    try:
        exponent = power_of_two(elements[6].scale)
    except ValueError as error:
        raise NotApplicable(f"the kernel refuses these parameters: {error}") from error
    if 15 + exponent != _STATE_BITS:
        raise NotApplicable(f"the state's scale is 2^{exponent}; the basic kernel has only 2^{_STATE_BITS - 15}")
    if not (x.type.is_static and before.type.is_static and weights.is_constant and bias.is_constant):
        raise NotApplicable("the shapes, or the weights, are not known; bind the batch to convert it")
    batch, depth = (d or 0 for d in before.type.shape or ())
    rows = b.concat([b.value(x), _held(b, before, (batch, depth))], 1)
    gates = _gates(b, rows, weights, bias)
    new, activation = _cell(b, gates, _held(b, state, (batch, depth)))
    for tensor, value in ((before, activation), (state, new)):
        if is_variable(tensor):
            write_state(b, tensor, value)
    return Rewritten([activation, new, rows, gates], note="its state is variables")


def _held(b: RuleBuilder, tensor: Value, shape: tuple[int, ...]) -> Value:
    return read_state(b, tensor, shape) if is_variable(tensor) else b.value(tensor)


def _gates(b: RuleBuilder, rows: Value, weights: Value, bias: Value) -> Value:
    """The sums of all gates, int16 [batch, 4 depth]."""
    batch, total = (d or 0 for d in rows.type.shape or ())
    width = (weights.type.shape or (0,))[0] or 0
    filters, offset = viewed(b, b.value(weights), (width, 1, 1, total)), bias_of(b, bias, width, i32)
    zero, shape = weight_zero_point(weights), (batch, 1, 1, width)
    sums = b.conv2d(b.reshape(rows, (batch, 1, 1, total)), filters, offset, shape, input_zp=128, weight_zp=zero)
    element = bias.type.element
    assert isinstance(element, UniformQuantizedType)
    multiplier = quantize_multiplier(4096 * element.scale)
    if multiplier.shift > 0:
        raise NotApplicable(f"the bias' scale is {element.scale:g}, more than the gates' 2^-12")
    high = b.mul(b.reshape(sums, (batch, width)), b.constant(np.asarray(multiplier.mantissa)), shift=31)
    if multiplier.shift:
        high = b.arithmetic_right_shift(high, b.constant(np.asarray(-multiplier.shift)), round=True)
    return b.cast(b.clamp(high, i16.minimum, i16.maximum), i16)


def _cell(b: RuleBuilder, gates: Value, state: Value) -> tuple[Value, Value]:
    """The new state, int16, and activation, uint8."""
    shape = tuple(d or 0 for d in state.type.shape or ())
    logistic, tanh = constant(logistic_table()), constant(tanh_table(LOGISTIC_BITS))

    def looked_up(value: Value, table: Value) -> Value:
        return b.cast(b.emit(Table16Bit, [value, table], TensorType(shape, i16)), i32)

    def gate(place: int) -> Value:
        start = (0, place * shape[1])
        part = b.slice(gates, start, shape)
        return looked_up(part, tanh if place == 1 else logistic)

    def product(x: Value, y: Value) -> Value:
        return b.arithmetic_right_shift(b.mul(x, y), b.constant(np.asarray(15)), round=True)

    i, g, f, o = (gate(place) for place in range(4))
    kept = product(f, b.cast(state, i32))
    new = b.clamp(b.add(rounding_shift(b, product(i, g), _STATE_BITS), kept), i16.minimum, i16.maximum)
    twice = b.clamp(b.mul(new, b.constant(np.asarray(2))), i16.minimum, i16.maximum)
    activation = rounding_shift(b, product(o, looked_up(b.cast(twice, i16), tanh)), 8)
    activation = b.add(b.clamp(activation, i8.minimum, i8.maximum), b.constant(np.asarray(128)))
    return b.cast(new, i16), b.cast(activation, ui8)
