"""RNN, both sequence RNNs and SVDF in float: steps written out one by one, state in variables.

    RNN     h = activation(x . w + a . v + h . r + bias)        a an auxiliary input
    SVDF    state[b, f, :] = state[b, f, 1:], x[b] . feature[f]
            y[b, u] = activation(sum of state * time over the unit's filters and over time + bias)

The products with the input are one convolution for all steps. Without auxiliary weights, the auxiliary input is the
input of the backward direction; where the batch comes first, the kernel ignores it. The hybrid kernel of both
directions goes through a time-major sequence as often as it has steps.

Sources: kernels/basic_rnn.cc, unidirectional_sequence_rnn.cc, bidirectional_sequence_rnn.cc,
internal/kernel_utils.cc, internal/reference/svdf.h.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, count

import numpy as np

from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.tfl.recurrent import RNN, SVDF, BidirectionalSequenceRNN, UnidirectionalSequenceRNN
from tflq.dialects.tosa.movement import VariableRead, VariableWrite
from tflq.formats.tosa.lowering.context import Tosa, joined, lowering, part
from tflq.formats.tosa.lowering.floats import factor, float_activation, need_float, real
from tflq.formats.tosa.lowering.matmul import multiplied_rows
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, f32

_Network = RNN | UnidirectionalSequenceRNN | BidirectionalSequenceRNN
_MOST_STEPS = 512


def _read_state(t: Tosa, tensor: Value, shape: tuple[int, ...]) -> Value:
    """The value of a float variable tensor, zeros at first."""
    t.need("variable", "the state of an operator")
    name = t.handles.get(tensor)
    if name is None:
        base = tensor.name or "state"
        name = next(n for n in chain([base], (f"{base}_{i}" for i in count(1))) if n not in t.variables)
        t.handles[tensor] = name
        t.variables[name] = t.constant(sized.zeros(shape), f32)
    return t.op(VariableRead, [], [TensorType(shape, f32)], {"name": name}).result


def _write_state(t: Tosa, tensor: Value, value: Value) -> None:
    t.op(VariableWrite, [value], [], {"name": t.handles[tensor]})


def _sizes(x: Value) -> tuple[int, ...]:
    """The shape of a value; Refused unless it is known."""
    shape = x.type.shape
    if shape is None or None in shape:
        raise Refused(f"the shape of '{x.name}' is not known")
    if 0 in shape:
        raise Refused(f"'{x.name}' {x.type} has no elements")
    return x.type.sizes


def _product(t: Tosa, x: Value, weights: Value, bias: Value | None = None) -> Value:
    """Rows [..., depth] by weights [units, depth], and a bias: [..., units]."""
    (*outer, depth), (units, *rest) = _sizes(x), _sizes(weights)
    if rest != [depth] or (bias is not None and _sizes(bias) != (units,)):
        biased = "" if bias is None else f" and biases {bias.type.shape}"
        raise Refused(f"its weights {weights.type.shape}{biased} do not fit rows of {depth}")
    rows = int(np.prod(outer))
    offset = t.constant(sized.zeros(units), f32) if bias is None else bias
    return t.reshape(multiplied_rows(t, t.reshape(x, (rows, 1, 1, depth)), weights, offset), (*outer, units))


def _steps_of(op: _Network, x: Value) -> tuple[int, int, int]:
    """The number of steps, the items of the batch, and which dim the steps are."""
    *outer, _ = _sizes(x)
    if len(outer) == 1:
        return 1, outer[0], 0
    axis = 1 if isinstance(op, RNN) or not op.time_major else 0
    if outer[axis] > _MOST_STEPS:
        raise Refused(f"{outer[axis]} steps would be written out, more than {_MOST_STEPS}", "shorten the sequence")
    return outer[axis], outer[1 - axis], axis


def _walked(op: _Network, t: Tosa, x: Value, step: Callable[[int], Value], *, backward: bool = False) -> Value:
    """The results [batch, units] of all steps, in one tensor with the input's layout."""
    steps, batch, axis = _steps_of(op, x)
    order = range(steps)[::-1] if backward else range(steps)
    rows = {place: step(place) for place in order}
    if len(_sizes(x)) == 2:
        return rows[0]
    units = _sizes(rows[0])[1]
    shape = (1, batch, units) if axis == 0 else (batch, 1, units)
    return joined(t, [t.reshape(rows[place], shape) for place in range(steps)], axis)


def _at(op: _Network, t: Tosa, values: Value, x: Value, place: int) -> Value:
    """One step, [batch, units], of values [steps, batch, units] or with the batch first."""
    _, batch, axis = _steps_of(op, x)
    if len(_sizes(values)) == 2:
        return values
    return t.reshape(part(t, values, axis, place, 1), (batch, _sizes(values)[-1]))


@lowering(RNN, UnidirectionalSequenceRNN)
def rnn(op: RNN | UnidirectionalSequenceRNN, t: Tosa) -> Value:
    need_float(t, op)
    x, bias = real(t, op.input), real(t, op.bias)
    weights, recurrent = (factor(op, t, v, 0) for v in (op.weights, op.recurrent))
    return _direction(op, t, x, _product(t, x, weights, bias), recurrent, op.state)


@lowering(BidirectionalSequenceRNN)
def both_ways(op: BidirectionalSequenceRNN, t: Tosa) -> list[Value]:
    need_float(t, op)
    x = real(t, op.input)
    sides = (
        (op.fw_weights, op.fw_recurrent, op.fw_bias, op.fw_state, op.fw_aux),
        (op.bw_weights, op.bw_recurrent, op.bw_bias, op.bw_state, op.bw_aux),
    )
    results = []
    for backward, (inner, outer, offset, state, aux) in enumerate(sides):
        weights, recurrent, bias = factor(op, t, inner, 0), factor(op, t, outer, 0), real(t, offset)
        source = x
        if op.aux is not None and aux is None and backward and op.time_major:
            source = real(t, op.aux)
        inputs = _product(t, source, weights, bias)
        if op.aux is not None and aux is not None:
            inputs = t.add(inputs, _product(t, real(t, op.aux), factor(op, t, aux, 0)))
        results.append(_direction(op, t, x, inputs, recurrent, state, backward=bool(backward)))
    return [joined(t, results, 2)] if op.merge_outputs else results


def _direction(
    op: _Network, t: Tosa, x: Value, inputs: Value, recurrent: Value, state: Value, *, backward: bool = False
) -> Value:
    _, batch, _ = _steps_of(op, x)
    units = _sizes(inputs)[-1]
    if _sizes(recurrent) != (units, units):
        raise Refused(f"its recurrent weights are {list(_sizes(recurrent))} for {units} units")
    hidden = [_read_state(t, state, (batch, _sizes(recurrent)[0]))]

    def step(place: int) -> Value:
        total = t.add(_at(op, t, inputs, x, place), _product(t, hidden[0], recurrent))
        hidden[0] = float_activation(t, total, op.fused_activation_function)
        return hidden[0]

    steps, _, _ = _steps_of(op, x)
    times = steps if isinstance(op, BidirectionalSequenceRNN) and op.goes_round else 1
    if steps * times > _MOST_STEPS:
        raise Refused(f"{steps} steps, each {times} times, would be written out, more than {_MOST_STEPS} in all")
    for _ in range(times):
        result = _walked(op, t, x, step, backward=backward)
    _write_state(t, state, hidden[0])
    return result


@lowering(SVDF)
def svdf(op: SVDF, t: Tosa) -> Value:
    need_float(t, op)
    x, feature, time = real(t, op.input), factor(op, t, op.feature, 0), real(t, op.time)
    (batch, _), (filters, memory) = _sizes(x), _sizes(time)
    units, rank = filters // op.rank, op.rank
    newest = t.reshape(_product(t, x, feature), (batch, filters, 1))
    cells = t.reshape(_read_state(t, op.state, (batch, filters * memory)), (batch, filters, memory))
    window = joined(t, [part(t, cells, 2, 1, memory - 1), newest], 2) if memory > 1 else newest
    _write_state(t, op.state, t.reshape(window, (batch, filters * memory)))
    terms = t.reshape(t.mul(window, t.reshape(time, (1, filters, memory))), (batch, units, rank * memory))
    result = t.reshape(t.reduce("sum", terms, 2), (batch, units))
    if op.bias is not None:
        result = t.add(result, t.reshape(real(t, op.bias), (1, units)))
    return float_activation(t, result, op.fused_activation_function)
