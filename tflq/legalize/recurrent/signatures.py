"""Recurrent operators: which of them a kernel of TFLite computes.

    SVDF                int8 with a time filter and state of int16, RELU; hybrid
    LSTM, sequence      int8 with gates and cell state in int16 (five intermediate tensors); hybrid
    LSTM                int8 with 8-bit gates (twelve); the basic kernel on uint8
    RNN, sequences,     hybrid
    BIDIRECTIONAL ones

Hybrid: float activations and state, 8-bit weights all of one type. A kernel reads its operands as these types whatever
they are, most without a word. What no kernel computes is computed in float, on a float state of its own, which starts
as 0.

Sources: kernels/svdf.cc, lstm.cc, unidirectional_sequence_lstm.cc, bidirectional_sequence_lstm.cc, basic_rnn.cc,
unidirectional_sequence_rnn.cc, bidirectional_sequence_rnn.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tflq.ir.core import Op
from tflq.ir.types import ScalarType, UniformQuantizedType, f32, i8, i16, i32, ui8
from tflq.legalize.reference.accumulate import unused_zero_point
from tflq.numerics.recurrent import power_of_two
from tflq.passes.effects import is_variable

__all__ = ["missing_state", "reads_past_state", "without_kernel"]

_STATES: Final = frozenset("hc")
_LSTM = "x" + "w" * 8 + "p" * 3 + "b" * 4 + "wb" + "hc" + "nnnn"
_BOTH = "w" * 8 + "p" * 3 + "b" * 4 + "wb"
_ROLES: Final[Mapping[str, str]] = {
    "tfl.svdf": "xwtbc",
    "tfl.lstm": _LSTM,
    "tfl.unidirectional_sequence_lstm": _LSTM,
    "tfl.bidirectional_sequence_lstm": "x" + _BOTH * 2 + "hchc" + "x" + "w" * 8,
    "tfl.rnn": "xwwbh",
    "tfl.unidirectional_sequence_rnn": "xwwbh",
    "tfl.bidirectional_sequence_rnn": "xwwbhwwbhxww",
}
"""What each operand is: the input, weights, peepholes, biases, layer norms, filters over time, states of the output (h)
and of the cell (c)."""

_INTEGER_LSTM: Final = {"x": i8, "w": i8, "p": i16, "b": i32, "h": i8, "c": i16, "n": i16, "y": i8}
_INTEGER: Final[Mapping[str, Mapping[str, ScalarType]]] = {
    "tfl.svdf": {"x": i8, "w": i8, "t": i16, "b": i32, "c": i16, "y": i8},
    "tfl.lstm": _INTEGER_LSTM,
    "tfl.unidirectional_sequence_lstm": _INTEGER_LSTM,
}
_BASIC: Final = (ui8, ui8, ui8, i32, i16, ui8, i16, ui8, i16)
"""Operands and results of the basic kernel of LSTM."""
_SMALLEST_CELL, _LARGEST_CELL = -15, -9


def without_kernel(op: Op, *, real: bool = False) -> str:
    """Why no kernel computes a recurrent operator on its types; empty if one does. `real`: parameters must hold."""
    name = op.name[4:].upper()
    if _is_basic(op):
        storages = tuple(v.type.storage for v in op.values)
        return "" if storages == _BASIC else f"the basic kernel of LSTM has no form on {_listed(storages)}"
    roles = [*zip(_ROLES[op.name], op.operands, strict=False), *(("y", v) for v in op.results)]
    hybrid = op.operand(0).type.storage.is_float
    weights = op.operand(1 if op.optional(1) is not None else 2).type.storage
    expected = _hybrid(weights) if hybrid else _INTEGER.get(op.name)
    if expected is None or (hybrid and weights not in (i8, ui8)):
        return f"{name} has no kernel for {op.operand(0).type.storage} activations with {weights} weights"
    if problem := missing_state(op):
        return problem
    for role, value in roles:
        if value is None:
            continue
        if value.type.storage != expected[role]:
            return f"{name}'s kernel reads '{value.name}', which is {value.type.storage}, as {expected[role]}"
        if value.type.quantized and not isinstance(value.type.element, UniformQuantizedType):
            return f"{name}'s kernel reads one scale of '{value.name}', which has several"
    problem = "" if hybrid else _parameters(op)
    if reads_past_state(op):
        problem = f"{name}'s kernel reads past its state where outputs are merged and the batch comes first"
    if problem or not real:
        return problem
    unused = (v for role, v in roles if v is not None and (v.is_constant or role == "c") and unused_zero_point(v))
    return next((f"{name}'s kernel disregards the zero point of '{v.name}'" for v in unused), "")


def _is_basic(op: Op) -> bool:
    return op.name == "tfl.lstm" and op.attributes.get("kernel_type", "FULL") == "BASIC"


def _hybrid(weights: ScalarType) -> Mapping[str, ScalarType]:
    return {**dict.fromkeys("xbhcny", f32), **dict.fromkeys("wpt", weights)}


def _parameters(op: Op) -> str:
    """Why the integer kernel refuses what an operator of its types says, or computes nothing sensible."""
    if op.name == "tfl.svdf":
        return "" if op.attributes.get("fused_activation_function") == "RELU" else "SVDF's int8 kernel takes RELU alone"
    counts = (5, 12) if op.name == "tfl.lstm" else (5,)
    if len(op.intermediates) not in counts:
        asked = " or ".join(map(str, counts))
        return f"the kernel asks for {asked} intermediate tensors, and there are {len(op.intermediates)}"
    cell = op.operand(19)
    scale = getattr(cell.type.element, "scale", None)
    try:
        exponent = power_of_two(scale) if scale else 0
    except ValueError as error:
        return str(error)
    if not _SMALLEST_CELL <= exponent <= _LARGEST_CELL:
        return f"the scale of '{cell.name}' is not one of 2^{_SMALLEST_CELL} to 2^{_LARGEST_CELL}, as the kernel asks"
    return ""


def _listed(storages: Sequence[ScalarType]) -> str:
    return ", ".join(dict.fromkeys(map(str, storages)))


def reads_past_state(op: Op) -> bool:
    """Whether BIDIRECTIONAL_SEQUENCE_LSTM's kernel, float or hybrid, finds no state for the second item of a batch:
    it steps by the width of the merged outputs (lstm_eval.cc, EvalFloat and EvalHybrid)."""
    a, shape = op.attributes, op.operand(0).type.shape
    merged = op.name == "tfl.bidirectional_sequence_lstm" and a["merge_outputs"] and not a["time_major"]
    return bool(merged) and (shape is None or shape[0] != 1)


def missing_state(op: Op) -> str:
    """Which state of a recurrent operator no kernel could update; empty of all others."""
    for role, value in zip(_ROLES.get(op.name, ""), op.operands, strict=False):
        if role in _STATES and value is not None and not is_variable(value) and not _is_basic(op):
            return f"its state '{value.name}' is no variable tensor, which every kernel asks for: mark it as one"
    return ""
