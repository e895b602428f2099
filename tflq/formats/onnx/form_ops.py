"""The operations of forms of a requantization (`tflq.numerics.requantize`), as operators of ONNX."""

from __future__ import annotations

import numpy as np

from tflq.formats.onnx.context import Layout, Onnx, channel_row
from tflq.formats.onnx.dialect import Round
from tflq.ir.ops import Value
from tflq.ir.types import f32
from tflq.numerics.requantize.forms import FusedClamp, Ops


class OnnxOps(Ops[Value]):
    """Operators on float32 tensors of a layout, and on no others.

    ONNX Runtime and OpenVINO may make one kernel of MUL and ADD.
    """

    def __init__(self, t: Onnx, layout: Layout | None = None) -> None:
        self._t = t
        self._layout = Layout() if layout is None else layout

    def row(self, numbers: np.ndarray) -> Value:
        return channel_row(self._t, numbers, f32, self._layout)

    def add(self, a: Value, b: Value, *, relu: bool = False) -> Value:
        total = self._t.add(a, b)
        return self._t.relu(total) if relu else total

    def sub(self, a: Value, b: Value, *, relu: bool = False) -> Value:
        total = self._t.sub(a, b)
        return self._t.relu(total) if relu else total

    def mul(self, a: Value, b: Value) -> Value:
        return self._t.mul(a, b)

    def multiply_add(self, x: Value, m: Value, c: Value, *, relu: bool = False) -> Value:
        return self.add(self._t.mul(x, m), c, relu=relu)

    def add_row(self, x: Value, numbers: np.ndarray) -> Value:
        return self._t.sub(x, self.row(-numbers))

    def clip(self, x: Value, low: np.ndarray, high: np.ndarray) -> Value:
        """CLIP; MAX and MIN where the ends differ by channel."""
        if low.size and (low == low[0]).all() and (high == high[0]).all():
            return self._t.clip(x, float(low[0]), float(high[0]))
        return self._t.minimum(self._t.maximum(x, self.row(low)), self.row(high))

    def clamped(self, x: Value, y: Value, clamp: FusedClamp) -> Value:
        return self._t.clip(self._t.add(x, y), clamp.low, clamp.high)

    def floor(self, x: Value) -> Value:
        return self._t.floor(x)

    def rint(self, x: Value) -> Value:
        return self._t.emit(Round, [x])

    def positive(self, x: Value) -> Value:
        return self._t.clip(x, 0, 1)
