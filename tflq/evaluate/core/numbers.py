"""Numbers of the core dialects' element types: how arrays hold them, and what is computed on.

integers    int64 by their sign, whatever their width; i1 is held as a boolean, whose 1 is -1
floats      their own type; bf16 as float32, each result rounded to it
"""

from __future__ import annotations

import numpy as np

from tflq.ir.types import ScalarType, TensorType, bf16
from tflq.numerics.bfloat16 import bfloat16_bits, bfloat16_values
from tflq.numerics.signless import wrapped

__all__ = ["floats", "held_floats", "held_integers", "integers", "rounded_to_odd", "width"]


def width(type: TensorType) -> int:
    """How many bits an integer has."""
    storage = type.storage
    if storage.bits > 64:
        raise NotImplementedError(f"integers of {storage.bits} bits are not evaluated")
    return 1 if storage.kind == "bool" else storage.bits


def integers(type: TensorType, array: np.ndarray) -> np.ndarray:
    """int64 of what an array of a type holds."""
    width(type)
    wide = np.asarray(array).astype(np.int64)
    return -wide if type.storage.kind == "bool" else wide


def held_integers(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The array of a type for int64 or uint64, modulo its width."""
    inside = wrapped(numbers, width(type))
    return inside != 0 if type.storage.kind == "bool" else inside.astype(type.storage.dtype)


def floats(type: TensorType, array: np.ndarray) -> np.ndarray:
    """What an array of a type stands for. NotImplementedError for floats of 8 bits and the like."""
    if type.storage is bf16:
        return bfloat16_values(np.asarray(array, np.uint16))
    _check(type.storage)
    return np.asarray(array)


def held_floats(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The array of a type for floats, rounded to it: to nearest, ties to even."""
    if type.storage is bf16:
        return bfloat16_bits(numbers)
    _check(type.storage)
    with np.errstate(over="ignore"):
        return np.asarray(numbers).astype(type.storage.dtype)


def _check(storage: ScalarType) -> None:
    if not storage.numpy:
        raise NotImplementedError(f"{storage} is not evaluated")


def rounded_to_odd(numbers: np.ndarray) -> np.ndarray:
    """Integers, int64 or uint64, as float64 which rounds on to fewer than 50 bits as they do: of what float64 does not
    hold, the bits that go leave one behind."""
    x = np.asarray(numbers)
    size = np.where(x < 0, -x, x).astype(np.uint64) if x.dtype.kind == "i" else x
    cut = size & ~np.uint64(0x7FF)
    sticky = np.where(size != cut, np.uint64(0x800), np.uint64(0))
    large = np.where(size >= np.uint64(1 << 53), cut | sticky, size).astype(np.float64)
    return np.where(x < 0, -large, large)
