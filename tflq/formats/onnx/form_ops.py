"""The operations of forms of a requantization (`tflq.numerics.requantize`), as operators of ONNX."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tflq.formats.onnx.context import Layout, Onnx, channel_row
from tflq.ir.core import Value
from tflq.ir.types import f32
from tflq.numerics.requantize.float_forms import Clamp


class OnnxOps(NamedTuple):
    """Operators on float32 tensors of a layout. ONNX Runtime and OpenVINO may make one kernel of MUL and ADD."""

    t: Onnx
    layout: Layout = Layout()
    constants_last: bool = False

    def row(self, numbers: np.ndarray) -> Value:
        return channel_row(self.t, numbers, f32, self.layout)

    def add(self, a: Value, b: Value, *, relu: bool = False) -> Value:
        return self._rectified(self.t.add(a, b), relu)

    def sub(self, a: Value, b: Value, *, relu: bool = False) -> Value:
        return self._rectified(self.t.sub(a, b), relu)

    def mul(self, a: Value, b: Value) -> Value:
        return self.t.mul(a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.t.div(a, b)

    def multiply_add(self, x: Value, m: Value, c: Value, *, relu: bool = False) -> Value:
        return self.add(self.t.mul(x, m), c, relu=relu)

    def products(self, x: Value, m: Value, y: Value, n: Value) -> Value:
        return self.t.add(self.t.mul(x, m), self.t.mul(y, n))

    def shifted(self, x: Value, numbers: np.ndarray) -> Value:
        return self.t.sub(x, self.row(-numbers))

    def clip(self, x: Value, low: np.ndarray, high: np.ndarray) -> Value:
        """CLIP; MAX and MIN where the ends differ by channel."""
        if low.size and (low == low[0]).all() and (high == high[0]).all():
            return self.t.clip(x, float(low[0]), float(high[0]))
        return self.t.minimum(self.t.maximum(x, self.row(low)), self.row(high))

    def clamped(self, x: Value, y: Value, clamp: Clamp) -> Value:
        return self.t.clip(self.t.add(x, y), clamp.low, clamp.high)

    def floor(self, x: Value) -> Value:
        return self.t.floor(x)

    def sign(self, x: Value) -> Value:
        return self.t.clip(x, -1, 1)

    def of_sign(self, x: Value, a: np.ndarray | None, e: np.ndarray, c: np.ndarray) -> Value:
        return self.multiply_add(self.sign(x if a is None else self.shifted(x, a)), self.row(e), self.row(c))

    def positive(self, x: Value) -> Value:
        return self.t.clip(x, 0, 1)

    def _rectified(self, x: Value, relu: bool) -> Value:
        return self.t.relu(x) if relu else x
