"""Weights of nine bits, which per-axis uint8 ones less their zero points are, as sums of two int8 ones.

    sum x w = sum x a + sum x b      w = a + b, a the nearest int8 to w

The input is read twice, as twice as many channels; a depthwise convolution is computed twice.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import Refused
from tflq.ir.core import Value, constant
from tflq.ir.types import i8, i16
from tflq.tosa.lowering.context import Tosa

__all__ = ["fit_halves", "halves", "side_by_side"]


def fit_halves(weights: Value) -> tuple[np.ndarray, np.ndarray] | None:
    """a and b; None where they do not fit int8."""
    if not weights.is_constant:
        return None
    near = np.clip(weights.array, i8.minimum, i8.maximum)
    rest = weights.array - near
    if rest.min(initial=0) < i8.minimum or rest.max(initial=0) > i8.maximum:
        return None
    return near.astype(np.int8), rest.astype(np.int8)


def halves(weights: Value, what: str) -> tuple[np.ndarray, np.ndarray]:
    """a and b. Refused where they do not fit int8; `what` names the operator."""
    found = fit_halves(weights)
    if found is None:
        raise Refused(f"TOSA has no {what} by weights of int16", "store them in 8 bits")
    return found


def side_by_side(t: Tosa, x: Value, weights: Value, what: str) -> tuple[Value, Value]:
    """x and weights with twice as many input channels, the last dim of each; as they are if int8 already."""
    if weights.type.storage != i16:
        return x, weights
    near, rest = halves(weights, what)
    shape, axis = x.type.shape, (x.type.rank or 0) - 1
    if shape is None or shape[-1] is None:
        raise Refused("the input's channels are not known")
    twice = t.concat([x, x], axis)
    return twice, constant(np.ascontiguousarray(np.concatenate([near, rest], axis=-1)))
