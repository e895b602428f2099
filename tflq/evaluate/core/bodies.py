"""Bodies of ops that are computed at many points: all points at once, on arrays of a shape.

What a body computes on are scalars, so each of its ops computes element by element. It may use what is computed outside
of it, and take elements of tensors from there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.linalg.generic import Index, Yield
from tflq.dialects.tensor.making import Yield as TensorYield
from tflq.dialects.tensor.parts import Dim, Extract, Rank
from tflq.evaluate.held import held_array
from tflq.evaluate.registry import Run, evaluate_one
from tflq.ir.core import Op, Value
from tflq.ir.types import BareType

__all__ = ["Body"]


class Body:
    """The one block of an op. `run`: it knows the values outside."""

    def __init__(self, op: Op, run: Run) -> None:
        self._block = op.regions[0].block
        self._run = run
        self._outer = run.scope

    def of(
        self, arguments: Sequence[np.ndarray], shape: tuple[int, ...], points: Sequence[np.ndarray] = ()
    ) -> list[np.ndarray]:
        """What it yields of arguments at points whose places are `points`: arrays that broadcast to the shape.
        NotImplementedError names an op that cannot be computed so."""
        env = dict(zip(self._block.arguments, arguments, strict=True))
        for op in self._block.ops:
            given = [self._array(v, env) for v in op.operands if v is not None]
            if isinstance(op, (Yield, TensorYield)):
                return given
            if isinstance(op, Index):
                made = [np.broadcast_to(points[op.dim], shape)]
            elif _of_scalars(op):
                made = evaluate_one(op, given, self._run)
            else:
                raise NotImplementedError(f"{op.name} inside of a body is not evaluated")
            env.update(zip(op.results, made, strict=True))
        raise NotImplementedError("a body does not end in a yield")

    def _array(self, value: Value, env: dict[Value, np.ndarray]) -> np.ndarray:
        for known in (env, self._outer):
            if value in known:
                return known[value]
        return held_array(value)


def _of_scalars(op: Op) -> bool:
    """Whether an op computes on scalars, or takes one from a tensor."""
    if op.regions:
        return False
    values = op.results if isinstance(op, (Dim, Extract, Rank)) else list(op.tensors)
    return all(isinstance(v.type, BareType) for v in values)
