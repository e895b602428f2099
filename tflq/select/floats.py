"""Floats limited and rounded on builtins.

ROUND is not among the reference kernels: half to even is what a float sum does where a unit in the last place is 1,
(|x| + 2^23) - 2^23.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.activation import Relu, Relu6
from tflq.dialects.tfl.unary import Abs, Sign
from tflq.ir.core import Value
from tflq.ir.types import ScalarType
from tflq.select.lowering import Kernels

__all__ = ["limited", "rectifier", "rounded", "rounded_small"]


def rounded(k: Kernels, x: Value) -> Value:
    """x, a float32, to the nearest whole number, half to even; what is beyond 2^23 is one."""
    unit = k.constant(1 << 23, x.type.storage)
    magnitude = k.emit(Abs, [x])
    inside = k.minimum(magnitude, unit)
    whole = k.add(k.sub(k.add(inside, unit), unit), k.sub(magnitude, inside))
    return k.mul(whole, k.emit(Sign, [x]))


def rounded_small(k: Kernels, x: Value) -> Value:
    """The same of x below 2^22 in magnitude."""
    unit = k.constant(3 << 22, x.type.storage)
    return k.sub(k.add(x, unit), unit)


def rectifier(low: float, high: float, storage: ScalarType) -> str | None:
    """The activation that limits floats to [low, high]: RELU, RELU6, or none."""
    if low != 0:
        return None
    return {6.0: "RELU6", float(np.finfo(storage.dtype).max): "RELU", np.inf: "RELU"}.get(high)


def limited(k: Kernels, x: Value, low: float, high: float) -> Value:
    """x within [low, high], floats: RELU or RELU6 if that is it, else MAXIMUM and MINIMUM where they can bite."""
    name = rectifier(low, high, x.type.storage)
    if name is not None:
        return k.emit(Relu6 if name == "RELU6" else Relu, [x])
    largest = float(np.finfo(x.type.storage.dtype).max)
    if low > -largest:
        x = k.maximum(x, k.constant(low, x.type.storage))
    if high < largest:
        x = k.minimum(x, k.constant(high, x.type.storage))
    return x
