"""Operators with a state between runs."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.traits.effects import Kept, Recurrent
from tflq.ir.core import Value
from tflq.ir.types import i8, ui8

__all__ = [
    "LSTM",
    "RNN",
    "SVDF",
    "BidirectionalSequenceLSTM",
    "BidirectionalSequenceRNN",
    "UnidirectionalSequenceLSTM",
    "UnidirectionalSequenceRNN",
]

STATE = Kept("recurrent operator: no other builtin has a state that reset_all_variables() resets")


class LSTM(Operator, name="tfl.lstm", newest=4):
    """One step of an LSTM. Source: kernels/lstm.cc."""

    __slots__ = ()
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
    traits = (
        STATE,
        Recurrent(),
    )


class UnidirectionalSequenceLSTM(Operator, name="tfl.unidirectional_sequence_lstm", newest=3):
    """An LSTM over a sequence. Source: kernels/unidirectional_sequence_lstm.cc."""

    __slots__ = ()
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
    traits = (
        STATE,
        Recurrent(),
    )


class BidirectionalSequenceLSTM(Operator, name="tfl.bidirectional_sequence_lstm", newest=3):
    """Two LSTMs over a sequence, one from its end. Source: kernels/bidirectional_sequence_lstm.cc."""

    __slots__ = ()
    inputs: list[Value | None] = operand(variadic=True)
    fw_output: Value = result()
    bw_output: Value | None = result(optional=True)
    fused_activation_function: str = attribute(default="NONE")
    cell_clip: float = attribute(default=0.0, finite=True)
    proj_clip: float = attribute(default=0.0, finite=True)
    merge_outputs: bool = attribute(default=False)
    time_major: bool = attribute(default=True)
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (
        STATE,
        Recurrent(),
    )


class RNN(Operator, name="tfl.rnn", newest=3):
    """One step of a basic recurrent cell. Source: kernels/basic_rnn.cc."""

    __slots__ = ()
    input: Value = operand()
    weights: Value = operand()
    recurrent: Value = operand()
    bias: Value = operand()
    state: Value = operand()
    output: Value = result()
    fused_activation_function: str = attribute(default="NONE")
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (STATE, Recurrent())


class UnidirectionalSequenceRNN(Operator, name="tfl.unidirectional_sequence_rnn", newest=3):
    """A basic recurrent cell over a sequence. Source: kernels/unidirectional_sequence_rnn.cc."""

    __slots__ = ()
    input: Value = operand()
    weights: Value = operand()
    recurrent: Value = operand()
    bias: Value = operand()
    state: Value = operand()
    output: Value = result()
    time_major: bool = attribute(default=False)
    fused_activation_function: str = attribute(default="NONE")
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (STATE, Recurrent())


class BidirectionalSequenceRNN(Operator, name="tfl.bidirectional_sequence_rnn", newest=3):
    """Two basic recurrent cells over a sequence, one from its end. Source: kernels/bidirectional_sequence_rnn.cc."""

    __slots__ = ()
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


class SVDF(Operator, name="tfl.svdf", newest=4):
    """A layer of rank-1 filters over the last inputs. Source: kernels/svdf.cc."""

    __slots__ = ()
    input: Value = operand()
    feature: Value = operand()
    time: Value = operand()
    bias: Value | None = operand(optional=True)
    state: Value = operand()
    output: Value = result()
    rank: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (
        STATE,
        Recurrent(),
    )
