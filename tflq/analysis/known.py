"""What is known of a tensor's elements before the model runs: an array, and which of its elements are open.

SHAPE of an open batch is [?, 224, 224, 3]; what moves such elements about, moves the question marks with them
(the evaluator runs on the flags as it does on the elements), and what computes with one gives one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.inference import constant_array
from tflq.dialects.tfl.reduction import Reduction
from tflq.dialects.tfl.shape import BroadcastArgs, Rank
from tflq.dialects.tfl.shape import Shape as TflShape
from tflq.dialects.traits.movement import MovesElements
from tflq.dialects.traits.types import Broadcasts, Elementwise
from tflq.evaluate import evaluate_op, evaluator
from tflq.ir.core import Op, Value
from tflq.ir.types import Shape
from tflq.light import dataclass

__all__ = ["LIMIT", "Known", "constant_elements", "elements_of"]

LIMIT: Final = 4096
"""Elements of a tensor that is still computed: shapes and indices are small."""


@dataclass(frozen=True, eq=False)
class Known:
    """`open` flags the elements that are not known; they are 1 in `array`. None if there are none."""

    array: np.ndarray
    open: np.ndarray | None = None

    @property
    def complete(self) -> bool:
        return self.open is None

    @property
    def flags(self) -> np.ndarray:
        return np.zeros(self.array.shape, bool) if self.open is None else self.open

    def elements(self) -> list[int | None]:
        """All elements, as integers."""
        pairs = zip(self.array.reshape(-1).tolist(), self.flags.reshape(-1).tolist(), strict=True)
        return [None if unknown else int(v) for v, unknown in pairs]

    @classmethod
    def of(cls, array: np.ndarray, flags: np.ndarray) -> Known:
        """The pair in its one form."""
        if not flags.any():
            return cls(array)
        return cls(np.where(flags, np.ones((), array.dtype), array), flags)

    def same(self, other: Known) -> bool:
        return (
            self.array.dtype == other.array.dtype
            and np.array_equal(self.array, other.array)
            and np.array_equal(self.flags, other.flags)
        )

    def join(self, other: Known) -> Known | None:
        """What holds of both."""
        if self.array.shape != other.array.shape or self.array.dtype != other.array.dtype:
            return None
        return Known.of(self.array, self.flags | other.flags | (self.array != other.array))


def constant_elements(value: Value) -> Known | None:
    """The elements of a constant of plain numbers."""
    array = constant_array(value)
    return None if array is None else Known(array)


def elements_of(op: Op, shapes: Sequence[Shape], known: Sequence[Known | None]) -> list[Known] | None:
    """The results' elements of an op on plain numbers; None if nothing is known of them, or if they are too many."""
    if isinstance(op, TflShape):
        return _shape_of(op, shapes[0])
    if isinstance(op, Rank):
        return None if shapes[0] is None else [Known(np.asarray(len(shapes[0]), np.int32))]
    operands = [k for k in known if k is not None]
    if len(operands) != len(op.operands) or not operands or sum(k.array.size for k in operands) > 1 << 20:
        return None
    if any(v is None or v.type.quantized or not v.type.storage.numpy for v in (*op.operands, *op.results)):
        return None
    try:
        with np.errstate(all="ignore"):
            found = _compute(op, operands)
    except (ValueError, IndexError, ZeroDivisionError, NotImplementedError, OverflowError):
        return None
    if found is None or any(k.array.size > LIMIT for k in found):
        return None
    return found


def _shape_of(op: Op, dims: Shape) -> list[Known] | None:
    if dims is None:
        return None
    dtype = op.result.type.storage.dtype
    return [Known.of(np.asarray([1 if d is None else d for d in dims], dtype), np.asarray([d is None for d in dims]))]


def _compute(op: Op, operands: list[Known]) -> list[Known] | None:
    compute = evaluator.get(type(op))
    if compute is None or not isinstance(op, Operator):
        return None
    flags: Any = [False] * len(op.results)
    if not all(k.complete for k in operands):
        flags = _flags(op, operands, compute)
        if flags is None:
            return None
    arrays = evaluate_op(op, [k.array for k in operands])
    assert arrays is not None
    return [Known.of(a, np.broadcast_to(f, a.shape)) for a, f in zip(arrays, flags, strict=True)]


def _flags(op: Operator, operands: list[Known], compute: Callable[..., Any]) -> list[np.ndarray] | None:
    """Which elements of the results are open; None if that depends on elements that are."""
    moved = op.trait(MovesElements)
    if moved is not None:
        if not all(k.complete or moved.moves(i) for i, k in enumerate(operands)):
            return None
        made = compute(op, *(k.flags if moved.moves(i) else k.array for i, k in enumerate(operands)))
        return [np.asarray(m, bool) for m in (made if isinstance(made, list) else [made])]
    if op.has(Broadcasts, Elementwise) or isinstance(op, BroadcastArgs):
        return [functools.reduce(np.logical_or, [k.flags for k in operands])]
    if isinstance(op, Reduction) and operands[1].complete:
        return [np.any(operands[0].flags, tuple(operands[1].array.reshape(-1).tolist()), keepdims=op.keep_dims)]
    return None
