"""Evaluators of ops on bits and on truth values. Shifts are by fewer bits than the type has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.dialects.tosa.bits import BitwiseNot, Clz, LogicalLeftShift, LogicalNot, LogicalRightShift
from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []

_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "tosa.bitwise_and": np.bitwise_and,
    "tosa.bitwise_or": np.bitwise_or,
    "tosa.bitwise_xor": np.bitwise_xor,
    "tosa.logical_and": np.logical_and,
    "tosa.logical_or": np.logical_or,
    "tosa.logical_xor": np.logical_xor,
}


@evaluator(*_BINARY)
def _binary(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _BINARY[op.name](a, b)


@evaluator(BitwiseNot)
def _bitwise_not(op: BitwiseNot, x: np.ndarray) -> np.ndarray:
    return ~x


@evaluator(LogicalNot)
def _logical_not(op: LogicalNot, x: np.ndarray) -> np.ndarray:
    return ~x


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
