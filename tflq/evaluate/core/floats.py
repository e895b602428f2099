"""Arithmetic of floats, roundings to whole numbers, and questions about floats: exact, or rounded once.

Sums, products, quotients and roots of f16 and bf16 are computed in float32, which has more than twice their digits: the
second rounding changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.dialects.arith.floats import (
    AddF,
    DivF,
    MaximumF,
    MaxNumF,
    MinimumF,
    MinNumF,
    MulF,
    NegF,
    RemF,
    SubF,
)
from tflq.dialects.math.classes import IsFinite, IsInf, IsNaN, IsNormal
from tflq.dialects.math.rounding import AbsF, Ceil, Floor, Round, RoundEven, Trunc
from tflq.dialects.math.several import ClampF, CopySign, Fma
from tflq.evaluate.core.numbers import floats, held_floats
from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op
from tflq.ir.types import f64
from tflq.numerics.rounding import half_away

__all__: list[str] = []


def _maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """0 is greater than -0."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return -_maximum(-a, -b)


_FUNCTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    AddF: np.add,
    SubF: np.subtract,
    MulF: np.multiply,
    DivF: np.divide,
    RemF: np.fmod,
    MaximumF: _maximum,
    MinimumF: _minimum,
    MaxNumF: np.fmax,
    MinNumF: np.fmin,
    NegF: np.negative,
    AbsF: np.abs,
    Ceil: np.ceil,
    Floor: np.floor,
    Round: half_away,
    RoundEven: np.rint,
    Trunc: np.trunc,
    CopySign: np.copysign,
    ClampF: lambda x, low, high: _minimum(_maximum(x, low), high),
}


@evaluator(*_FUNCTIONS)
def _mapped(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(all="ignore"):
        return held_floats(kind, _FUNCTIONS[type(op)](*(floats(kind, array) for array in arrays)))


@evaluator(Fma)
def _fma(op: Fma, *arrays: np.ndarray) -> np.ndarray:
    """The product is exact in float64, and so is what the sum with it loses: that makes the sum odd, which rounds to
    the type as the exact one does."""
    kind = op.result.type
    if kind.element == f64:
        raise NotImplementedError("math.fma of f64 is not evaluated")
    a, b, c = (floats(kind, array).astype(np.float64) for array in arrays)
    with np.errstate(all="ignore"):
        product = a * b
        total = product + c
        part = total - product
        lost = (product - (total - part)) + (c - part)
    bits = np.asarray(total).view(np.int64)
    inexact = np.isfinite(total) & (lost != 0) & (bits & 1 == 0)
    toward = np.where((lost > 0) == (total > 0), 1, -1)
    odd = np.where(inexact, bits + toward, bits).view(np.float64)
    return held_floats(kind, odd)


def _is_normal(x: np.ndarray) -> np.ndarray:
    tiny = np.finfo(x.dtype).tiny  # that of bf16 is that of float32
    return np.isfinite(x) & (np.abs(x) >= tiny)


_QUESTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    IsFinite: np.isfinite,
    IsInf: np.isinf,
    IsNaN: np.isnan,
    IsNormal: _is_normal,
}


@evaluator(*_QUESTIONS)
def _asked(op: Op, x: np.ndarray) -> np.ndarray:
    return np.asarray(_QUESTIONS[type(op)](floats(op.operand(0).type, x)))
