"""The values that an accumulator can take, noted on the RESCALE that reads it: TOSA has no place for them.

With constant weights they are the sums of positive and of negative weights times the ends of the input, plus the
bias. Selection then proves cheaper forms of the RESCALE, and sums in 32 bits what TOSA sums in 48.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.casts import Rescale
from tflq.dialects.tosa.convolution import Convolution, DepthwiseConv2D
from tflq.dialects.tosa.matmul import MatMul
from tflq.dialects.tosa.movement import Identity, Reshape, Reverse, Slice, Transpose
from tflq.ir.core import Op, Value
from tflq.ir.types import i32
from tflq.numerics.convolution import exact_bounds

__all__ = ["note_bounds"]

_LAYOUT = Identity | Reshape | Reverse | Slice | Transpose
_WIDEST = 1 << 47


def note_bounds(op: Op) -> None:
    """Gives a RESCALE its `input_range`, if its operand is a sum of known weights."""
    if not isinstance(op, Rescale) or op.input_range is not None or op.input_zp:
        return
    value = op.input
    while isinstance(value.producer, _LAYOUT):
        value = value.producer.operand(0)
    bounds = None
    if value.type.storage.is_integer:
        if isinstance(value.producer, Convolution):
            bounds = _of_layer(value.producer)
        elif isinstance(value.producer, MatMul):
            bounds = _of_product(value.producer)
    limit = (i32.minimum, i32.maximum) if value.type.storage == i32 else (-_WIDEST, _WIDEST - 1)
    if bounds is not None and limit[0] <= bounds[0] and bounds[1] <= limit[1]:
        op.attributes["input_range"] = bounds


def _of_layer(op: Convolution) -> tuple[int, int] | None:
    if not op.weight.is_constant or not op.bias.is_constant:
        return None
    rows = op.weight.array
    if isinstance(op, DepthwiseConv2D):
        rows, axis = rows.reshape(-1, rows.shape[2] * rows.shape[3]), 0
    else:
        rows, axis = rows.reshape(rows.shape[0], -1), 1
    return _sums(op.input, op.input_zp, rows, axis, op.weight_zp, op.bias.array)


def _of_product(op: MatMul) -> tuple[int, int] | None:
    if not op.input2.is_constant:
        return None
    return _sums(op.input1, op.a_zp, op.input2.array, 1, op.b_zp, np.zeros(1, np.int64))


def _sums(
    x: Value, zero_point: int, weights: np.ndarray, axis: int, weight_zp: int, bias: np.ndarray
) -> tuple[int, int]:
    """Bounds of the sums of (weights - weight_zp) times all that x - zero_point can be."""
    storage = x.type.storage
    low, high = storage.minimum - zero_point, storage.maximum - zero_point
    return exact_bounds(weights, (axis,), weight_zp, low, high, bias)
