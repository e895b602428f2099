"""UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM on int8, with gates and cell state in int16: the steps written out.

    gate = saturate(x . w * s + bias')      then + (h . r * s'), then + (c * p * s''), each saturated to int16
    i, f, o = logistic(gate), g = tanh(gate)                    Q3.12 → Q0.15
    c = saturate(f * c / 2^15 + i * g / 2^(30 + e))             2^e the cell state's scale; clipped
    h = saturate(o * tanh(c) * s + zero point)                  a projection of that, where there is one; clipped

Where the kernel has no tanh for e, tanh(c) is i, which its memory still holds, and i * g wraps to int16. The output
gate's peephole reads the new c. Quotients are rounded half away from zero. The products with the input are
one convolution for all steps and gates, those with the output state one for all gates. LSTM's basic kernel and layer
norms are below.

Sources: kernels/unidirectional_sequence_lstm.cc, kernels/lstm.cc, kernels/lstm_eval.cc (LstmStepInteger8x8_16),
kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.base import sized
from tflq.dialects.effects import is_variable
from tflq.dialects.quant import Table16Bit
from tflq.dialects.tfl.recurrent import LSTM, UnidirectionalSequenceLSTM
from tflq.ir.ops import Value, constant
from tflq.ir.types import UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.activation import inverse_square_root
from tflq.legalize.probing import per_layer, rounding_shift, scaled
from tflq.legalize.recurrent import BASIC_STORAGES, CELLS_WITH_TANH, misread, read_state, write_state
from tflq.legalize.rescaled import (
    IGNORED_ZERO_POINT,
    bias_of,
    bounds_of,
    has_zero_point,
    requantize,
    reshape_constant,
    weight_zero_point,
)
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, kernel_parameters, no_parameters, rule
from tflq.numerics.activation import LOGISTIC_BITS, logistic_table, tanh_table
from tflq.numerics.convolution import GATE_SCALE, clip_bound, power_of_two
from tflq.numerics.reference import KernelSet
from tflq.numerics.requantize.scaling import QuantizedMultiplier

# The basic kernel of LSTM on uint8: one step, its state in Q4.11, activations in 1/128 about 128.
#
#     rows = [x, h]                               a result, too
#     gates = saturate((rows - 128) . (w - zero point) * s + bias)      int16 in Q3.12, a result: i, g, f, o in a row
#     c = saturate(round(i * g / 2^4) + f * c)    i, f, o = logistic(gate), g = tanh(gate), in Q0.15
#     h = 128 + saturate(round(o * tanh(2 c) / 2^8))
#
# The gates' sums are scaled with two roundings, each half up: the kernel multiplies with ruy, whatever the resolver.
# Products in Q0.15 are rounded half up, quotients half away from zero; 2 c is saturated to Q3.12. A previous
# activation or state that is a variable tensor takes the new one. Sources: kernels/lstm.cc (basic),
# kernels/internal/optimized/optimized_ops.h (LstmCell).


_STATE_BITS = 4


def _basic_lstm(op: LSTM, b: RuleBuilder) -> Answer:
    x, before, weights, bias, state = (op.operand(i) for i in range(5))
    elements = per_layer(op)
    if tuple(e.storage for e in elements) != BASIC_STORAGES:
        raise NotApplicable("the basic kernel takes uint8 with an int16 state")
    with kernel_parameters:
        exponent = power_of_two(elements[6].scale)
    if 15 + exponent != _STATE_BITS:
        raise NotApplicable(f"the state's scale is 2^{exponent}; the basic kernel has only 2^{_STATE_BITS - 15}")
    if not (x.type.is_static and before.type.is_static and weights.is_constant and bias.is_constant):
        raise NotApplicable("the shapes, or the weights, are not known; bind the batch to convert it")
    batch, depth = before.type.sizes
    rows = b.concat([b.value(x), _state_or_value(b, before, (batch, depth))], 1)
    gates = _gates(b, rows, weights, bias)
    new, activation = _cell(b, gates, _state_or_value(b, state, (batch, depth)))
    for tensor, value in ((before, activation), (state, new)):
        if is_variable(tensor):
            write_state(b, tensor, value)
    return Rewritten([activation, new, rows, gates], note="its state is variables")


def _state_or_value(b: RuleBuilder, tensor: Value, shape: tuple[int, ...]) -> Value:
    return read_state(b, tensor, shape) if is_variable(tensor) else b.value(tensor)


def _gates(b: RuleBuilder, rows: Value, weights: Value, bias: Value) -> Value:
    """The sums of all gates, int16 [batch, 4 depth]."""
    batch, total = rows.type.sizes
    width = (weights.type.shape or (0,))[0] or 0
    filters, offset = reshape_constant(b, b.value(weights), (width, 1, 1, total)), bias_of(b, bias, width, i32)
    zero, shape = weight_zero_point(weights), (batch, 1, 1, width)
    sums = b.conv2d(b.reshape(rows, (batch, 1, 1, total)), filters, offset, shape, input_zp=128, weight_zp=zero)
    element = bias.type.element
    assert isinstance(element, UniformQuantizedType)
    multiplier = b.kernel_set.lstm_sums(element.scale)
    if multiplier.shift > 0:
        raise NotApplicable(f"the bias' scale is {element.scale:g}, more than the gates' 2^-12")
    high = b.mul(b.reshape(sums, (batch, width)), multiplier.mantissa, shift=31)
    if multiplier.shift:
        high = b.arithmetic_right_shift(high, -multiplier.shift, round=True)
    return b.cast(b.clamp(high, i16.minimum, i16.maximum), i16)


def _cell(b: RuleBuilder, gates: Value, state: Value) -> tuple[Value, Value]:
    """The new state, int16, and activation, uint8."""
    shape = state.type.sizes
    logistic, tanh = constant(logistic_table()), constant(tanh_table(LOGISTIC_BITS))

    def gate(place: int) -> Value:
        part = b.slice(gates, (0, place * shape[1]), shape)
        return _looked_up(b, part, tanh if place == 1 else logistic)

    def product(x: Value, y: Value) -> Value:
        return b.arithmetic_right_shift(b.mul(x, y), 15, round=True)

    i, g, f, o = (gate(place) for place in range(4))
    remembered = product(f, b.cast(state, i32))
    new = b.clamp(b.add(rounding_shift(b, product(i, g), _STATE_BITS), remembered), i16.minimum, i16.maximum)
    twice = b.clamp(b.mul(new, 2), i16.minimum, i16.maximum)
    activation = rounding_shift(b, product(o, _looked_up(b, b.cast(twice, i16), tanh)), 8)
    activation = b.add(b.clamp(activation, i8.minimum, i8.maximum), 128)
    return b.cast(new, i16), b.cast(activation, ui8)


def _looked_up(b: RuleBuilder, x: Value, table: Value) -> Value:
    """The entries of an int16 table for an int16 x, in int32."""
    return b.cast(b.emit(Table16Bit, [x, table], i16), i32)


# What an integer LSTM consists of: the operands and numbers of its gates.
#
# The operands are those of kernels/lstm_shared.h. An input gate without weights is 1 - the forget gate. Each gate has
# one multiplier, which `_channels` repeats for its cells; the weights of all gates are joined into one matrix.


_HIDDEN = 4
"""The number of the intermediate that is the hidden tensor."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: weights of the input and of the output state, optionally a bias, a peephole and a layer norm."""

    input: Value
    recurrent: Value
    bias: Value | None
    peephole: Value | None
    norm: Value | None
    scale: float
    """Of the sum, before a layer norm or the activation."""


@dataclass(frozen=True, slots=True)
class Lstm:
    """An LSTM whose shapes, types and weights are those of the integer kernel."""

    gates: dict[str, Gate]
    """In the order of the joined matrices: "input" (unless it is 1 - "forget"), "forget", "output", "cell"."""
    source: UniformQuantizedType
    output_state: Value
    state: UniformQuantizedType
    cell_state: Value
    cell_exponent: int
    hidden: UniformQuantizedType
    projection: Value | None
    projection_bias: Value | None
    cells: int
    outputs: int

    def ignored_zero_point(self) -> bool:
        """Whether weights have a zero point, which the kernel ignores."""
        groups = ((g.input, g.recurrent, g.peephole, g.norm) for g in self.gates.values())
        weights = [v for v in (*(v for group in groups for v in group), self.projection) if v is not None]
        return any(has_zero_point(v) for v in weights)

    def input_factor(self, kernel_set: KernelSet) -> QuantizedMultiplier:
        """The factor of the products with the input, per cell of each gate."""
        weights = [_scale_of(g.input) for g in self.gates.values()]
        return kernel_set.lstm_gates(self.source.scale, weights, self._gate_scales, self.cells)

    def recurrent_factor(self, kernel_set: KernelSet) -> QuantizedMultiplier:
        """The factor of the products with the output state, per cell of each gate."""
        weights = [_scale_of(g.recurrent) for g in self.gates.values()]
        return kernel_set.lstm_gates(self.state.scale, weights, self._gate_scales, self.cells)

    @property
    def _gate_scales(self) -> list[float]:
        return [g.scale for g in self.gates.values()]


def _scale_of(value: Value) -> float:
    """The scale of a tensor that is quantized per layer."""
    element = value.type.element
    assert isinstance(element, UniformQuantizedType)
    return element.scale


def _read_lstm(op: LSTM | UnidirectionalSequenceLSTM) -> Lstm:
    """The parts of the operator; NotApplicable where the integer kernel does not take them."""
    if len(op.intermediates) != 5:
        raise NotApplicable(f"the kernel of 8-bit gates has no integer form ({len(op.intermediates)} intermediates)")
    hidden, projection, projection_bias = op.intermediates[_HIDDEN], op.projection, op.projection_bias
    output_state, cell_state = op.output_state, op.cell_state
    if output_state is None or cell_state is None or hidden is None:
        raise NotApplicable("a state or the hidden tensor is left out")
    gates = _gates_of(op)
    values = [v for g in gates.values() for v in (g.input, g.recurrent)] + ([projection] if projection else [])
    wide = [v for g in gates.values() for v in (g.peephole, g.norm) if v is not None]
    biases = [v for v in (*(g.bias for g in gates.values()), projection_bias) if v is not None]
    wrong = _unlike([op.input, output_state, *values], i8) or _unlike([cell_state, *wide], i16)
    if wrong or any(v.type.storage != i32 for v in biases):
        raise NotApplicable(wrong or "a bias is not int32")
    if not all(v.is_constant for v in (*values, *wide, *biases)):
        raise NotApplicable("the weights are not constants")
    if (
        not gates.keys() >= {"forget", "cell", "output"}
        or any(v.type.rank != 2 for v in values)
        or not isinstance(hidden.type.element, UniformQuantizedType)
    ):
        raise NotApplicable("a gate is left out, its weights are not a matrix, or the hidden tensor has no scale")
    cells, outputs = gates["output"].input.type.shape[0], gates["output"].recurrent.type.shape[1]  # type: ignore[index]
    source, state, cell = per_layer(op, [op.input, output_state, cell_state])
    with kernel_parameters:
        exponent = power_of_two(cell.scale)
    if "input" not in gates and exponent not in CELLS_WITH_TANH:
        raise NotApplicable(f"the cell state's scale is 2^{exponent}, for which the kernel has no tanh")
    if projection is None and cells != outputs:
        raise NotApplicable(f"{cells} cells give {outputs} outputs without a projection")
    order = [name for name in ("input", "forget", "output", "cell") if name in gates]
    return Lstm(
        {name: gates[name] for name in order},
        source,
        output_state,
        state,
        cell_state,
        exponent,
        hidden.type.element,
        projection,
        projection_bias,
        int(cells or 0),
        int(outputs or 0),
    )


def _gates_of(op: LSTM | UnidirectionalSequenceLSTM) -> dict[str, Gate]:
    """The gates that have weights and, with a layer norm, a scale before it; the cell gate has no peephole."""
    tensors = {
        "input": (op.input_to_input, op.recurrent_to_input, op.input_bias, op.cell_to_input, op.input_norm),
        "forget": (op.input_to_forget, op.recurrent_to_forget, op.forget_bias, op.cell_to_forget, op.forget_norm),
        "cell": (op.input_to_cell, op.recurrent_to_cell, op.cell_bias, None, op.cell_norm),
        "output": (op.input_to_output, op.recurrent_to_output, op.output_bias, op.cell_to_output, op.output_norm),
    }
    gates: dict[str, Gate] = {}
    for (name, parts), inner in zip(tensors.items(), op.intermediates, strict=False):
        weights, recurrent, bias, peephole, norm = parts
        scale: float | None = GATE_SCALE
        if norm is not None:
            element = None if inner is None else inner.type.element
            scale = element.scale if isinstance(element, UniformQuantizedType) else None
        if weights is not None and recurrent is not None and scale is not None:
            gates[name] = Gate(weights, recurrent, bias, peephole, norm, scale)
    return gates


def _unlike(values: list[Value], storage: object) -> str:
    """The tensor that is not quantized per layer or not stored as `storage`, in words; empty if there is none."""
    for value in values:
        if value.type.storage != storage or not isinstance(value.type.element, UniformQuantizedType):
            return f"'{value.name}' is not {storage} quantized per layer, which the integer kernel asks for"
    return ""


# The layer norm of an integer LSTM's gate: int16 values of a row, less their mean, divided by their standard deviation.
#
#     m = trunc(1024 sum(x) / n)
#     v = (sum(x^2) floor(2^20 / n) - m^2) / 2^20, truncated; the kernel's guard where that is less than 1
#     y = saturate(round(round((1024 x - m) / sqrt(v)) * weight + bias) / 1024) * scale * 2^12)
#
# v is put together from 11-bit digits of the squares and 13-bit digits of m, so that nothing leaves int32. Source:
# kernels/internal/reference/portable_tensor_utils.cc (PortableApplyLayerNorm).


def layer_norm(b: RuleBuilder, x: Value, weights: np.ndarray, bias: np.ndarray, scale: float) -> Value:
    """The norm of i32 rows [batch, n] of int16 values, in i32."""
    n = int(weights.size)
    mean = _mean(b, x, n)
    variance = _variance(b, x, mean, n)
    guard = max(1, int(np.float32(10000) * np.float32(scale)))
    variance = b.select(b.greater(1, variance), guard, variance)
    mantissa, shift = inverse_square_root(b, variance)
    centred = b.sub(b.mul(x, 1024), mean)
    normal = rounding_shift(b, b.mul(centred, mantissa, shift=31), shift)
    weighted = b.add(b.mul(normal, weights[None]), bias[None])
    result = scaled(b, rounding_shift(b, weighted, 10), b.kernel_set.lstm_norm(scale), i16, 1 << 21)
    return b.cast(result, i32)


def _mean(b: RuleBuilder, x: Value, n: int) -> Value:
    """trunc(1024 sum / n), from the quotient and the remainder."""
    total = b.reduce("sum", x, 1)
    quotient = b.int_div(total, n)
    rest = b.sub(total, b.mul(quotient, n))
    return b.add(b.mul(quotient, 1024), b.int_div(b.mul(rest, 1024), n))


def _variance(b: RuleBuilder, x: Value, mean: Value, n: int) -> Value:
    """floor((sum(x^2) t - m^2) / 2^20), t = floor(2^20 / n).

    The terms are p0 + p1 2^11 + p2 2^22 - q0 - q1 2^14 - q2 2^26; each is cut at 2^20, and the lower parts are summed.
    """
    square = b.mul(x, x)
    digits = [_low(b, square, 11), _low(b, _right(b, square, 11), 11), _right(b, square, 22)]
    p0, p1, p2 = (b.mul(b.reduce("sum", d, 1), (1 << 20) // n) for d in digits)
    size = b.maximum(mean, b.sub(0, mean))
    low, high = _low(b, size, 13), _right(b, size, 13)
    q0, q1, q2 = b.mul(low, low), b.mul(low, high), b.mul(high, high)
    above = b.add(b.add(_right(b, p0, 20), _right(b, p1, 9)), _left(b, p2, 2))
    above = b.sub(above, b.add(b.add(_right(b, q0, 20), _right(b, q1, 6)), _left(b, q2, 6)))
    below = b.add(_low(b, p0, 20), _left(b, _low(b, p1, 9), 11))
    below = b.sub(below, b.add(_low(b, q0, 20), _left(b, _low(b, q1, 6), 14)))
    return b.add(above, _right(b, below, 20))


def _right(b: RuleBuilder, x: Value, bits: int) -> Value:
    return b.arithmetic_right_shift(x, bits)


def _left(b: RuleBuilder, x: Value, bits: int) -> Value:
    return b.logical_left_shift(x, bits)


def _low(b: RuleBuilder, x: Value, bits: int) -> Value:
    return b.bitwise_and(x, (1 << bits) - 1)


class _Step:
    """Emits steps for a batch: gates, cell state, hidden state, in int32. ValueError where the kernel's arithmetic
    leaves int32."""

    def __init__(
        self, b: RuleBuilder, parts: Lstm, batch: int, whole_batch: bool, cell_clip: float, projection_clip: float
    ) -> None:
        self.b = b
        self.parts = parts
        self.batch = batch
        self.whole_batch = whole_batch  # else item by item, as the kernel does where the batch is the first dim
        self.names = list(parts.gates)
        gates = parts.gates.values()
        self.width = len(parts.gates) * parts.cells
        self.input = _joined(b, [g.input for g in gates])
        self.recurrent = _joined(b, [g.recurrent for g in gates])
        biases = [bias_of(b, None if g.norm else g.bias, parts.cells, i32).array for g in gates]
        self.bias = constant(np.concatenate(biases).astype(np.int32))
        self.none = constant(sized.zeros(self.width, np.int32))
        self.cell_clip = clip_bound(cell_clip, 2.0**parts.cell_exponent, i16.maximum)
        self.projection_clip = clip_bound(projection_clip, parts.state.scale, i8.maximum)
        self.logistic = constant(logistic_table())
        self.gate_tanh = constant(tanh_table(LOGISTIC_BITS))
        known = parts.cell_exponent in CELLS_WITH_TANH
        self.cell_tanh = constant(tanh_table(15 + parts.cell_exponent)) if known else None

    def from_input(self, x: Value) -> Value:
        """The products of the gates with input rows [N, 1, 1, depth]: int16 [N, 1, 1, width]."""
        parts, zero = self.parts, self.parts.source.zero_point
        rows = (x.type.shape or (None,))[0]
        sums = self.b.conv2d(x, self.input, self.bias, (rows, 1, 1, self.width), input_zp=zero)
        bounds = bounds_of(parts.source, self.input, (1, 2, 3), 0, self.bias)
        gate = parts.source.replace(storage=i16, zero_point=0, storage_min=i16.minimum, storage_max=i16.maximum)
        return requantize(self.b, sums, parts.input_factor(self.b.kernel_set), gate, "NONE", bounds).value

    def run(self, inputs: Value, h: Value, c: Value) -> tuple[Value, Value]:
        """The next hidden state, int8 [batch, outputs], and cell state, int32 [batch, cells]."""
        b, sums = self.b, self._sums(inputs, h)
        f = self._activated("forget", sums, c)
        g = self._activated("cell", sums, None)
        i = self._activated("input", sums, c) if "input" in self.names else b.sub(i16.maximum, f)
        remembered = rounding_shift(b, b.mul(f, c), 15)
        new = rounding_shift(b, b.mul(i, g), 30 + self.parts.cell_exponent)
        if self.parts.cell_exponent < CELLS_WITH_TANH[0]:
            new = b.cast(b.cast(new, i16), i32)  # which the kernel stores, wrapped, before it adds
        low, high = (-self.cell_clip, self.cell_clip) if self.cell_clip else (i16.minimum, i16.maximum)
        c = b.clamp(b.add(remembered, new), low, high)
        o = self._activated("output", sums, c)
        through = i if self.cell_tanh is None else _looked_up(b, b.cast(c, i16), self.cell_tanh)
        return self._hidden(b.mul(o, through)), c

    def _sums(self, inputs: Value, h: Value) -> Value:
        """The gates' sums [batch, width], saturated to int16, in int32."""
        b, parts = self.b, self.parts
        x = b.reshape(h, (self.batch, 1, 1, parts.outputs))
        rows = (self.batch, 1, 1, self.width)
        products = b.conv2d(x, self.recurrent, self.none, rows, input_zp=parts.state.zero_point)
        low, high = bounds_of(parts.state, self.recurrent, (1, 2, 3), 0, self.none).range
        factor = parts.recurrent_factor(b.kernel_set)
        mantissa, left = factor.multipliers
        reach = max(-low, high)
        if reach << max(int(left.max()), 0) >= 1 << 31 or reach * float(factor.scale.max()) >= 2.0**31 - 2.0**16:
            raise ValueError("the scaled product with the output state can leave int32")
        sums = b.reshape(products, (self.batch, self.width))
        recurrent = b.rescale(sums, (mantissa, left), i32, input_range=(low, high))
        return b.clamp(b.add(recurrent, b.cast(inputs, i32)), i16.minimum, i16.maximum)

    def _activated(self, name: str, sums: Value, c: Value | None) -> Value:
        """A gate in Q0.15, in int32."""
        b, cells, gate = self.b, self.parts.cells, self.parts.gates[name]
        start, shape = self.names.index(name) * cells, (self.batch, cells)
        x = b.slice(sums, (0, start), shape)
        if gate.peephole is not None and c is not None:
            x = b.clamp(b.add(x, self._peephole(gate, c)), i16.minimum, i16.maximum)
        if gate.norm is not None:
            bias = bias_of(b, gate.bias, cells, i32).array
            x = layer_norm(b, x, b.value(gate.norm).array, bias, _scale_of(gate.norm))
        return _looked_up(b, b.cast(x, i16), self.gate_tanh if name == "cell" else self.logistic)

    def _peephole(self, gate: Gate, c: Value) -> Value:
        """The kernel goes through the cells of a batch, or of one item, with a row of as many weights as outputs."""
        b, parts = self.b, self.parts
        assert gate.peephole is not None
        multiplier = b.kernel_set.lstm_peephole(parts.cell_exponent, _scale_of(gate.peephole), gate.scale)
        if multiplier.shift > 0:
            raise ValueError("the scaled product with the cell state can leave int32")
        if parts.outputs > parts.cells:
            raise ValueError("the kernel reads peepholes beyond their end where there are more outputs than cells")
        rows = self.batch if self.whole_batch else 1
        weights = sized.zeros(rows * parts.cells, np.int64)
        weights[: rows * parts.outputs] = sized.tile(b.value(gate.peephole).array[: parts.outputs], rows)
        return b.rescale(b.mul(c, weights.reshape(rows, parts.cells)), multiplier, i32)

    def _hidden(self, product: Value) -> Value:
        """The output state of a product in Q0.30."""
        b, parts, hidden = self.b, self.parts, self.parts.hidden
        multiplier = b.kernel_set.lstm_hidden(hidden.scale)
        if parts.projection is None:
            return scaled(b, product, multiplier, i8, 1 << 30, output_zp=hidden.zero_point)
        inner = scaled(b, product, multiplier, i8, 1 << 30, output_zp=-hidden.zero_point)
        weights = _joined(b, [parts.projection])
        bias = bias_of(b, parts.projection_bias, parts.outputs, i32).array.astype(np.int64)
        bias = bias + hidden.zero_point * weights.array.astype(np.int64).sum((1, 2, 3))
        offset = constant(bias.astype(np.int32))
        x, shape = b.reshape(inner, (self.batch, 1, 1, parts.cells)), (self.batch, 1, 1, parts.outputs)
        sums = b.reshape(b.conv2d(x, weights, offset, shape), (self.batch, parts.outputs))
        factor = b.kernel_set.lstm_projection(_scale_of(parts.projection), hidden.scale, parts.state.scale)
        bounds = bounds_of(hidden.replace(zero_point=0), weights, (1, 2, 3), 0, offset)
        result, clip = requantize(b, sums, factor, parts.state, "NONE", bounds).value, self.projection_clip
        return b.clamp(result, -clip, clip) if clip else result


def _joined(b: RuleBuilder, matrices: list[Value]) -> Value:
    """Matrices of constants, one below the other, as filters [rows, 1, 1, columns]."""
    rows = np.concatenate([b.value(m).array for m in matrices])
    return constant(np.ascontiguousarray(rows.reshape(len(rows), 1, 1, -1)))


_MOST_STEPS = 512


@rule(LSTM, UnidirectionalSequenceLSTM)
def lstm(op: LSTM | UnidirectionalSequenceLSTM, b: RuleBuilder) -> Answer:
    """The steps one after another; the state is variables."""
    x = op.input
    if isinstance(op, LSTM) and op.kernel_type == "BASIC":
        return _basic_lstm(op, b)
    if x.type.shape is None or not x.type.is_static or len(x.type.shape) not in (2, 3):
        raise NotApplicable("the batch or the number of steps is not known; bind the shapes of the inputs")
    parts = _read_lstm(op)
    *outer, depth = x.type.sizes
    time_major = len(outer) == 1 or isinstance(op, LSTM) or op.time_major
    steps, batch = ([1, *outer] if len(outer) == 1 else outer) if time_major else outer[::-1]
    if steps > _MOST_STEPS:
        raise NotApplicable(f"{steps} steps would be written out, more than {_MOST_STEPS}; shorten the sequence")
    with no_parameters:
        step = _Step(b, parts, batch, time_major, op.cell_clip, op.proj_clip)
        inputs = step.from_input(b.reshape(b.value(x), (steps * batch, 1, 1, depth)))
        rows = _all_steps(step, inputs, steps)
    whole = b.concat(rows, 0 if time_major else 1) if steps > 1 else rows[0]
    result = b.reshape(whole, (*outer, parts.outputs))
    note = f"{steps} step{'s'[: steps > 1]} written out; its state is variables"
    warnings = [misread(op), IGNORED_ZERO_POINT if parts.ignored_zero_point() else ""]
    return Rewritten([result], note=note, warning="; ".join(w for w in warnings if w))


def _all_steps(step: _Step, inputs: Value, steps: int) -> list[Value]:
    """The outputs, [1, batch, outputs] each, or [batch, 1, outputs]. The state is read before and written after."""
    b, parts, batch, width, time_major = step.b, step.parts, step.batch, step.width, step.whole_batch
    inputs = b.reshape(inputs, (steps, batch, width) if time_major else (batch, steps, width))
    h = read_state(b, parts.output_state, (batch, parts.outputs))
    c = b.cast(read_state(b, parts.cell_state, (batch, parts.cells)), i32)
    rows: list[Value] = []
    for t in range(steps):
        start, size = ((t, 0, 0), (1, batch, width)) if time_major else ((0, t, 0), (batch, 1, width))
        part = b.slice(inputs, start, size) if steps > 1 else inputs
        h, c = step.run(b.reshape(part, (batch, width)), h, c)
        rows.append(b.reshape(h, (1, batch, parts.outputs) if time_major else (batch, 1, parts.outputs)))
    write_state(b, parts.output_state, h)
    write_state(b, parts.cell_state, b.cast(c, i16))
    return rows
