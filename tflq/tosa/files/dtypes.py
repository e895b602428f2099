"""Element types of a TOSA flatbuffer, and how constants of them are stored (tosa.fbs; tosa_serializer's numpy_utils).

Little-endian, elements one after another: BOOL takes a byte, INT48 six, INT4 half a one, low bits first. The IR keeps
INT48 as i64; all others are stored as the IR's buffers hold them.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from tflq.ir.types import (
    SCALARS,
    ElementType,
    ScalarType,
    element_storage,
    i1,
    i4,
    i8,
    i16,
    i32,
    i64,
)
from tflq.tosa.operands import signless

__all__ = ["ELEMENTS", "dtype", "packed", "stored_size", "unpacked"]

_NAMES: Final = {
    i1: "BOOL",
    i4: "INT4",
    i8: "INT8",
    i16: "INT16",
    i32: "INT32",
    i64: "INT48",
    SCALARS["f32"]: "FP32",
    SCALARS["f16"]: "FP16",
    SCALARS["bf16"]: "BF16",
    SCALARS["f8E4M3FN"]: "FP8E4M3",
    SCALARS["f8E5M2"]: "FP8E5M2",
}
ELEMENTS: Final = {name: element for element, name in _NAMES.items()}
"""The element type that a DType is in the IR; other DTypes have none."""


@cache
def dtype(element: ElementType) -> str:
    """The DType of an element type. ValueError if TOSA 1.0 has none."""
    name = _NAMES.get(signless(element_storage(element)))
    if name is None:
        raise ValueError(f"TOSA has no type {element}")
    return name


def packed(data: np.ndarray, element: ScalarType) -> np.ndarray:
    """A buffer's bytes as a file stores them; ValueError for an integer that 48 bits do not hold."""
    if element != i64:
        return data
    wide = data.view(np.int64)
    if ((wide < -(1 << 47)) | (wide >= 1 << 47)).any():
        raise ValueError("a constant does not fit INT48")
    return np.ascontiguousarray(data.reshape(-1, 8)[:, :6]).reshape(-1)


def unpacked(data: np.ndarray, element: ScalarType) -> np.ndarray:
    """The inverse of `packed`."""
    if element != i64:
        return data
    rows = data.reshape(-1, 6)
    out = np.empty((len(rows), 8), np.uint8)
    out[:, :6] = rows
    out[:, 6:] = np.where(rows[:, 5:] >= 128, 255, 0)
    return out.reshape(-1)


def stored_size(count: int, element: ScalarType) -> int:
    """The bytes that elements take in a file."""
    return (count * (48 if element == i64 else element.bits) + 7) // 8
