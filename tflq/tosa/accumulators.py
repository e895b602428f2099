"""The values that an accumulator can take, noted on the RESCALE that reads it: TOSA has no place for them.

With constant weights they are the sums of positive and of negative weights times the ends of the input, plus the
bias. Selection then proves cheaper forms of the RESCALE, and sums in 32 bits what TOSA sums in 48.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.casts import Rescale
from tflq.dialects.tosa.convolution import DepthwiseConv2D
from tflq.dialects.tosa.matmul import MatMul
from tflq.ir.core import Op, Value
from tflq.ir.types import i32
from tflq.numerics.convolution import exact_bounds

__all__ = ["note_bounds"]

_LAYOUT = frozenset({"tosa.identity", "tosa.reshape", "tosa.reverse", "tosa.slice", "tosa.transpose"})
_LAYERS = frozenset({"tosa.conv2d", "tosa.conv3d", "tosa.depthwise_conv2d", "tosa.transpose_conv2d"})
_WIDEST = 1 << 47


def note_bounds(op: Op) -> None:
    """Gives a RESCALE its `input_range`, if its operand is a sum of known weights."""
    if not isinstance(op, Rescale) or "input_range" in op.attributes or op.attributes["input_zp"]:
        return
    value = op.operand(0)
    while value.producer is not None and value.producer.name in _LAYOUT:
        value = value.producer.operand(0)
    producer = value.producer
    if producer is None or not value.type.storage.is_integer:
        return
    bounds = _of_layer(producer) if producer.name in _LAYERS else _of_product(producer)
    limit = (i32.minimum, i32.maximum) if value.type.storage == i32 else (-_WIDEST, _WIDEST - 1)
    if bounds is not None and limit[0] <= bounds[0] and bounds[1] <= limit[1]:
        op.attributes["input_range"] = bounds


def _of_layer(op: Op) -> tuple[int, int] | None:
    weights, bias = op.operand(1), op.operand(2)
    if not weights.is_constant or not bias.is_constant:
        return None
    rows = weights.array
    if isinstance(op, DepthwiseConv2D):
        rows = rows.reshape(-1, rows.shape[2] * rows.shape[3])
        return _sums(op.operand(0), op.attributes["input_zp"], rows, 0, op.attributes["weight_zp"], bias.array)
    rows = rows.reshape(rows.shape[0], -1)
    return _sums(op.operand(0), op.attributes["input_zp"], rows, 1, op.attributes["weight_zp"], bias.array)


def _of_product(op: Op) -> tuple[int, int] | None:
    if not isinstance(op, MatMul) or not op.operand(1).is_constant:
        return None
    a = op.attributes
    return _sums(op.operand(0), a["a_zp"], op.operand(1).array, 1, a["b_zp"], np.zeros(1, np.int64))


def _sums(
    x: Value, zero_point: int, weights: np.ndarray, axis: int, weight_zp: int, bias: np.ndarray
) -> tuple[int, int]:
    """Bounds of the sums of (weights - weight_zp) times all that x - zero_point can be."""
    storage = x.type.storage
    low, high = storage.minimum - zero_point, storage.maximum - zero_point
    return exact_bounds(weights, (axis,), weight_zp, low, high, bias)
