"""LOGISTIC and TANH of the recurrent kernels: gemmlowp's fixed point in 16 bits, as tables of every int16.

The argument has a number of integer bits (Qk.(15-k)), the result has none (Q0.15). exp of a value x <= 0 is a
polynomial on [-1/4, 0), times exp(-2^k) for each bit that x has above; 1 / (1 + e) and (1 - e) / (1 + e) are three
Newton steps from 48/17 - 32/17 * (1 + e) / 2, in Q2.13. Sums wrap in 16 bits; products are round(a * b / 2^15).

Sources: kernels/internal/reference/portable_tensor_utils.cc (PortableApplySigmoid, PortableApplyTanh), gemmlowp
fixedpoint/fixedpoint.h (logistic, tanh and what they call, for int16).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tflq.numerics.fixed_point import rounding_divide_by_pot

__all__ = ["LOGISTIC_BITS", "logistic_table", "tanh_table"]

LOGISTIC_BITS = 3
"""Integer bits of a gate before its activation."""
_ONE = 32767  # in Q0.15


def _constant(q31: int) -> int:
    """A constant that the source gives in 32 bits."""
    return int(rounding_divide_by_pot(np.asarray(q31, np.int32), 16))


_EXP_OF_EIGHTH = _constant(1895147668)
_THIRD = _constant(715827883)
_EXP_OF_POWERS = tuple(map(_constant, (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)))
_NEWTON_OFFSET = _constant(1515870810)  # 48 / 17 in Q2.13
_NEWTON_SLOPE = _constant(-1010580540)  # -32 / 17
_NEWTON_ONE = 1 << 13


def _wrapped(x: np.ndarray) -> np.ndarray:
    """What 16 bits hold of int32 values."""
    return x.astype(np.int16).astype(np.int32)


def _product(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    return np.minimum((a * b + (1 << 14)) >> 15, 32767)


def _saturated(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -32768, 32767)


def _exponential(x: np.ndarray, bits: int) -> np.ndarray:
    """exp of x <= 0 with that many integer bits, in Q0.15."""
    fraction = 15 - bits
    quarter = 1 << (fraction - 2)
    within = (x & (quarter - 1)) - quarter
    a = (within << bits) + (1 << 12)
    square = _product(a, a)
    fourth = rounding_divide_by_pot(_product(square, square), 2)
    tail = rounding_divide_by_pot(_product(fourth + _product(square, a), _THIRD) + square, 1)
    result = _saturated(_EXP_OF_EIGHTH + _product(_wrapped(a + tail), _EXP_OF_EIGHTH))
    remainder = _wrapped(within - x)
    for k, factor in zip(range(-2, bits), _EXP_OF_POWERS, strict=False):
        result = np.where(remainder & (1 << (fraction + k)), _product(result, factor), result)
    if bits > 5:
        result = np.where(x < -(1 << (20 - bits)), 0, result)
    return np.where(x == 0, _ONE, result)


def _newton(e: np.ndarray) -> np.ndarray:
    """2 / (1 + e) for e in Q0.15, in Q2.13."""
    half = (e + _ONE + 1) >> 1
    x = _wrapped(_NEWTON_OFFSET + _product(half, _NEWTON_SLOPE))
    for _ in range(3):
        rest = _wrapped(_NEWTON_ONE - _product(half, x))
        x = _wrapped(x + _saturated(_product(x, rest) << 2))
    return x


def _every() -> np.ndarray:
    return np.arange(-32768, 32768, dtype=np.int32)


@cache
def logistic_table() -> np.ndarray:
    """1 / (1 + exp(-x)) in Q0.15 of every x in Q3.12, the least first."""
    x = _every()
    positive = _saturated(_newton(_exponential(-np.abs(x), LOGISTIC_BITS)) << 1)
    negative = _ONE - positive
    return np.where(x == 0, 1 << 14, np.where(x > 0, positive, negative)).astype(np.int16)


@cache
def tanh_table(bits: int) -> np.ndarray:
    """tanh(x) in Q0.15 of every x with that many integer bits, 0 to 6, the least first."""
    if not 0 <= bits <= 6:
        raise ValueError(f"TANH of {bits} integer bits: the kernels have 0 to 6")
    x = _every()
    e = _exponential(-np.abs(x), bits + 1)
    magnitude = _saturated(_wrapped(_newton(e) - _NEWTON_ONE) << 2)
    return np.where(x == 0, 0, np.where(x < 0, _wrapped(-magnitude), magnitude)).astype(np.int16)
