"""One step of an integer LSTM on int32 values: gates, cell state, hidden state (formulas: `recurrent.lstm`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.dialects.ext.tables import Table16Bit
from tflq.ir.core import Value, constant
from tflq.ir.types import i8, i16, i32
from tflq.legalize.recurrent.layer_norm import layer_norm
from tflq.legalize.recurrent.lstm_gates import Gate, Lstm, scale_of
from tflq.legalize.recurrent.signatures import CELLS_WITH_TANH
from tflq.legalize.reference.generic.accumulate import bias_of, bounds_of
from tflq.legalize.reference.generic.rescaled import fixed
from tflq.legalize.rule import RuleBuilder
from tflq.legalize.scaling import rounding_shift, scaled
from tflq.numerics.fixed_16bit import LOGISTIC_BITS, logistic_table, tanh_table
from tflq.numerics.fixed_point import quantize_multiplier, quantize_multipliers
from tflq.numerics.recurrent import clip_bound, hidden_scale, product_scale

__all__ = ["Step"]


class Step:
    """Emits steps for a batch. ValueError where the kernel's arithmetic leaves int32."""

    def __init__(
        self, b: RuleBuilder, parts: Lstm, batch: int, whole_batch: bool, cell_clip: float, projection_clip: float
    ) -> None:
        self.b = b
        self.parts = parts
        self.batch = batch
        self.whole_batch = whole_batch  # or item by item: as the kernel goes where the batch is the first dim
        self.names = list(parts.gates)
        gates = parts.gates.values()
        self.width = len(parts.gates) * parts.cells
        self.input = _joined(b, [g.input for g in gates])
        self.recurrent = _joined(b, [g.recurrent for g in gates])
        biases = [bias_of(b, None if g.norm else g.bias, parts.cells, i32).array for g in gates]
        self.bias = constant(np.concatenate(biases).astype(np.int32))
        self.none = constant(np.zeros(self.width, np.int32))
        self.cell_clip = clip_bound(cell_clip, 2.0**parts.cell_exponent, i16.maximum)
        self.projection_clip = clip_bound(projection_clip, parts.state.scale, i8.maximum)
        self.logistic = constant(logistic_table())
        self.gate_tanh = constant(tanh_table(LOGISTIC_BITS))
        known = parts.cell_exponent in CELLS_WITH_TANH
        self.cell_tanh = constant(tanh_table(15 + parts.cell_exponent)) if known else None

    def given(self, x: Value) -> Value:
        """What the input adds to the gates, of rows [N, 1, 1, depth]: int16 [N, 1, 1, width]."""
        parts, zero = self.parts, self.parts.source.zero_point
        rows = (x.type.shape or (None,))[0]
        sums = self.b.conv2d(x, self.input, self.bias, (rows, 1, 1, self.width), input_zp=zero)
        bounds = bounds_of(parts.source, self.input, (1, 2, 3), 0, self.bias)
        gate = replace(parts.source, storage=i16, zero_point=0, storage_min=i16.minimum, storage_max=i16.maximum)
        result = fixed(self.b, sums, parts.input_scales(), gate, "NONE", bounds)
        return result.value

    def run(self, given: Value, h: Value, c: Value) -> tuple[Value, Value]:
        """The next hidden state, int8 [batch, outputs], and cell state, int32 [batch, cells]."""
        b, sums = self.b, self._sums(given, h)
        f = self._activated("forget", sums, c)
        g = self._activated("cell", sums, None)
        i = self._activated("input", sums, c) if "input" in self.names else b.sub(b.constant(np.asarray(32767)), f)
        kept = rounding_shift(b, b.mul(f, c), 15)
        new = rounding_shift(b, b.mul(i, g), 30 + self.parts.cell_exponent)
        if self.parts.cell_exponent < CELLS_WITH_TANH[0]:
            new = b.cast(b.cast(new, i16), i32)  # which the kernel stores, wrapped, before it adds
        low, high = (-self.cell_clip, self.cell_clip) if self.cell_clip else (i16.minimum, i16.maximum)
        c = b.clamp(b.add(kept, new), low, high)
        o = self._activated("output", sums, c)
        through = i if self.cell_tanh is None else self._looked_up(b.cast(c, i16), self.cell_tanh)
        return self._hidden(b.mul(o, through)), c

    def _sums(self, given: Value, h: Value) -> Value:
        """The gates' sums [batch, width], saturated to int16, in int32."""
        b, parts = self.b, self.parts
        x = b.reshape(h, (self.batch, 1, 1, parts.outputs))
        made = b.conv2d(x, self.recurrent, self.none, (self.batch, 1, 1, self.width), input_zp=parts.state.zero_point)
        low, high = bounds_of(parts.state, self.recurrent, (1, 2, 3), 0, self.none).range
        scales = parts.recurrent_scales()
        mantissa, left = quantize_multipliers(scales)
        reach = max(-low, high)
        if reach << max(int(left.max()), 0) >= 1 << 31 or reach * float(scales.max()) >= 2.0**31 - 2.0**16:
            raise ValueError("the scaled product with the output state can leave int32")
        sums = b.reshape(made, (self.batch, self.width))
        shares = b.rescale(sums, (mantissa, left), i32, input_range=(low, high))
        return b.clamp(b.add(shares, b.cast(given, i32)), i16.minimum, i16.maximum)

    def _activated(self, name: str, sums: Value, c: Value | None) -> Value:
        """A gate in Q0.15, in int32."""
        b, cells, gate = self.b, self.parts.cells, self.parts.gates[name]
        start, shape = self.names.index(name) * cells, (self.batch, cells)
        x = b.slice(sums, (0, start), shape)
        if gate.peephole is not None and c is not None:
            x = b.clamp(b.add(x, self._peephole(gate, c)), i16.minimum, i16.maximum)
        if gate.norm is not None:
            bias = bias_of(b, gate.bias, cells, i32).array
            x = layer_norm(b, x, b.value(gate.norm).array, bias, scale_of(gate.norm))
        return self._looked_up(b.cast(x, i16), self.gate_tanh if name == "cell" else self.logistic)

    def _peephole(self, gate: Gate, c: Value) -> Value:
        """The kernel walks the cells of a batch, or of one item, with a row of weights as long as there are outputs."""
        b, parts = self.b, self.parts
        assert gate.peephole is not None
        multiplier = quantize_multiplier(parts.peephole_scale(gate))
        if multiplier.shift > 0:
            raise ValueError("the scaled product with the cell state can leave int32")
        if parts.outputs > parts.cells:
            raise ValueError("the kernel reads peepholes beyond their end where there are more outputs than cells")
        rows = self.batch if self.whole_batch else 1
        weights = np.zeros(rows * parts.cells, np.int64)
        weights[: rows * parts.outputs] = np.tile(b.value(gate.peephole).array[: parts.outputs], rows)
        return b.rescale(b.mul(c, b.constant(weights.reshape(rows, parts.cells))), multiplier, i32)

    def _looked_up(self, x: Value, entries: Value) -> Value:
        b = self.b
        return b.cast(b.emit(Table16Bit, [x, entries], x.type.with_element(i16)), i32)

    def _hidden(self, product: Value) -> Value:
        """The output state of a product in Q0.30."""
        b, parts, hidden = self.b, self.parts, self.parts.hidden
        multiplier = quantize_multiplier(hidden_scale(hidden.scale))
        if parts.projection is None:
            return scaled(b, product, multiplier, i8, 1 << 30, output_zp=hidden.zero_point)
        inner = scaled(b, product, multiplier, i8, 1 << 30, output_zp=-hidden.zero_point)
        element = parts.projection.type.element
        weights = _joined(b, [parts.projection])
        bias = bias_of(b, parts.projection_bias, parts.outputs, i32).array.astype(np.int64)
        bias = bias + hidden.zero_point * weights.array.astype(np.int64).sum((1, 2, 3))
        offset = constant(bias.astype(np.int32))
        x, shape = b.reshape(inner, (self.batch, 1, 1, parts.cells)), (self.batch, 1, 1, parts.outputs)
        sums = b.reshape(b.conv2d(x, weights, offset, shape), (self.batch, parts.outputs))
        scale = np.asarray([product_scale(element.scale, hidden.scale, parts.state.scale)])  # type: ignore[union-attr]
        bounds = bounds_of(replace(hidden, zero_point=0), weights, (1, 2, 3), 0, offset)
        result = fixed(b, sums, scale, parts.state, "NONE", bounds)
        clip = self.projection_clip
        return b.clamp(result.value, -clip, clip) if clip else result.value


def _joined(b: RuleBuilder, matrices: list[Value]) -> Value:
    """Matrices of constants, one below the other, as filters [rows, 1, 1, columns]."""
    rows = np.concatenate([b.value(m).array for m in matrices])
    return constant(np.ascontiguousarray(rows.reshape(len(rows), 1, 1, -1)))
