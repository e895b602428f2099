"""Sums of int32 tensors times integers, in one integer type."""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Value
from tflq.ir.types import ScalarType
from tflq.select.lowering import Kernels

__all__ = ["WeightedSum"]


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
