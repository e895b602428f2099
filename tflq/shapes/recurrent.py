"""Shapes of recurrent operators; their states are variables, whose batch must be the input's.

Sources: kernels/basic_rnn.cc, unidirectional_sequence_rnn.cc, bidirectional_sequence_rnn.cc, svdf.cc, lstm.cc,
unidirectional_sequence_lstm.cc, bidirectional_sequence_lstm.cc.
"""

from __future__ import annotations

from tflq.dialects.tfl.recurrent import (
    LSTM,
    RNN,
    SVDF,
    BidirectionalSequenceLSTM,
    BidirectionalSequenceRNN,
    UnidirectionalSequenceLSTM,
    UnidirectionalSequenceRNN,
)
from tflq.ir.types import Shape
from tflq.shapes.site import Dims, Misfit, Site, agree, product, shape, text

__all__: list[str] = []


def _state(site: Site, index: int, batch: int | None, units: int | None) -> None:
    """A state holds `units` elements for each item of the batch."""
    if not site.has(index):
        return
    held, needed = product(site.dims(index)), product((batch, units))
    if held is not None and needed is not None and held != needed:
        state = site.value(index)
        raise Misfit(f"its state '{state.name}' is {text(site.dims(index))}, not of batch {batch}")


@shape(RNN)
def _rnn(site: Site) -> Shape:
    batch, units = site.dims(0, 2)[0], site.dims(1, 2)[0]
    _state(site, 4, batch, units)
    return (batch, units)


def _batch(site: Site, dims: Dims) -> int | None:
    return dims[1 if site.attributes["time_major"] else 0]


@shape(UnidirectionalSequenceRNN)
def _sequence_rnn(site: Site) -> Shape:
    dims, units = site.dims(0, 3), site.dims(1, 2)[0]
    _state(site, 4, _batch(site, dims), units)
    return (*dims[:2], units)


@shape(BidirectionalSequenceRNN)
def _both_ways_rnn(site: Site) -> list[Shape]:
    dims = site.dims(0, 3)
    forward, backward = site.dims(1, 2)[0], site.dims(5, 2)[0]
    _state(site, 4, _batch(site, dims), forward)
    _state(site, 8, _batch(site, dims), backward)
    return _both(site, dims, forward, backward)


def _both(site: Site, dims: Dims, forward: int | None, backward: int | None) -> list[Shape]:
    if site.attributes["merge_outputs"]:
        return [(*dims[:2], None if forward is None or backward is None else forward + backward)]
    return [(*dims[:2], forward), (*dims[:2], backward)]


@shape(SVDF)
def _svdf(site: Site) -> Shape:
    batch, filters = site.dims(0, 2)[0], site.dims(1, 2)[0]
    memory = site.dims(2, 2)[1]
    _state(site, 4, batch, product((filters, memory)))
    return (batch, None if filters is None else filters // site.attributes["rank"])


@shape(LSTM)
def _lstm(site: Site) -> list[Shape]:
    """The basic kernel has data, activation, weights, biases and state; its results are activation, state, joined input
    and gates."""
    if site.attributes["kernel_type"] != "BASIC":
        batch, units = site.dims(0, 2)[0], site.dims(8, 2)[1]
        _state(site, 18, batch, units)
        return [(batch, units), *[v.type.shape for v in site.op.results[1:]]]
    batch, depth = site.dims(0, 2)[0], site.dims(1, 2)[1]
    agree(batch, site.dims(1, 2)[0], "the batches of data and activation")
    total = site.dims(2, 2)[1]
    gates = None if depth is None else 4 * depth
    return [(batch, depth), (batch, depth), (batch, total), (batch, gates)]


@shape(UnidirectionalSequenceLSTM)
def _sequence_lstm(site: Site) -> Shape:
    dims = site.dims(least=2)
    diagonal = site.attributes.get("diagonal_recurrent_tensors", False)
    units = site.dims(8)[0] if diagonal else site.dims(8, 2)[1]
    _state(site, 18, _batch(site, dims) if len(dims) == 3 else dims[0], units)
    return (*dims[:-1], units)


@shape(BidirectionalSequenceLSTM)
def _both_ways_lstm(site: Site) -> list[Shape]:
    dims = site.dims(0, 3)
    forward, backward = site.dims(8, 2)[1], site.dims(25, 2)[1]
    _state(site, 35, _batch(site, dims), forward)
    _state(site, 37, _batch(site, dims), backward)
    return _both(site, dims, forward, backward)
