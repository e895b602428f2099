"""Shapes of recurrent operators; their states are variables, whose batch must be the input's.

Sources: kernels/basic_rnn.cc, unidirectional_sequence_rnn.cc, bidirectional_sequence_rnn.cc, svdf.cc, lstm.cc,
unidirectional_sequence_lstm.cc, bidirectional_sequence_lstm.cc.
"""

from __future__ import annotations

from typing import TypeAlias

from tflq.dialects.inference import Dims, Misfit, agree, product, text
from tflq.dialects.tfl.recurrent import (
    LSTM,
    RNN,
    SVDF,
    BidirectionalSequenceLSTM,
    BidirectionalSequenceRNN,
    UnidirectionalSequenceLSTM,
    UnidirectionalSequenceRNN,
)
from tflq.ir.core import Value
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []

_Sequence: TypeAlias = (
    UnidirectionalSequenceRNN | BidirectionalSequenceRNN | UnidirectionalSequenceLSTM | BidirectionalSequenceLSTM
)


def _check_state(site: Site, state: Value | None, batch: int | None, units: int | None) -> None:
    """A state holds `units` elements for each item of the batch."""
    if state is None:
        return
    held, needed = product(site.dims(state)), product((batch, units))
    if held is not None and needed is not None and held != needed:
        raise Misfit(f"its state '{state.name}' is {text(site.dims(state))}, not of batch {batch}")


@shape_of(RNN)
def _rnn(op: RNN, site: Site) -> Shape:
    batch, units = site.dims(op.input, 2)[0], site.dims(op.weights, 2)[0]
    _check_state(site, op.state, batch, units)
    return (batch, units)


def _batch(op: _Sequence, dims: Dims) -> int | None:
    return dims[1 if op.time_major else 0]


@shape_of(UnidirectionalSequenceRNN)
def _sequence_rnn(op: UnidirectionalSequenceRNN, site: Site) -> Shape:
    dims, units = site.dims(op.input, 3), site.dims(op.weights, 2)[0]
    _check_state(site, op.state, _batch(op, dims), units)
    return (*dims[:2], units)


@shape_of(BidirectionalSequenceRNN)
def _both_ways_rnn(op: BidirectionalSequenceRNN, site: Site) -> list[Shape]:
    dims = site.dims(op.input, 3)
    forward, backward = site.dims(op.fw_weights, 2)[0], site.dims(op.bw_weights, 2)[0]
    _check_state(site, op.fw_state, _batch(op, dims), forward)
    _check_state(site, op.bw_state, _batch(op, dims), backward)
    return _both(op, dims, forward, backward)


def _both(
    op: BidirectionalSequenceRNN | BidirectionalSequenceLSTM, dims: Dims, forward: int | None, backward: int | None
) -> list[Shape]:
    if op.merge_outputs:
        return [(*dims[:2], None if forward is None or backward is None else forward + backward)]
    return [(*dims[:2], forward), (*dims[:2], backward)]


@shape_of(SVDF)
def _svdf(op: SVDF, site: Site) -> Shape:
    batch, filters = site.dims(op.input, 2)[0], site.dims(op.feature, 2)[0]
    memory = site.dims(op.time, 2)[1]
    _check_state(site, op.state, batch, product((filters, memory)))
    return (batch, None if filters is None else filters // op.rank)


@shape_of(LSTM)
def _lstm(op: LSTM, site: Site) -> list[Shape]:
    """The basic kernel has data, activation, weights, biases and state; its results are activation, state, joined input
    and gates."""
    if op.kernel_type != "BASIC":
        batch, units = site.dims(op.input, 2)[0], site.dims(op.recurrent_to_output, 2)[1]
        _check_state(site, op.output_state, batch, units)
        return [(batch, units), *[v.type.shape for v in op.results[1:]]]
    _, previous, weights, *_ = op.operands
    batch, depth = site.dims(op.input, 2)[0], site.dims(previous, 2)[1]
    agree(batch, site.dims(previous, 2)[0], "the batches of data and activation")
    total = site.dims(weights, 2)[1]
    gates = None if depth is None else 4 * depth
    return [(batch, depth), (batch, depth), (batch, total), (batch, gates)]


@shape_of(UnidirectionalSequenceLSTM)
def _sequence_lstm(op: UnidirectionalSequenceLSTM, site: Site) -> Shape:
    dims = site.dims(op.input, least=2)
    units = (
        site.dims(op.recurrent_to_output)[0]
        if op.diagonal_recurrent_tensors
        else site.dims(op.recurrent_to_output, 2)[1]
    )
    _check_state(site, op.output_state, _batch(op, dims) if len(dims) == 3 else dims[0], units)
    return (*dims[:-1], units)


@shape_of(BidirectionalSequenceLSTM)
def _both_ways_lstm(op: BidirectionalSequenceLSTM, site: Site) -> list[Shape]:
    dims = site.dims(op.inputs[0], 3)
    forward, backward = site.dims(op.inputs[8], 2)[1], site.dims(op.inputs[25], 2)[1]
    _check_state(site, op.inputs[35], _batch(op, dims), forward)
    _check_state(site, op.inputs[37], _batch(op, dims), backward)
    return _both(op, dims, forward, backward)
