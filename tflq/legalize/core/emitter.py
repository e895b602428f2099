"""Emitting what computes ops of the core dialects.

Integers of up to 32 bits are computed in i32, in which TFLite has all of it, and narrowed, which wraps; those of 64
bits by builtins. An index is an i64. A value may have fewer dims than the tensor that it stands for: it broadcasts.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.builder import Builder
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tosa.bits import BitwiseAnd
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, TensorType, f32, i1, i8, i16, i32, i64, index

__all__ = ["COMPUTED", "CoreEmitter", "plain_type"]

COMPUTED = frozenset({i1, i8, i16, i32, i64, index, f32})
"""The element types that TFLite's arithmetic has."""


_LARGE: Final = 2.0**126


def plain_type(type: TensorType) -> TensorType:
    """The type of the tensor that stands for a value: a scalar is a tensor of rank 0, an index an i64."""
    return TensorType(type.shape, i64 if type.element == index else type.element)


class CoreEmitter(Builder):
    """Ops on integers and floats, elementwise; operands broadcast.

    Of some floats it is known how large they can be (`reach`): these are neither infinite nor NaN.
    """

    def __init__(self) -> None:
        super().__init__()
        self._reach: dict[Value, float] = {}

    def reach(self, x: Value) -> float | None:
        """A bound of |x|; None if there is none, or x can be NaN."""
        if not x.is_constant:
            return self._reach.get(x)
        most = float(np.abs(x.array.astype(np.float64)).max(initial=0))
        return most if np.isfinite(most) else None

    def within(self, x: Value, reach: float | None) -> Value:
        """x, whose bound is noted, with what roundings add; one near the end of f32 says nothing."""
        if reach is not None and reach < _LARGE:
            self._reach[x] = reach * (1 + 2.0**-20)
        return x

    def masked(self, x: Value, mask: int) -> Value:
        """The bits of an i32 that a mask has."""
        return self.emit(BitwiseAnd, [x, self.constant(mask)])

    def signed(self, x: Value) -> Value:
        """An integer of up to 32 bits by its sign, as i32; the 1 of i1 is -1."""
        wide = self.cast(x, i32)
        return self.sub(self.constant(0), wide) if x.type.storage == i1 else wide

    def unsigned(self, x: Value) -> Value:
        """An integer of up to 16 bits without a sign, as i32."""
        storage = x.type.storage
        wide = self.cast(x, i32)
        return self.masked(wide, storage.maximum * 2 + 1) if storage in (i8, i16) else wide

    def narrowed(self, x: Value, to: ScalarType) -> Value:
        """An i32 modulo the width of a type."""
        if to == i1:
            return self.equal(self.masked(x, 1), self.constant(1))
        return self.cast(x, to)

    def converted(self, x: Value, to: ScalarType) -> Value:
        """CAST of TFLite."""
        return x if x.type.element == to else self.emit(Cast, [x], to)
