"""Evaluators of TOSA's functions of one number: computed in float64, rounded to the type of the operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from tflq.dialects.tosa.activation import Ceil, Clamp, Cos, Erf, Exp, Floor, Log, Reciprocal, Rsqrt, Sigmoid, Sin, Tanh
from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []


_UNARY: Final[dict[type[Op], Callable[[np.ndarray], np.ndarray]]] = {
    Ceil: np.ceil,
    Cos: np.cos,
    Erf: np.vectorize(math.erf, otypes=[np.float64]),
    Exp: np.exp,
    Floor: np.floor,
    Log: np.log,
    Reciprocal: lambda x: 1 / x,
    Rsqrt: lambda x: 1 / np.sqrt(x),
    Sigmoid: lambda x: 1 / (1 + np.exp(-x)),
    Sin: np.sin,
    Tanh: np.tanh,
}


@evaluator(*_UNARY)
def _unary(op: Op, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _UNARY[type(op)](x.astype(np.float64)).astype(x.dtype)


@evaluator(Clamp)
def _clamp(op: Clamp, x: np.ndarray) -> np.ndarray:
    return np.clip(x, op.min_val, op.max_val)
