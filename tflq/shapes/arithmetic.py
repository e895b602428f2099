"""Elementwise operators and reductions on the plain numbers that sizes are computed with.

Integers wrap, DIV truncates, FLOOR_DIV and FLOOR_MOD round down; float32 is IEEE's. Sources: the kernels of these
names in kernels/.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

__all__ = ["ARITHMETIC", "REDUCTIONS", "reduced"]


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    if (b == 0).any():
        raise ZeroDivisionError
    return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)))


def _floor_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if (b == 0).any():
        raise ZeroDivisionError
    return np.asarray(np.floor_divide(a, b))


def _floor_mod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if (b == 0).any():
        raise ZeroDivisionError
    return np.asarray(np.mod(a, b))


ARITHMETIC: Final[dict[str, Callable[..., Any]]] = {
    "tfl.add": np.add,
    "tfl.sub": np.subtract,
    "tfl.mul": np.multiply,
    "tfl.div": _divide,
    "tfl.floor_div": _floor_divide,
    "tfl.floor_mod": _floor_mod,
    "tfl.maximum": np.maximum,
    "tfl.minimum": np.minimum,
    "tfl.neg": np.negative,
    "tfl.abs": np.abs,
    "tfl.square": np.square,
    "tfl.floor": np.floor,
    "tfl.ceil": np.ceil,
    "tfl.equal": np.equal,
    "tfl.not_equal": np.not_equal,
    "tfl.less": np.less,
    "tfl.less_equal": np.less_equal,
    "tfl.greater": np.greater,
    "tfl.greater_equal": np.greater_equal,
    "tfl.logical_and": np.logical_and,
    "tfl.logical_or": np.logical_or,
    "tfl.logical_not": np.logical_not,
    "tfl.zeros_like": np.zeros_like,
    "tfl.broadcast_args": lambda a, b: np.asarray(
        np.broadcast_shapes(tuple(int(v) for v in a), tuple(int(v) for v in b))
    ),
}
"""Builtin -> function of arrays; in the dtype of the operands."""

REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "tfl.sum": np.sum,
    "tfl.reduce_prod": np.prod,
    "tfl.reduce_max": np.max,
    "tfl.reduce_min": np.min,
    "tfl.reduce_any": np.any,
    "tfl.reduce_all": np.all,
}


def reduced(function: Callable[..., Any], array: np.ndarray, axes: np.ndarray, keep: bool) -> np.ndarray:
    """A reduction over axes."""
    along = tuple(int(a) % array.ndim for a in axes.reshape(-1))
    return np.asarray(function(array, axis=along, keepdims=keep))
