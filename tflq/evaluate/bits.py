"""Evaluators of ops on bits and on truth values. Shifts are by fewer bits than the type has."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.bits import Bitcast
from tflq.dialects.tosa.bits import (
    ArithmeticRightShift,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Clz,
    LogicalAnd,
    LogicalLeftShift,
    LogicalNot,
    LogicalOr,
    LogicalRightShift,
    LogicalXor,
)
from tflq.evaluate.registry import evaluator, of_arrays

__all__: list[str] = []


evaluator(BitwiseAnd)(of_arrays(np.bitwise_and))
evaluator(BitwiseOr)(of_arrays(np.bitwise_or))
evaluator(BitwiseXor)(of_arrays(np.bitwise_xor))
evaluator(BitwiseNot, LogicalNot)(of_arrays(np.invert))
evaluator(LogicalAnd)(of_arrays(np.logical_and))
evaluator(LogicalOr)(of_arrays(np.logical_or))
evaluator(LogicalXor)(of_arrays(np.logical_xor))


@evaluator(Clz)
def _clz(op: Clz, x: np.ndarray) -> np.ndarray:
    """The exponent of an integer below 2^53 is its number of bits."""
    return np.where(x < 0, 0, 32 - np.frexp(np.maximum(x, 0).astype(np.float64))[1])


@evaluator(LogicalLeftShift)
def _logical_left_shift(op: LogicalLeftShift, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.int64) << b


@evaluator(LogicalRightShift)
def _logical_right_shift(op: LogicalRightShift, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    return (a.astype(unsigned) >> b.astype(unsigned)).astype(a.dtype)


@evaluator(ArithmeticRightShift)
def _arithmetic_right_shift(op: ArithmeticRightShift, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if not op.round:
        return a >> b
    wide = a.astype(np.int64)
    return (wide >> b) + np.where(b > 0, (wide >> np.maximum(b.astype(np.int64) - 1, 0)) & 1, 0)


@evaluator(Bitcast)
def _bitcast(op: Bitcast, x: np.ndarray) -> np.ndarray:
    """Between widths the last dim appears or goes, low part first."""
    dtype = op.result.type.storage.dtype
    x = np.ascontiguousarray(x).reshape(x.shape)
    if dtype.itemsize < x.dtype.itemsize:
        return x[..., None].view(dtype)
    return x.view(dtype)[..., 0] if dtype.itemsize > x.dtype.itemsize else x.view(dtype)
