"""Evaluators of TOSA's float operators: computed in float64, rounded to the type of the operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.dialects.tosa.arithmetic import Abs, Pow
from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []


def _erf(x: np.ndarray) -> np.ndarray:
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x)


_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ceil": np.ceil,
    "cos": np.cos,
    "erf": _erf,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "tanh": np.tanh,
}


@evaluator(*(f"tosa.{name}" for name in _UNARY))
def _unary(op: Op, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _UNARY[op.name.removeprefix("tosa.")](x.astype(np.float64)).astype(x.dtype)


@evaluator(Abs)
def _abs(op: Abs, x: np.ndarray) -> np.ndarray:
    return np.abs(x)


@evaluator(Pow)
def _pow(op: Pow, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.power(a.astype(np.float64), b).astype(a.dtype)
