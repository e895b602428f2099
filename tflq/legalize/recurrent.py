"""Recurrent operators: which of them a kernel of TFLite computes, their state, and SVDF (`lstm.py` has LSTM).

    SVDF                int8 with a time filter and state of int16, RELU; hybrid
    LSTM, sequence      int8 with gates and cell state in int16 (five intermediate tensors); hybrid
    LSTM                int8 with 8-bit gates (twelve); the basic kernel on uint8
    RNN, sequences,     hybrid
    BIDIRECTIONAL ones

Hybrid: float activations and state, 8-bit weights all of one type. A kernel reads its operands as these types
whatever they are, mostly without an error. Operators that no kernel computes are computed in float, on a new float
state, which starts as 0; so are those that read or write a tensor of another width, whose result could be anything.

What a kernel runs and gets wrong (`misread`) is kept as it is, with a warning: several scales, which it does not see;
signed bytes as unsigned ones; a cell state's scale for which it has no tanh.

Sources: kernels/svdf.cc, lstm.cc, unidirectional_sequence_lstm.cc, bidirectional_sequence_lstm.cc, basic_rnn.cc,
unidirectional_sequence_rnn.cc, bidirectional_sequence_rnn.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tflq.base import sized
from tflq.dialects.effects import is_variable
from tflq.dialects.tfl.recurrent import (
    LSTM,
    RNN,
    SVDF,
    BidirectionalSequenceLSTM,
    BidirectionalSequenceRNN,
    UnidirectionalSequenceLSTM,
    UnidirectionalSequenceRNN,
)
from tflq.dialects.tosa.movement import Variable, VariableRead, VariableWrite
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i8, i16, i32, ui8
from tflq.legalize.probing import kernel_name, per_layer
from tflq.legalize.rescaled import (
    IGNORED_ZERO_POINT,
    bias_of,
    bounds_of,
    has_zero_point,
    requantize,
    reshape_constant,
)
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.convolution import power_of_two
from tflq.numerics.requantize.scaling import Bounds

_STATES: Final = frozenset("hc")
_DIRECTION = "w" * 8 + "p" * 3 + "b" * 4 + "wb"
_LSTM = "x" + _DIRECTION + "hc" + "nnnn"
_ROLES: Final[Mapping[type[Op], str]] = {
    SVDF: "xwtbc",
    LSTM: _LSTM,
    UnidirectionalSequenceLSTM: _LSTM,
    BidirectionalSequenceLSTM: "x" + _DIRECTION * 2 + "hchc" + "x" + "w" * 8,
    RNN: "xwwbh",
    UnidirectionalSequenceRNN: "xwwbh",
    BidirectionalSequenceRNN: "xwwbhwwbhxww",
}
"""The role of each operand: input (x), weights, peepholes, biases, layer norms (n), filters over time, states of the
output (h) and of the cell (c). Results are y."""

_INTEGER_LSTM: Final = {"x": i8, "w": i8, "p": i16, "b": i32, "h": i8, "c": i16, "n": i16, "y": i8}
_INTEGER: Final[Mapping[type[Op], Mapping[str, ScalarType]]] = {
    SVDF: {"x": i8, "w": i8, "t": i16, "b": i32, "c": i16, "y": i8},
    LSTM: _INTEGER_LSTM,
    UnidirectionalSequenceLSTM: _INTEGER_LSTM,
}
BASIC_STORAGES: Final = (ui8, ui8, ui8, i32, i16, ui8, i16, ui8, i16)
"""Operands and results of the basic kernel of LSTM."""
CELLS_WITH_TANH: Final = range(-15, -8)
_CELLS_TO_SHIFT: Final[Mapping[type[Op], range]] = {
    LSTM: range(-30, -8),
    UnidirectionalSequenceLSTM: range(-30, 2),
}
"""Exponents of a cell state's scale: those for which the kernels have a tanh, and those with which they run, by shifts
of 0 to 31 bits."""
_SAME_WIDTH: Final[Mapping[type[Op], str]] = {SVDF: "wty", LSTM: "hy", UnidirectionalSequenceLSTM: "hy"}
"""Roles in which kernels read int8 as uint8, and the reverse, without an error."""


def without_kernel(op: Op, *, real: bool = False, stays: bool = True) -> str:
    """Why no kernel computes a recurrent operator on its types; empty if one does. `real`: parameters must hold;
    `stays`: whether the kernel stays; else only errors of it are allowed that the rules reproduce."""
    name = kernel_name(op)
    if _is_basic(op):
        storages = tuple(v.type.storage for v in op.tensors)
        listed = ", ".join(dict.fromkeys(map(str, storages)))
        return "" if storages == BASIC_STORAGES else f"the basic kernel of LSTM has no form on {listed}"
    hybrid, weights = _hybrid_weights(op)
    expected = _expected(op)
    if expected is None or (hybrid and weights not in (i8, ui8)):
        return f"{name} has no kernel for {_first(op, 'x').type.storage} activations with {weights} weights"
    if problem := missing_state(op):
        return problem
    for role, value in _roles(op):
        if value.type.storage != expected[role] and not _as_bytes(op, role, value, expected[role]):
            return f"{name}'s kernel reads '{value.name}', which is {value.type.storage}, as {expected[role]}"
    problem = "" if hybrid else _parameters(op)
    if reads_past_state(op):
        problem = f"{name}'s kernel reads past its state where outputs are merged and the batch comes first"
    if not problem and (real or not stays):
        known = not real and not _is_coupled(op)
        problem = _wrong_type(op) if known else misread(op)
    if problem or not real:
        return problem
    unused = (v for role, v in _roles(op) if (v.is_constant or role == "c") and has_zero_point(v))
    return next((f"{name}'s kernel ignores the zero point of '{v.name}'" for v in unused), repeated(op))


def repeated(op: Op) -> str:
    """The reason why a kernel goes through its sequence more than once, with the state it left; empty if it does
    not."""
    if not isinstance(op, BidirectionalSequenceRNN) or not op.goes_round:
        return ""
    return (
        "the hybrid kernel of BIDIRECTIONAL_SEQUENCE_RNN goes through a time-major sequence as many times as it has "
        "steps, with the state that the last time left"
    )


def misread(op: Op) -> str:
    """The error of a kernel that runs the operator, in words; empty if there is none."""
    return "" if _is_basic(op) else _wrong_type(op) or _tanh_of_cell(op)


def _tanh_of_cell(op: Op) -> str:
    """The behaviour of an integer LSTM's kernel that has no tanh for the scale of its cell state; empty if it has
    one."""
    if not isinstance(op, (LSTM, UnidirectionalSequenceLSTM)) or _hybrid_weights(op)[0]:
        return ""
    if len(op.intermediates) != 5 or _cell_exponent(op) in CELLS_WITH_TANH:
        return ""
    least, most = CELLS_WITH_TANH[0], CELLS_WITH_TANH[-1]
    without = "whatever its memory holds" if _is_coupled(op) else "the input gate"
    return (
        f"{kernel_name(op)}'s kernel has a tanh only for cell states of scale 2^{least} to 2^{most}, and "
        f"'{_cell(op).name}' has another: the output gate is multiplied by {without} instead"
    )


def _wrong_type(op: Op) -> str:
    """The fault of a tensor that the kernel reads as one of another type, in words; empty if there is none."""
    name, expected = kernel_name(op), _expected(op)
    for role, value in _roles(op):
        if value.type.quantized and not isinstance(value.type.element, UniformQuantizedType):
            return f"{name}'s kernel reads only one of the several scales of '{value.name}'"
        if expected is not None and value.type.storage != expected[role]:
            return f"{name}'s kernel reads '{value.name}', which is {value.type.storage}, as {expected[role]}"
    return ""


def _roles(op: Op) -> list[tuple[str, Value]]:
    """Operands and results, each with its role."""
    pairs = [*zip(_ROLES[type(op)], op.operands, strict=False), *(("y", v) for v in op.results)]
    return [(role, value) for role, value in pairs if value is not None]


def _hybrid_weights(op: Op) -> tuple[bool, ScalarType]:
    """Whether activations are float; the type of the weights."""
    return _first(op, "x").type.storage.is_float, _first(op, "w").type.storage


def _first(op: Op, role: str) -> Value:
    return next(value for known, value in _roles(op) if known == role)


def _is_coupled(op: Op) -> bool:
    """Whether an LSTM has no weights for its input gate, which then is 1 - the forget gate."""
    return isinstance(op, (LSTM, UnidirectionalSequenceLSTM)) and op.input_to_input is None


def _expected(op: Op) -> Mapping[str, ScalarType] | None:
    """The type that the kernel reads each role as."""
    hybrid, weights = _hybrid_weights(op)
    if hybrid:
        return {**dict.fromkeys("xbhcny", f32), **dict.fromkeys("wpt", weights)}
    return _INTEGER.get(type(op))


def _as_bytes(op: Op, role: str, value: Value, expected: ScalarType) -> bool:
    """Whether the kernel reads a tensor as one of the other sign."""
    return role in _SAME_WIDTH.get(type(op), "") and {value.type.storage, expected} == {i8, ui8}


def _is_basic(op: Op) -> bool:
    return isinstance(op, LSTM) and op.kernel_type == "BASIC"


def _parameters(op: Op) -> str:
    """Why the integer kernel refuses the parameters of an operator of its types, or computes nonsense; empty if it does
    not."""
    if isinstance(op, SVDF):
        return "" if op.fused_activation_function == "RELU" else "SVDF's int8 kernel takes only RELU"
    counts = (5, 12) if isinstance(op, LSTM) else (5,)
    if len(op.intermediates) not in counts:
        expected = " or ".join(map(str, counts))
        return f"the kernel asks for {expected} intermediate tensors, and there are {len(op.intermediates)}"
    if len(op.intermediates) == 12 or not isinstance(op, (LSTM, UnidirectionalSequenceLSTM)):
        return ""  # this kernel ignores the scale of the cell state
    try:
        exponent = _cell_exponent(op)
    except ValueError as error:
        return str(error)
    wide = _CELLS_TO_SHIFT[type(op)]
    if exponent not in wide:
        return f"the scale of '{_cell(op).name}' is not one of 2^{wide[0]} to 2^{wide[-1]}, as the kernel asks"
    return ""


def unset(op: Op) -> str:
    """Why an integer kernel runs without having set its parameters, since it does not check whether that succeeded;
    empty if it does not. Source: calls of PopulateQuantizedLstmParams8x8_16 in Prepare of kernels/lstm.cc and
    unidirectional_sequence_lstm.cc."""
    if type(op) not in _CELLS_TO_SHIFT or _is_basic(op) or _hybrid_weights(op)[0] or len(op.intermediates) != 5:
        return ""
    if _wrong_type(op) or not (problem := _parameters(op)):
        return ""
    return f"the kernel runs without having set its parameters, since {problem}"


def _cell(op: LSTM | UnidirectionalSequenceLSTM) -> Value:
    if op.cell_state is None:
        raise ValueError("the cell state is left out")
    return op.cell_state


def _cell_exponent(op: LSTM | UnidirectionalSequenceLSTM) -> int:
    """The exponent of the cell state's scale. ValueError if it is not a power of two."""
    element = _cell(op).type.element
    if not isinstance(element, UniformQuantizedType):
        raise ValueError(f"'{_cell(op).name}' has several scales, and a shift by the one is not defined")  # noqa: TRY004
    return power_of_two(element.scale)


def reads_past_state(op: Op) -> bool:
    """Whether BIDIRECTIONAL_SEQUENCE_LSTM's kernel, float or hybrid, finds no state for the second item of a batch:
    it steps by the width of the merged outputs (lstm_eval.cc, EvalFloat and EvalHybrid)."""
    if not isinstance(op, BidirectionalSequenceLSTM) or not op.merge_outputs or op.time_major:
        return False
    shape = _first(op, "x").type.shape
    return shape is None or shape[0] != 1


def missing_state(op: Op) -> str:
    """The state of a recurrent operator that is not a variable tensor, so that no kernel could update it, in words;
    empty if all are."""
    for role, value in zip(_ROLES.get(type(op), ""), op.operands, strict=False):
        if role in _STATES and value is not None and not is_variable(value) and not _is_basic(op):
            return f"its state '{value.name}' is not a variable tensor, as every kernel asks: mark it as one"
    return ""


# State: a variable tensor becomes a variable of the integer form.
#
# It starts as its zero point where it is int8, else as 0. Source: core/api/tensor_utils.cc (ResetVariableTensor).


def read_state(b: RuleBuilder, tensor: Value, shape: tuple[int, ...]) -> Value:
    """The content of a variable tensor, in that shape."""
    name, new = b.variables.name(tensor)
    storage = tensor.type.storage
    if new:
        element = tensor.type.element
        zero = element.zero_point if isinstance(element, UniformQuantizedType) and storage == i8 else 0
        b.op(Variable, [b.constant(sized.full(shape, zero), storage)], [], {"name": name})
    return b.op(VariableRead, [], [TensorType(shape, storage)], {"name": name}).result


def write_state(b: RuleBuilder, tensor: Value, value: Value) -> None:
    """Writes a value, of the shape that was read, to a variable tensor."""
    name, _ = b.variables.name(tensor)
    b.op(VariableWrite, [value], [], {"name": name})


# SVDF on int8 with an int16 state: a filter over the features, a window over time.
#
#     state[b, f, :] = state[b, f, 1:], saturate((x[b] - zero point) . feature[f] * s1)     int16
#     y[b, u] = saturate((sum over the unit's filters f and m of state[b, f, m] * time[f, m] + bias[u]) * s2
#                        + zero point)
#
# RELU, the only activation that the kernel takes, is the saturation. Sums wrap in int32.
# Sources: kernels/svdf.cc, kernels/internal/reference/svdf.h (EvalIntegerSVDF).


@rule(SVDF)
def svdf(op: SVDF, b: RuleBuilder) -> Answer:
    """tosa.conv2d of the features, the state, a product and tosa.reduce_sum over time."""
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
    batch, depth = x.type.sizes
    filters, memory = time.type.sizes
    source, weights, taps, memory_type, target = elements
    unbiased = b.constant(sized.zeros(filters), i32)
    sums = b.conv2d(
        b.reshape(b.value(x), (batch, 1, 1, depth)),
        rows := reshape_constant(b, b.value(feature), (filters, 1, 1, depth)),
        unbiased,
        (batch, 1, 1, filters),
        input_zp=source.zero_point,
    )
    factor = b.kernel_set.svdf(source, weights, memory_type)
    bounds = bounds_of(source, rows, (1, 2, 3), 0, unbiased)
    newest = requantize(b, sums, factor, memory_type.replace(zero_point=0), "NONE", bounds)
    window = _pushed(b, state, b.reshape(newest.value, (batch, filters, 1)), memory)
    total, bounds = _over_time(op, b, window, time, bias)
    factor = b.kernel_set.svdf(memory_type, taps, target)
    result = requantize(b, total, factor, target, "NONE", bounds)
    ignored = any(has_zero_point(v) for v in (feature, time, state))
    others = dict.fromkeys((newest.warning, IGNORED_ZERO_POINT if ignored else ""))
    others.pop(result.warning, None)
    answer = result.rewritten(None, *others)
    exception = "range" if newest.warning else answer.exception
    return Rewritten(answer.results, "its state is a variable", answer.warning, exception)


def _pushed(b: RuleBuilder, state: Value, newest: Value, memory: int) -> Value:
    """The state with its oldest column gone and a new last one."""
    batch, filters = newest.type.sizes[:2]
    shape = (batch, filters, memory)
    window = newest
    if memory > 1:
        columns = b.reshape(read_state(b, state, (batch, filters * memory)), shape)
        older = b.slice(columns, (0, 0, 1), (batch, filters, memory - 1))
        window = b.concat([older, newest], 2)
        write_state(b, state, b.reshape(window, (batch, filters * memory)))
    return window


def _over_time(op: SVDF, b: RuleBuilder, window: Value, time: Value, bias: Value | None) -> tuple[Value, Bounds]:
    """The weighted sums over time and over the filters of a unit, in int32, and their bounds."""
    batch, filters, memory = window.type.sizes
    rank = op.rank
    units, terms = filters // rank, rank * memory
    weights = b.value(time).array.astype(np.int64).reshape(1, filters, memory)
    products = b.reshape(b.mul(b.cast(window, i32), weights), (batch, units, terms))
    most = 32768 * np.abs(weights).reshape(units, terms).sum(1)
    if bias is not None:
        offset = bias_of(b, bias, units, i32)
        added = b.constant(sized.tile(offset.array.reshape(1, units, 1), (batch, 1, 1)))
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
    low = b.reduce("sum", b.bitwise_and(terms, 0xFFFF), axis)
    high = b.reduce("sum", b.arithmetic_right_shift(terms, 16), axis)
    high = b.add(high, b.arithmetic_right_shift(low, 16))
    return b.add(b.logical_left_shift(high, 16), b.bitwise_and(low, 0xFFFF))
