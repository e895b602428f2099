"""Emitting operators of TOSA 1.0: as `tflq.builder.Builder`, and what only TOSA has.

Operands of elementwise operators need equal ranks in TOSA: what has fewer dims is reshaped, or, if it is a constant,
seen in its new shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tflq.builder import Builder, Kind
from tflq.dialects.inference import broadcast
from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.bits import LogicalNot
from tflq.dialects.tosa.indexing import Gather
from tflq.dialects.tosa.movement import Pad, Tile
from tflq.dialects.traits.types import Broadcasts
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, Shape, TensorType

__all__ = ["TosaBuilder"]


class TosaBuilder(Builder):
    """A `Builder` whose ops are those of TOSA, to the letter."""

    def ranked(self, x: Value, rank: int) -> Value:
        """x with as many dims, ones in front. ValueError if its rank is not known or larger."""
        shape = x.type.shape
        if shape is None or len(shape) > rank:
            raise ValueError(f"'{x.name}' {x.type} cannot have {rank} dims")
        if len(shape) == rank:
            return x
        return self.reshape(x, (1,) * (rank - len(shape)) + shape)

    def aligned(self, *xs: Value) -> list[Value]:
        """The values, all of the largest rank among them."""
        ranks = [-1 if x.type.shape is None else len(x.type.shape) for x in xs]
        rank = max(0, *ranks)
        return list(xs) if min(ranks) == rank else [self.ranked(x, rank) for x in xs]

    def reshape(self, x: Value, shape: Sequence[int | None]) -> Value:
        """RESHAPE; of a constant, the constant in that shape; none if it has that shape."""
        if x.type.shape == tuple(shape):
            return x
        if x.is_constant and x.type.storage.bits >= 8 and None not in shape:
            return Value(TensorType(tuple(shape), x.type.element), buffer=x.buffer)
        return super().reshape(x, shape)

    def emit(
        self,
        kind: Kind,
        operands: Sequence[Value | None],
        type: TensorType | ScalarType | None = None,
        **attributes: Any,
    ) -> Value:
        """As any emitter's; operands that broadcast are given equal ranks."""
        if len(operands) > 1 and not isinstance(kind, str) and kind.trait(Broadcasts) is not None:
            operands = self.aligned(*[v for v in operands if v is not None])
        return super().emit(kind, operands, type, **attributes)

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """CLAMP, also of floats."""
        if not x.type.storage.is_float:
            return super().clamp(x, int(low), int(high))
        return self.emit(Clamp, [x], min_val=float(low), max_val=float(high))

    def as_bool(self, x: Value) -> Value:
        """x != 0."""
        zero = self.constant(np.zeros((1,) * len(x.type.shape or ())), x.type.storage)
        return self.emit(LogicalNot, [self.equal(x, zero)])

    # --- data movement -------------------------------------------------------------------------------------------

    def slice(self, x: Value, start: Sequence[int], size: Sequence[int | None]) -> Value:
        """SLICE; none if it takes all of x. A size of None is the rest of a dim that is not known."""
        shape = x.type.shape or ()
        if tuple(size) == shape and not any(start):
            return x
        return super().slice(x, start, size)

    def pad(self, x: Value, padding: Sequence[tuple[int, int]], fill: float = 0) -> Value:
        """PAD by (before, after) per dim with a value of x's type; none if there is nothing to add."""
        if not any(map(any, padding)):
            return x
        value = float(fill) if x.type.storage.is_float else int(fill)
        flat = tuple(int(n) for pair in padding for n in pair)
        return self.emit(Pad, [x], padding=flat, pad_const=value)

    def tile(self, x: Value, multiples: Sequence[int]) -> Value:
        """TILE; none if every multiple is 1."""
        if all(m == 1 for m in multiples):
            return x
        return self.emit(Tile, [x], multiples=tuple(multiples))

    def gather(self, values: Value, indices: Value) -> Value:
        """GATHER: values [N, K, C], indices i32 [N, W] → [N, W, C]."""
        (n, _, c), (_, w) = values.type.shape or (None,) * 3, indices.type.shape or (None,) * 2
        return self.emit(Gather, [values, indices], TensorType((n, w, c), values.type.element))

    def lookup(self, table: Value, index: Value) -> Value:
        """table[index] for an i32 index of any shape: GATHER from a constant of any type, whose buffer it shares."""
        shape: Shape = index.type.shape
        values = self.reshape(table, (1, *(table.type.shape or ()), 1))
        count = None if shape is None or None in shape else prod(d or 0 for d in shape)
        found = self.gather(values, self.reshape(index, (1, count)))
        return self.reshape(found, shape or ())

    def spread(self, x: Value, shape: Sequence[int]) -> Value:
        """x tiled to a shape it broadcasts to."""
        x = self.ranked(x, len(shape))
        if broadcast(x.type.shape, tuple(shape)) != tuple(shape):
            raise ValueError(f"{x.type} does not broadcast to {tuple(shape)}")
        return self.tile(x, [m if d == 1 else 1 for d, m in zip(x.type.shape or (), shape, strict=True)])
