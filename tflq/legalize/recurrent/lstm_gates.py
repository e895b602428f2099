"""What an integer LSTM is made of: the operands and numbers of its gates, read off the operator.

The operands are those of kernels/lstm_shared.h. An input gate without weights is one less the forget gate. Multipliers
are one per gate: `channels` repeats them for the cells of all gates, whose weights are joined into one matrix each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.dialects.tfl.recurrent import LSTM, UnidirectionalSequenceLSTM
from tflq.ir.core import Value
from tflq.ir.types import UniformQuantizedType, i8, i16, i32
from tflq.legalize.recurrent.signatures import CELLS_WITH_TANH
from tflq.legalize.reference.generic.accumulate import unused_zero_point
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.numerics.recurrent import GATE_SCALE, peephole_scale, power_of_two, product_scale

__all__ = ["Gate", "Lstm", "read_lstm", "scale_of"]

_HIDDEN = 4
"""Which intermediate is the hidden tensor."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: weights of the input and of the output state, a bias; where there are, a peephole and a layer norm."""

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
    """In the order of the joined matrices: "input" (unless it is one less "forget"), "forget", "output", "cell"."""
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
        """Whether weights have a zero point: the kernel disregards it."""
        groups = ((g.input, g.recurrent, g.peephole, g.norm) for g in self.gates.values())
        weights = [v for v in (*(v for group in groups for v in group), self.projection) if v is not None]
        return any(unused_zero_point(v) for v in weights)

    def input_scales(self) -> np.ndarray:
        """Multipliers of the products with the input, per cell of each gate."""
        x = self.source.scale
        return self._channels([product_scale(scale_of(g.input), x, g.scale) for g in self.gates.values()])

    def recurrent_scales(self) -> np.ndarray:
        s = self.state.scale
        return self._channels([product_scale(scale_of(g.recurrent), s, g.scale) for g in self.gates.values()])

    def _channels(self, scales: list[float]) -> np.ndarray:
        return np.repeat(np.asarray(scales, np.float64), self.cells)

    def peephole_scale(self, gate: Gate) -> float:
        assert gate.peephole is not None
        return peephole_scale(self.cell_exponent, scale_of(gate.peephole), gate.scale)


def scale_of(value: Value) -> float:
    """The scale of a tensor that is quantized per layer."""
    element = value.type.element
    assert isinstance(element, UniformQuantizedType)
    return element.scale


def read_lstm(op: LSTM | UnidirectionalSequenceLSTM, b: RuleBuilder) -> Lstm:
    """The parts of the operator; NotApplicable where the integer kernel takes no such ones."""
    if len(op.intermediates) != 5:
        raise NotApplicable(f"the kernel of 8-bit gates has no integer form ({len(op.intermediates)} intermediates)")
    hidden, projection, projection_bias = op.intermediates[_HIDDEN], op.projection, op.projection_bias
    output_state, cell_state = op.output_state, op.cell_state
    if output_state is None or cell_state is None or hidden is None:
        raise NotApplicable("a state or the hidden tensor is left out")
    gates = _gates(op)
    values = [v for g in gates.values() for v in (g.input, g.recurrent)] + ([projection] if projection else [])
    wide = [v for g in gates.values() for v in (g.peephole, g.norm) if v is not None]
    biases = [v for v in (*(g.bias for g in gates.values()), projection_bias) if v is not None]
    wrong = _unlike([op.input, output_state, *values], i8) or _unlike([cell_state, *wide], i16)
    if wrong or any(v.type.storage != i32 for v in biases):
        raise NotApplicable(wrong or "a bias is not int32")
    if not all(v.is_constant for v in (*values, *wide, *biases)):
        raise NotApplicable("the weights are not constants")
    if (
        len(gates) < 3
        or any(v.type.rank != 2 for v in values)
        or not isinstance(hidden.type.element, UniformQuantizedType)
    ):
        raise NotApplicable("a gate is left out, its weights are no matrix, or the hidden tensor has no scale")
    cells, outputs = gates["output"].input.type.shape[0], gates["output"].recurrent.type.shape[1]  # type: ignore[index]
    source, state, cell = (v.type.element for v in (op.input, output_state, cell_state))
    assert isinstance(source, UniformQuantizedType)
    assert isinstance(state, UniformQuantizedType)
    assert isinstance(cell, UniformQuantizedType)
    try:
        exponent = power_of_two(cell.scale)
    except ValueError as error:
        raise NotApplicable(f"the kernel refuses these parameters: {error}") from error
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


def _gates(op: LSTM | UnidirectionalSequenceLSTM) -> dict[str, Gate]:
    """The gates that have weights, and with a layer norm a scale before it; the cell gate has no peephole."""
    tensors = {
        "input": (op.input_to_input, op.recurrent_to_input, op.input_bias, op.cell_to_input, op.input_norm),
        "forget": (op.input_to_forget, op.recurrent_to_forget, op.forget_bias, op.cell_to_forget, op.forget_norm),
        "cell": (op.input_to_cell, op.recurrent_to_cell, op.cell_bias, None, op.cell_norm),
        "output": (op.input_to_output, op.recurrent_to_output, op.output_bias, op.cell_to_output, op.output_norm),
    }
    gates: dict[str, Gate] = {}
    for (name, found), inner in zip(tensors.items(), op.intermediates, strict=False):
        weights, recurrent, bias, peephole, norm = found
        scale: float | None = GATE_SCALE
        if norm is not None:
            element = None if inner is None else inner.type.element
            scale = element.scale if isinstance(element, UniformQuantizedType) else None
        if weights is not None and recurrent is not None and scale is not None:
            gates[name] = Gate(weights, recurrent, bias, peephole, norm, scale)
    return gates


def _unlike(values: list[Value], storage: object) -> str:
    """What is wrong with tensors that should be quantized per layer and stored so."""
    for value in values:
        if value.type.storage != storage or not isinstance(value.type.element, UniformQuantizedType):
            return f"'{value.name}' is not {storage} quantized per layer, which the integer kernel asks for"
    return ""
