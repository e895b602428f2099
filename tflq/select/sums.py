"""Sums of int32 tensors times integers, in one integer type."""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.rescale import RescaleF64, RescaleI64
from tflq.dialects.tosa.casts import Rescale
from tflq.dialects.tosa.convolution import Convolution
from tflq.dialects.tosa.matmul import MatMul
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, i32
from tflq.select.lowering import Kernels

__all__ = ["WeightedSum", "fits_int32"]


class WeightedSum:
    """sum of coefficient * tensor, in `element`; a coefficient of 1 costs nothing."""

    def __init__(self, k: Kernels, element: ScalarType) -> None:
        self._k = k
        self._total: Value | None = None
        self.element = element

    def add(self, x: Value, coefficient: int) -> None:
        """Adds coefficient * x."""
        wide = self._k.cast(x, self.element)
        if coefficient != 1:
            wide = self._k.mul(wide, self._k.constant(np.asarray(coefficient), self.element))
        self._total = wide if self._total is None else self._k.add(self._total, wide)

    def plus(self, offset: Value) -> Value:
        """The sum and a tensor of `element`; a constant of zeros costs nothing."""
        if self._total is None:
            return offset
        if offset.is_constant and not offset.array.any():
            return self._total
        return self._k.add(self._total, offset)


def fits_int32(k: Kernels, op: Convolution | MatMul) -> bool:
    """Whether the one reader of an accumulator says that it stays within int32."""
    user = k.only_user(op.output, Op)
    if not isinstance(user, (Rescale, RescaleF64, RescaleI64)) or user.input_range is None:
        return False
    low, high = user.input_range
    return low >= i32.minimum and high <= i32.maximum
