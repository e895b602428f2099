"""The operations of forms of a requantization (`tflq.numerics.requantize`), as builtins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tflq.dialects.tfl.arithmetic import Floor, Sign
from tflq.formats.tflite.lowering.lowering import IMAGE, KernelBuilder
from tflq.formats.tflite.lowering.shifts import high_part, restore
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, f32, i32, i64
from tflq.numerics.requantize.forms import Ops

if TYPE_CHECKING:
    from tflq.numerics.requantize.forms import FusedClamp

_SHORT = 128
"""Channels up to which a constant for each costs a kernel more than a number for all."""


class KernelOps(Ops[Value]):
    """Builtins on tensors of a type. Every operation is a kernel of its own, and rounds once."""

    constants_last = True

    def __init__(self, k: KernelBuilder, element: ScalarType = f32) -> None:
        self._k = k
        self._element = element

    def _only(self, operation: str, x: Value, element: ScalarType) -> Value:
        """x, of the one number type that the builtins of an operation are right for."""
        if x.type.storage != element:
            raise self._lacks(operation, x.type.storage)
        return x

    def row(self, numbers: np.ndarray) -> Value:
        return self._k.row(numbers, self._element)

    def add(self, a: Value, b: Value, *, relu: bool = False) -> Value:
        return self._k.add(a, b, "RELU" if relu else "NONE")

    def sub(self, a: Value, b: Value, *, relu: bool = False) -> Value:
        return self._k.sub(a, b, "RELU" if relu else "NONE")

    def mul(self, a: Value, b: Value) -> Value:
        return self._k.mul(a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self._k.div(self._only("div", a, i32), b)

    def multiply_add(self, x: Value, m: Value, c: Value, *, relu: bool = False) -> Value:
        return self.add(self._k.mul(self._only("multiply_add", x, f32), m), c, relu=relu)

    def products(self, x: Value, m: Value, y: Value, n: Value) -> Value:
        return self._k.add(self._k.mul(self._only("products", x, f32), m), self._k.mul(y, n))

    def add_row(self, x: Value, numbers: np.ndarray) -> Value:
        return self._k.add(x, self.row(numbers))

    def clip(self, x: Value, low: np.ndarray, high: np.ndarray) -> Value:
        return self._k.minimum(self._k.maximum(x, self.row(low)), self.row(high))

    def clamped(self, x: Value, y: Value, clamp: FusedClamp) -> Value:
        return self._k.add(self._only("clamped", x, f32), y, clamp.activation)

    def floor(self, x: Value) -> Value:
        return self._k.emit(Floor, [self._only("floor", x, f32)])

    def rint(self, x: Value) -> Value:
        """ROUND is not among the kernels of all targets: a sum whose last place is 1 rounds half to even."""
        return self._k.sub(self._k.add(self._only("rint", x, f32), 3 << 22), 3 << 22)

    def sign(self, x: Value) -> Value:
        """SIGN has no int64: that of the low word is taken."""
        if x.type.storage != i64:
            return self._k.emit(Sign, [x])
        return self._k.cast(self._k.emit(Sign, [self._k.cast(x, i32)]), i64)

    def of_sign(self, x: Value, a: np.ndarray | None, e: np.ndarray, c: np.ndarray) -> Value:
        """The product by a sign is exact, so a kernel may round once or twice: where an image has few channels,
        DEPTHWISE_CONV_2D is MUL and ADD in one."""
        from tflq.dialects.tfl.activation import ReluN1To1

        x = self._only("of_sign", x, f32)
        if a is not None and a.any():
            sign = self._k.add(x, self.row(a), "RELU_N1_TO_1")
        else:
            sign = self._k.emit(ReluN1To1, [x])
        channels = (sign.type.shape or (None,))[-1] or 0
        if sign.type.rank != IMAGE or not 1 < e.size == c.size == channels <= _SHORT:
            return self._k.add(self._k.mul(sign, self.row(e)), self.row(c))
        return self._depthwise(sign, e, c)

    def _depthwise(self, x: Value, m: np.ndarray, c: np.ndarray) -> Value:
        from tflq.dialects.tfl.convolution import DepthwiseConv2D
        from tflq.formats.tflite.lowering.im2col import Geometry
        from tflq.formats.tflite.lowering.matmul import conv_options

        constants = self._k.constant(m.reshape(1, 1, 1, -1), f32), self._k.constant(c, f32)
        options = conv_options(Geometry((1, 1), (0, 0, 0, 0), (1, 1), (1, 1)), "VALID") | {"depth_multiplier": 1}
        return self._k.emit(DepthwiseConv2D, [x, *constants], x.type, **options)

    def positive(self, x: Value) -> Value:
        from tflq.dialects.tfl.activation import Relu

        return self._k.minimum(self._k.emit(Relu, [self._only("positive", x, f32)]), self._k.row(1, f32))

    def high_word(self, x: Value) -> Value:
        word = high_part(self._k, self._only("high_word", x, i64), i32)
        return self._k.cast(restore(self._k, word, x.type.shape), i64)

    def right_shift(self, x: Value, places: int) -> Value:
        x, shape = self._only("right_shift", x, i64), x.type.shape
        if places < 32:
            x = self._k.mul(x, 1 << (32 - places))
        word = high_part(self._k, x, i32)
        if places > 32:
            word = self._k.right_shift(word, places - 32)
        return restore(self._k, word, shape)
