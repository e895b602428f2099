"""Evaluators of arithmetic, elementwise. Integers wrap in the result's type, as TOSA's and TFLite's; float32 is IEEE's.

Those of TFLite compute on plain numbers.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl import arithmetic as tfl
from tflq.dialects.tosa import arithmetic as tosa
from tflq.evaluate.registry import evaluator, of_arrays
from tflq.numerics.activation import BOUNDS

__all__: list[str] = []


evaluator(tosa.Add)(of_arrays(np.add))
evaluator(tosa.Sub)(of_arrays(np.subtract))
evaluator(tosa.Maximum, tfl.Maximum)(of_arrays(np.maximum))
evaluator(tosa.Minimum, tfl.Minimum)(of_arrays(np.minimum))
evaluator(tosa.Abs)(of_arrays(np.abs))


@evaluator(tosa.Mul)
def _mul(op: tosa.Mul, a: np.ndarray, b: np.ndarray, given: np.ndarray | None = None) -> np.ndarray:
    """`given`: the shift as an operand, as text of `tosa` has it."""
    shift = op.shift if given is None else int(given.item())
    if not shift:
        dtype = op.result.type.storage.dtype
        return a.astype(dtype) * b.astype(dtype)
    return (a.astype(np.int64) * b.astype(np.int64) + (1 << (shift - 1))) >> shift


@evaluator(tosa.Negate)
def _negate(op: tosa.Negate, x: np.ndarray) -> np.ndarray:
    """output_zp - (x - input1_zp), saturated."""
    if x.dtype.kind == "f":
        return -x
    storage = op.result.type.storage
    value = op.output_zp + op.input1_zp - x.astype(np.int64)
    return np.clip(value, storage.minimum, storage.maximum)


@evaluator(tosa.IntDiv)
def _truncated_quotient(op: tosa.IntDiv, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _truncated(a, b)


def _truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quotient of integers, rounded toward zero."""
    with np.errstate(divide="ignore"):  # by 0 it is not defined
        return np.sign(a) * np.sign(b) * (np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64)))


@evaluator(tosa.Pow)
def _pow(op: tosa.Pow, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.power(a.astype(np.float64), b).astype(a.dtype)


def _clamped(op: tfl.Add | tfl.Sub | tfl.Mul | tfl.Div, x: np.ndarray) -> np.ndarray:
    """What the fused activation lets pass. NotImplementedError: one that does not clamp."""
    name = op.fused_activation_function
    if name == "NONE":
        return x
    if name not in BOUNDS:
        raise NotImplementedError(f"{op.name} with {name}")
    return np.clip(x, *(None if bound is None else x.dtype.type(bound) for bound in BOUNDS[name]))


@evaluator(tfl.Add)
def _add(op: tfl.Add, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _clamped(op, a + b)


@evaluator(tfl.Sub)
def _sub(op: tfl.Sub, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _clamped(op, a - b)


@evaluator(tfl.Mul)
def _product(op: tfl.Mul, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _clamped(op, a * b)


@evaluator(tfl.Div)
def _div(op: tfl.Div, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integers are rounded toward zero."""
    return _clamped(op, a / b if a.dtype.kind == "f" else _truncated(a, _divisor(b)).astype(a.dtype))


@evaluator(tfl.FloorDiv)
def _floor_div(op: tfl.FloorDiv, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.floor_divide(a, _divisor(b))


@evaluator(tfl.FloorMod)
def _floor_mod(op: tfl.FloorMod, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.mod(a, _divisor(b))


def _divisor(b: np.ndarray) -> np.ndarray:
    """ZeroDivisionError if one is 0: kernels refuse it."""
    if not b.all():
        raise ZeroDivisionError("a divisor is 0")
    return b
