"""What quantized values stand for, as the specification computes them: every step in the expressed type.

Source: `dequantize`, `quantize` and `dequantize_op_quantize` of the StableHLO specification. Where two types have the
same scale, a number goes from one to the other in integers: the same wherever floating point is exact enough, and right
beyond that (an i32 of more than 24 bits).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.ir.parameters import parameters
from tflq.ir.types import TensorType, bf16, is_quantized
from tflq.numerics.bfloat16 import bfloat16_bits, bfloat16_values
from tflq.numerics.rounding import saturated

__all__ = ["dequantized", "in_units", "quantized", "real", "rounded_to", "same_scale", "stored"]


def _grid(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scales in the expressed type and zero points, shaped to broadcast."""
    element = type.element
    assert is_quantized(element)
    if not element.expressed.numpy:
        raise NotImplementedError(f"numbers expressed in {element.expressed} are not evaluated")
    scale, zero_point = parameters(type)
    return scale.astype(element.expressed.dtype), zero_point.astype(np.int64)


def dequantized(type: TensorType, array: np.ndarray) -> np.ndarray:
    """What stored integers of a type stand for, in the expressed type."""
    scale, zero_point = _grid(type)
    out: np.ndarray = (array.astype(np.int64) - zero_point).astype(scale.dtype) * scale
    return out


def quantized(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The stored integers (int64) that stand for numbers of the expressed type: quotient plus zero point, rounded half
    to even, within the bounds of the type."""
    scale, zero_point = _grid(type)
    element: Any = type.element
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        near = np.rint(np.asarray(numbers, scale.dtype) / scale + zero_point.astype(scale.dtype))
    return saturated(np.nan_to_num(near.astype(np.float64), nan=0.0), element.storage_min, element.storage_max)


def real(type: TensorType, array: np.ndarray) -> np.ndarray:
    """The numbers that an array of a type stands for; bf16 as float32."""
    if type.quantized:
        return dequantized(type, array)
    return bfloat16_values(array) if type.storage is bf16 else array


def stored(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The array of a type that stands for numbers."""
    if type.quantized:
        return quantized(type, numbers)
    return bfloat16_bits(numbers) if type.storage is bf16 else numbers


def rounded_to(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """Numbers as a step of a computation leaves them in a type: those of bf16 are float32 here."""
    return bfloat16_values(bfloat16_bits(numbers)) if type.storage is bf16 else numbers


def same_scale(*types: TensorType) -> bool:
    """Whether all are quantized, with equal scales."""
    if not all(type.quantized for type in types):
        return False
    first = _grid(types[0])[0]
    return all(np.array_equal(first, _grid(type)[0]) for type in types[1:])


def in_units(type: TensorType, array: np.ndarray) -> np.ndarray:
    """Stored integers less their zero point: how many scales a number is."""
    out: np.ndarray = array.astype(np.int64) - _grid(type)[1]
    return out


def from_units(type: TensorType, units: np.ndarray) -> np.ndarray:
    """The counterpart of `in_units`, within the bounds of the type."""
    element: Any = type.element
    return np.clip(units + _grid(type)[1], element.storage_min, element.storage_max)
