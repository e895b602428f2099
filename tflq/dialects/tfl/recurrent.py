"""Operators with a state between runs: recurrent cells and tables. Variables are in `variables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit, agree, plus, product, text
from tflq.dialects.tfl.state import HANDLE
from tflq.dialects.traits import Impure, Recurrent, StaysQuantized, Unquantized
from tflq.ir.ops import Value
from tflq.ir.types import Shape, i8, ui8

STATE = StaysQuantized("recurrent operator: no other builtin has a state that reset_all_variables() resets")


def _check_state(site: DeclaredShapes, state: Value | None, batch: int | None, units: int | None) -> None:
    """A state is a variable that holds `units` elements for each item of the batch."""
    if state is None:
        return
    elements, needed = product(site.dims(state)), product((batch, units))
    if elements is not None and needed is not None and elements != needed:
        raise Misfit(f"its state '{state.name}' is {text(site.dims(state))}, not of batch {batch}")


def _expect(site: DeclaredShapes, value: Value | None, *expected: int | None) -> None:
    """Misfit if an operand that is there has other dims."""
    if value is None:
        return
    dims = site.dims(value)
    pairs = zip(dims, expected, strict=False)
    if len(dims) != len(expected) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise Misfit(f"'{value.name}' is {text(dims)}, where {text(expected)} is expected")


# The 17 operands of the full kernels that one direction of an LSTM has. Source: kernels/lstm_shared.h.

_WEIGHTS: Final = 4
_PEEPHOLES: Final = slice(8, 11)
_BIASES: Final = slice(11, 15)
_PROJECTION: Final = 15
_OF_DIRECTION: Final = 17


def _check_gates(
    site: DeclaredShapes, operands: Sequence[Value | None], width: int | None, *, diagonals: bool = False
) -> tuple[int | None, int | None]:
    """The cells and the outputs of an LSTM, which the weights of its output gate say; the others fit these.

    diagonals: Recurrent weights may be vectors, which stand for diagonal matrices. Source: CheckInputTensorDimensions
    in kernels/unidirectional_sequence_lstm.cc.
    """
    into, back = operands[:_WEIGHTS], operands[_WEIGHTS : 2 * _WEIGHTS]
    if None in into[1:] or None in back[1:]:
        raise Misfit("it lacks weights of the forget gate, the cell or the output gate, which its kernel reads")
    if (into[0] is None) != (back[0] is None):
        raise Misfit("its input gate has weights for only one of the input and the output state")
    last = site.dims(back[-1], least=1 if diagonals else 2)
    cells, outputs = last[0], last[-1]
    for weights in into:
        _expect(site, weights, cells, width)
    for weights in back:
        diagonal = diagonals and weights is not None and len(site.dims(weights)) == 1
        _expect(site, weights, *((cells,) if diagonal else (cells, outputs)))
    for each in (*operands[_PEEPHOLES], *operands[_BIASES]):
        _expect(site, each, cells)
    _expect(site, operands[_PROJECTION], outputs, cells)
    _expect(site, operands[_PROJECTION + 1], outputs)
    return cells, outputs


_STATES: Final = 1 + _OF_DIRECTION
"""The place of the output state, before that of the cell."""
_NORMS: Final = _STATES + 2
_OF_FULL: Final = (_NORMS, _NORMS + _WEIGHTS)


def _check_full(
    site: DeclaredShapes,
    operands: Sequence[Value | None],
    batch: int | None,
    width: int | None,
    *,
    diagonals: bool = False,
) -> int | None:
    """The outputs of an LSTM in one direction, whose operands fit each other."""
    if len(operands) not in _OF_FULL:
        raise Misfit(f"the full kernel has {_OF_FULL[0]} or {_OF_FULL[1]} operands, not {len(operands)}")
    cells, outputs = _check_gates(site, operands[1:_STATES], width, diagonals=diagonals)
    _check_state(site, operands[_STATES], batch, outputs)
    _check_state(site, operands[_STATES + 1], batch, cells)
    for norm in operands[_NORMS:]:
        _expect(site, norm, cells)
    return outputs


def _second_width(site: DeclaredShapes, second: Value | None, dims: Dims, *, weighted: bool) -> int | None:
    """The elements of a second input, which has the batch and the steps of the first, of `dims`. Without weights of
    its own it also has as many elements."""
    if second is None:
        if weighted:
            raise Misfit("it has weights for a second input, and no second input")
        return None
    width = site.dims(second, 3)[2] if weighted else dims[2]
    _expect(site, second, *dims[:2], width)
    return width


def _units(site: DeclaredShapes, width: int | None, weights: Value, recurrent: Value, bias: Value) -> int | None:
    """The units of a basic cell. Each has a bias, and a weight for every element of the input and every unit."""
    units, length = site.dims(weights, 2)
    agree(length, width, "the input's elements and those of the weights")
    for dim in site.dims(recurrent, 2):
        agree(units, dim, "units and recurrent weights")
    return agree(units, site.dims(bias, 1)[0], "units and biases")


def _batch(dims: Dims, *, time_major: bool) -> int | None:
    return dims[1 if time_major else 0]


def _both_ways(dims: Dims, forward: int | None, backward: int | None, *, merged: bool) -> list[Shape]:
    """Results of the steps from the start and of those from the end, joined or each by itself."""
    units = [plus(forward, backward)] if merged else [forward, backward]
    return [(*dims[:2], each) for each in units]


_OF_BASIC: Final = 5


class LSTM(Operator, name="tfl.lstm", newest=4):
    """One step of an LSTM. Source: kernels/lstm.cc."""

    input: Value = operand()
    input_to_input: Value | None = operand(optional=True)
    input_to_forget: Value = operand()
    input_to_cell: Value = operand()
    input_to_output: Value | None = operand(optional=True)
    recurrent_to_input: Value | None = operand(optional=True)
    recurrent_to_forget: Value | None = operand(optional=True)
    recurrent_to_cell: Value | None = operand(optional=True)
    recurrent_to_output: Value | None = operand(optional=True)
    cell_to_input: Value | None = operand(optional=True)
    cell_to_forget: Value | None = operand(optional=True)
    cell_to_output: Value | None = operand(optional=True)
    input_bias: Value | None = operand(optional=True)
    forget_bias: Value | None = operand(optional=True)
    cell_bias: Value | None = operand(optional=True)
    output_bias: Value | None = operand(optional=True)
    projection: Value | None = operand(optional=True)
    projection_bias: Value | None = operand(optional=True)
    output_state: Value | None = operand(optional=True)
    cell_state: Value | None = operand(optional=True)
    input_norm: Value | None = operand(optional=True)
    forget_norm: Value | None = operand(optional=True)
    cell_norm: Value | None = operand(optional=True)
    output_norm: Value | None = operand(optional=True)
    output: Value = result()
    state: Value | None = result(optional=True)
    activation: Value | None = result(optional=True)
    concat: Value | None = result(optional=True)
    fused_activation_function: str = attribute(default="NONE")
    cell_clip: float = attribute(default=0.0, finite=True)
    proj_clip: float = attribute(default=0.0, finite=True)
    kernel_type: str = attribute(default="FULL")
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (STATE, Recurrent())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        """The basic kernel has data, activation, weights, biases and state; its results are activation, state, joined
        input and gates."""
        if self.kernel_type != "BASIC":
            batch, width = site.dims(self.input, 2)
            return [(batch, _check_full(site, self.operands, batch, width))]
        if len(self.operands) != _OF_BASIC:
            raise Misfit(f"the basic kernel has {_OF_BASIC} operands, not {len(self.operands)}")
        _, previous, weights, biases, state = self.operands
        batch, width = site.dims(self.input, 2)
        depth = site.dims(previous, 2)[1]
        gates, total = None if depth is None else 4 * depth, plus(width, depth)
        _expect(site, previous, batch, depth)
        _expect(site, weights, gates, total)
        _expect(site, biases, gates)
        _expect(site, state, batch, depth)
        return [(batch, depth), (batch, depth), (batch, total), (batch, gates)]


class UnidirectionalSequenceLSTM(Operator, name="tfl.unidirectional_sequence_lstm", newest=3):
    """An LSTM over a sequence. Source: kernels/unidirectional_sequence_lstm.cc."""

    input: Value = operand()
    input_to_input: Value | None = operand(optional=True)
    input_to_forget: Value = operand()
    input_to_cell: Value = operand()
    input_to_output: Value = operand()
    recurrent_to_input: Value | None = operand(optional=True)
    recurrent_to_forget: Value = operand()
    recurrent_to_cell: Value = operand()
    recurrent_to_output: Value = operand()
    cell_to_input: Value | None = operand(optional=True)
    cell_to_forget: Value | None = operand(optional=True)
    cell_to_output: Value | None = operand(optional=True)
    input_bias: Value | None = operand(optional=True)
    forget_bias: Value = operand()
    cell_bias: Value = operand()
    output_bias: Value = operand()
    projection: Value | None = operand(optional=True)
    projection_bias: Value | None = operand(optional=True)
    output_state: Value = operand()
    cell_state: Value = operand()
    input_norm: Value | None = operand(optional=True)
    forget_norm: Value | None = operand(optional=True)
    cell_norm: Value | None = operand(optional=True)
    output_norm: Value | None = operand(optional=True)
    output: Value = result()
    fused_activation_function: str = attribute(default="NONE")
    cell_clip: float = attribute(default=0.0, finite=True)
    proj_clip: float = attribute(default=0.0, finite=True)
    time_major: bool = attribute(default=False)
    asymmetric_quantize_inputs: bool = attribute(default=False)
    diagonal_recurrent_tensors: bool = attribute(default=False)
    traits = (STATE, Recurrent())

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input, least=2)
        batch = _batch(dims, time_major=self.time_major) if len(dims) == 3 else dims[0]
        return (*dims[:-1], _check_full(site, self.operands, batch, dims[-1], diagonals=True))


_OF_BOTH_WAYS: Final = 48
"""Operands of BIDIRECTIONAL_SEQUENCE_LSTM: the data, 17 weights and biases and 2 states each way, others."""


class BidirectionalSequenceLSTM(Operator, name="tfl.bidirectional_sequence_lstm", newest=3):
    """Two LSTMs over a sequence, one from its end. Source: kernels/bidirectional_sequence_lstm.cc."""

    inputs: list[Value | None] = operand(variadic=True)
    fw_output: Value = result()
    bw_output: Value | None = result(optional=True)
    fused_activation_function: str = attribute(default="NONE")
    cell_clip: float = attribute(default=0.0, finite=True)
    proj_clip: float = attribute(default=0.0, finite=True)
    merge_outputs: bool = attribute(default=False)
    time_major: bool = attribute(default=True)
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (STATE, Recurrent())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        if len(self.inputs) != _OF_BOTH_WAYS:
            raise Misfit(f"it has {len(self.inputs)} operands, not {_OF_BOTH_WAYS}")
        dims = site.dims(self.inputs[0], 3)
        batch = _batch(dims, time_major=self.time_major)
        weighted = any(weights is not None for weights in self.inputs[40:])
        width = _second_width(site, self.inputs[39], dims, weighted=weighted)
        outputs = list[int | None]()
        for first, states, aux in ((1, 35, 40), (1 + _OF_DIRECTION, 37, 44)):
            cells, units = _check_gates(site, self.inputs[first : first + _OF_DIRECTION], dims[2])
            _check_state(site, self.inputs[states], batch, units)
            _check_state(site, self.inputs[states + 1], batch, cells)
            for weights in self.inputs[aux : aux + _WEIGHTS]:
                _expect(site, weights, cells, width)
            outputs.append(units)
        return _both_ways(dims, *outputs, merged=self.merge_outputs)


class BasicCell(Operator):
    """A basic recurrent cell: activation(weights · input + recurrent · state + bias), which is the next state."""

    input: Value = operand()
    weights: Value = operand()
    recurrent: Value = operand()
    bias: Value = operand()
    state: Value = operand()
    output: Value = result()
    traits = (STATE, Recurrent())

    def units(self, site: DeclaredShapes, batch: int | None, width: int | None) -> int | None:
        """The number of units of the weights, the bias and the state."""
        units = _units(site, width, self.weights, self.recurrent, self.bias)
        _check_state(site, self.state, batch, units)
        return units


class RNN(BasicCell, name="tfl.rnn", newest=3):
    """One step of a basic recurrent cell. Source: kernels/basic_rnn.cc."""

    fused_activation_function: str = attribute(default="NONE")
    asymmetric_quantize_inputs: bool = attribute(default=False)

    def infer(self, site: DeclaredShapes) -> Dims:
        batch, width = site.dims(self.input, 2)
        return (batch, self.units(site, batch, width))


class UnidirectionalSequenceRNN(BasicCell, name="tfl.unidirectional_sequence_rnn", newest=3):
    """A basic recurrent cell over a sequence. Source: kernels/unidirectional_sequence_rnn.cc."""

    time_major: bool = attribute(default=False)
    fused_activation_function: str = attribute(default="NONE")
    asymmetric_quantize_inputs: bool = attribute(default=False)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input, 3)
        return (*dims[:2], self.units(site, _batch(dims, time_major=self.time_major), dims[2]))


class BidirectionalSequenceRNN(Operator, name="tfl.bidirectional_sequence_rnn", newest=3):
    """Two basic recurrent cells over a sequence, one from its end. Source: kernels/bidirectional_sequence_rnn.cc."""

    input: Value = operand()
    fw_weights: Value = operand()
    fw_recurrent: Value = operand()
    fw_bias: Value = operand()
    fw_state: Value = operand()
    bw_weights: Value = operand()
    bw_recurrent: Value = operand()
    bw_bias: Value = operand()
    bw_state: Value = operand()
    aux: Value | None = operand(optional=True)
    fw_aux: Value | None = operand(optional=True)
    bw_aux: Value | None = operand(optional=True)
    fw_output: Value = result()
    bw_output: Value | None = result(optional=True)
    time_major: bool = attribute(default=False)
    fused_activation_function: str = attribute(default="NONE")
    merge_outputs: bool = attribute(default=False)
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (STATE, Recurrent())

    @property
    def goes_round(self) -> bool:
        """Whether the hybrid kernel goes through the sequence as many times as it has steps, the state going on."""
        hybrid = self.input.type.storage.is_float and self.fw_weights.type.storage in (i8, ui8)
        return hybrid and self.time_major and (self.input.type.shape or (None,))[0] != 1

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        dims = site.dims(self.input, 3)
        forward = _units(site, dims[2], self.fw_weights, self.fw_recurrent, self.fw_bias)
        backward = _units(site, dims[2], self.bw_weights, self.bw_recurrent, self.bw_bias)
        weighted = self.fw_aux is not None or self.bw_aux is not None
        width = _second_width(site, self.aux, dims, weighted=weighted)
        _expect(site, self.fw_aux, forward, width)
        _expect(site, self.bw_aux, backward, width)
        _check_state(site, self.fw_state, _batch(dims, time_major=self.time_major), forward)
        _check_state(site, self.bw_state, _batch(dims, time_major=self.time_major), backward)
        return _both_ways(dims, forward, backward, merged=self.merge_outputs)


class SVDF(Operator, name="tfl.svdf", newest=4):
    """A layer of rank-1 filters over the last inputs. Source: kernels/svdf.cc."""

    input: Value = operand()
    feature: Value = operand()
    time: Value = operand()
    bias: Value | None = operand(optional=True)
    state: Value = operand()
    output: Value = result()
    rank: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (STATE, Recurrent())

    def infer(self, site: DeclaredShapes) -> Dims:
        batch, width = site.dims(self.input, 2)
        filters, length = site.dims(self.feature, 2)
        agree(length, width, "the input's elements and those of the filters")
        lines, memory = site.dims(self.time, 2)
        filters = agree(filters, lines, "filters and filters over time")
        _check_state(site, self.state, batch, product((filters, memory)))
        if filters is not None and filters % self.rank:
            raise Misfit(f"{filters} filters are not a multiple of the rank {self.rank}")
        units = None if filters is None else filters // self.rank
        return (batch, units if self.bias is None else agree(units, site.dims(self.bias, 1)[0], "units and biases"))


# Tables.


_OF_TABLES: Final = Unquantized("its tensors are handles, keys and strings")


class Hashtable(Operator, name="tfl.hashtable"):
    """The handle of a table. Source: kernels/hashtable.cc."""

    table: Value = result(HANDLE)
    table_id: int = attribute(default=0)
    key_dtype: str = attribute(default="FLOAT32")
    value_dtype: str = attribute(default="FLOAT32")
    traits = (Impure(), _OF_TABLES)

    def infer(self, _: DeclaredShapes) -> Shape:
        return (1,)


class HashtableFind(Operator, name="tfl.hashtable_find"):
    """Values by keys. Source: kernels/hashtable_find.cc."""

    table: Value = operand(HANDLE)
    keys: Value = operand()
    default: Value = operand()
    output: Value = result()
    traits = (Impure(), _OF_TABLES)

    def infer(self, site: DeclaredShapes) -> Shape:
        return site.dims(self.keys)


class HashtableImport(Operator, name="tfl.hashtable_import"):
    """Fills a table. Source: kernels/hashtable_import.cc."""

    table: Value = operand(HANDLE)
    keys: Value = operand()
    values: Value = operand()
    traits = (Impure(), _OF_TABLES)

    def infer(self, _: DeclaredShapes) -> list[Shape]:
        return []


class HashtableSize(Operator, name="tfl.hashtable_size"):
    """The number of its entries. Source: kernels/hashtable_size.cc."""

    table: Value = operand(HANDLE)
    output: Value = result()
    traits = (Impure(), _OF_TABLES)

    def infer(self, _: DeclaredShapes) -> Shape:
        return (1,)
