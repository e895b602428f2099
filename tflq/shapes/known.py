"""What is known of a tensor's elements before the model runs: an array, and which of its elements are open.

SHAPE of an open batch is [?, 224, 224, 3]; what moves such elements about, moves the question marks with them
(the evaluator runs on the flags as it does on the elements), and what computes with one gives one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tflq.dialects.effects import is_variable
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.comparison import SelectV2
from tflq.dialects.tfl.movement import Concatenation, Split
from tflq.dialects.tfl.shape import Fill, Range, Rank
from tflq.dialects.tfl.shape import Shape as TflShape
from tflq.ir.core import Op, Value
from tflq.ir.types import Shape
from tflq.shapes.arithmetic import ARITHMETIC, REDUCTIONS, reduced

__all__ = ["LIMIT", "Known", "constant_elements", "elements_of"]

LIMIT: Final = 4096
"""Elements of a tensor that is still computed: shapes and indices are small."""

_MOVES: Final = {
    **dict.fromkeys(("tfl.reshape", "tfl.squeeze", "tfl.expand_dims", "tfl.transpose", "tfl.strided_slice"), 1),
    **dict.fromkeys(("tfl.slice", "tfl.gather", "tfl.gather_nd", "tfl.tile", "tfl.broadcast_to", "tfl.reverse_v2"), 1),
    **dict.fromkeys(("tfl.split_v", "tfl.unpack", "tfl.cast", "tfl.pad"), 1),
    **dict.fromkeys(("tfl.pack", "tfl.concatenation"), 1 << 30),
}
"""Ops that take each element of their first operands (how many) to a place of the result; the others say where."""


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
    if not value.is_constant or value.type.quantized or not value.type.storage.numpy or not value.type.is_static:
        return None
    return None if value.info.get("sparsity") or is_variable(value) else Known(value.array)


def elements_of(op: Op, shapes: Sequence[Shape], known: Sequence[Known | None]) -> list[Known] | None:
    """The results' elements of an op on plain numbers; None if nothing is known of them, or if they are too many."""
    if isinstance(op, TflShape):
        return _shape_of(op, shapes[0])
    if isinstance(op, Rank):
        return None if shapes[0] is None else [Known(np.asarray(len(shapes[0]), np.int32))]
    if any(v is None or v.type.quantized or not v.type.storage.numpy for v in (*op.operands, *op.results)):
        return None
    operands = [k for k in known if k is not None]
    if len(operands) != len(op.operands) or not operands or sum(k.array.size for k in operands) > 1 << 20:
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
    dtype = op.result.type.storage.dtype
    if op.name in ARITHMETIC:
        if op.attributes.get("fused_activation_function", "NONE") != "NONE":
            return None
        flags = np.zeros((), bool)
        for operand in operands:
            flags = flags | operand.flags
        array = np.asarray(ARITHMETIC[op.name](*(k.array for k in operands)), dtype)
        return [Known.of(array, np.broadcast_to(flags, array.shape))]
    if op.name in REDUCTIONS:
        if not operands[1].complete:
            return None
        axes, keep = operands[1].array, op.attributes["keep_dims"]
        array = np.asarray(reduced(REDUCTIONS[op.name], operands[0].array, axes, keep), dtype)
        return [Known.of(array, reduced(np.any, operands[0].flags, axes, keep))]
    return _move(op, operands)


def _move(op: Op, operands: list[Known]) -> list[Known] | None:
    from tflq.evaluate import evaluate_op, evaluator

    moved = operands[: _MOVES.get(op.name, 0)]
    if any(not k.complete for k in operands[len(moved) :]):
        return None
    if isinstance(op, Concatenation) and op.attributes["fused_activation_function"] != "NONE":
        return None
    if not moved and not isinstance(op, (Fill, Range, SelectV2, Split)):
        return None
    arrays = evaluate_op(op, [k.array for k in operands])
    if arrays is None:
        return None
    if all(k.complete for k in moved):
        return [Known(a) for a in arrays]
    where = [k.array for k in operands[len(moved) :]]
    compute = evaluator.get(type(op))
    assert compute is not None
    flags = [k.flags for k in moved] if not isinstance(op, Cast) else None
    made = [moved[0].flags] if flags is None else compute(op, *flags, *where)
    made = made if isinstance(made, list) else [made]
    return [Known.of(a, np.asarray(f, bool)) for a, f in zip(arrays, made, strict=True)]
