"""Stored integers as signed bytes: what BATCH_MATMUL, which is exact only on int8, can multiply.

    value = sum of coefficient * digit + offset        each digit an int8 tensor of the value's shape

int8 is its own digit. uint8 is one digit, value - 128 (the top bit flipped). int16 is its high byte, and its low byte
less 128.
"""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Value, constant
from tflq.ir.types import i8, i16, ui8
from tflq.light import dataclass
from tflq.select.lowering import Kernels

__all__ = ["Digit", "Digits", "array_digits", "digits", "fills"]


@dataclass(frozen=True, slots=True)
class Digit:
    """One int8 tensor and its weight in the sum."""

    coefficient: int
    value: Value


@dataclass(frozen=True, slots=True)
class Digits:
    """The digits of a tensor and what is added to their sum."""

    parts: tuple[Digit, ...]
    offset: int


def digits(k: Kernels, x: Value) -> Digits:
    """The digits of an int8, uint8 or int16 tensor; of a constant, constants."""
    if x.type.storage == i8:
        return Digits((Digit(1, x),), 0)
    if x.is_constant:
        arrays, offset = array_digits(x.array)
        return Digits(tuple(Digit(c, constant(a)) for c, a in arrays), offset)
    if x.type.storage == ui8:
        return Digits((Digit(1, _moved(k, k.cast(x, i16), -128)),), 128)
    if x.type.storage != i16:
        raise TypeError(f"{x.type.storage} has no int8 digits")
    high = k.cast(k.right_shift(x, k.constant(np.asarray(8), i16)), i8)
    low = _moved(k, k.cast(k.cast(x, i8), i16), 128)
    return Digits((Digit(256, high), Digit(1, low)), 128)


def _moved(k: Kernels, x: Value, by: int) -> Value:
    """x + by as int8, wrapping; ADD and CAST take a tenth of BITWISE_XOR's time."""
    return k.cast(k.add(x, k.constant(np.asarray(by), i16)), i8)


def array_digits(array: np.ndarray) -> tuple[list[tuple[int, np.ndarray]], int]:
    """(coefficient, digit) pairs of an array of stored integers, and the offset."""
    if array.dtype == np.int8:
        return [(1, array)], 0
    if array.dtype == np.uint8:
        return [(1, (array ^ np.uint8(0x80)).view(np.int8))], 128
    low = (array.astype(np.uint8) ^ np.uint8(0x80)).view(np.int8)
    return [(256, (array >> 8).astype(np.int8)), (1, low)], 128


def fills(dtype: np.dtype, stored: int) -> list[int]:
    """The digits of one stored integer, in the order of `digits`."""
    return [int(d) for _, d in array_digits(np.asarray(stored).astype(dtype))[0]]
