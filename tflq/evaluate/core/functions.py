"""Functions of floats: computed in float64, then rounded to the type, so that the last bit is right but in rare cases.
Those of f64 are numpy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.dialects.math.functions import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cbrt,
    Cos,
    Cosh,
    Erf,
    Erfc,
    Exp,
    Exp2,
    ExpM1,
    Log,
    Log1p,
    Log2,
    Log10,
    Rsqrt,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
)
from tflq.dialects.math.several import Atan2, FPowI, PowF
from tflq.evaluate.core.numbers import floats, held_floats, integers
from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []

_FUNCTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    Acos: np.arccos,
    Acosh: np.arccosh,
    Asin: np.arcsin,
    Asinh: np.arcsinh,
    Atan: np.arctan,
    Atanh: np.arctanh,
    Cbrt: np.cbrt,
    Cos: np.cos,
    Cosh: np.cosh,
    Erf: np.vectorize(math.erf, otypes=[np.float64]),  # numpy has none
    Erfc: np.vectorize(math.erfc, otypes=[np.float64]),
    Exp: np.exp,
    Exp2: np.exp2,
    ExpM1: np.expm1,
    Log: np.log,
    Log10: np.log10,
    Log1p: np.log1p,
    Log2: np.log2,
    Rsqrt: lambda x: 1 / np.sqrt(x),
    Sin: np.sin,
    Sinh: np.sinh,
    Sqrt: np.sqrt,
    Tan: np.tan,
    Tanh: np.tanh,
    Atan2: np.arctan2,
    PowF: np.power,
}


@evaluator(*_FUNCTIONS)
def _mapped(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(all="ignore"):
        return held_floats(kind, _FUNCTIONS[type(op)](*(floats(kind, a).astype(np.float64) for a in arrays)))


@evaluator(FPowI)
def _power(op: FPowI, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        whole = np.power(floats(op.lhs.type, a).astype(np.float64), integers(op.rhs.type, b).astype(np.float64))
    return held_floats(op.result.type, whole)
