"""Evaluators of `fxpmath`: real numbers in float64, rounded once to what the result's type holds; integers exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.dialects.fxpmath import (
    Matmul,
    RealAddEw,
    RealDivEw,
    RealMath,
    RealMatmul,
    RealMatmulBias,
    RealMulEw,
    RealSubEw,
    RealUnary,
    RoundingDivideByPot,
    SaturatingAdd,
    SaturatingRoundingDoublingHighMul,
)
from tflq.evaluate.registry import evaluator, floats, held_floats
from tflq.ir.types import ScalarType, TensorType, is_quantized, parameters
from tflq.numerics.fixed_point import rounding_divide_by_pot
from tflq.numerics.real_math import FUNCTIONS, Steps


def _steps(type: TensorType) -> Any:
    """How a quantized tensor stores numbers; its parameters broadcast to it."""
    element = type.element
    if not is_quantized(element):
        raise NotImplementedError(f"nothing says the parameters of {type}")
    scale, zero_point = parameters(type)
    return Steps(scale.astype(np.float64), zero_point, element.storage_min, element.storage_max)  # type: ignore[arg-type]


def _real(type: TensorType, array: np.ndarray) -> np.ndarray:
    """The numbers of a tensor, in double."""
    if isinstance(type.element, ScalarType):
        return floats(type, array).astype(np.float64)
    return np.asarray(_steps(type).real(array))


def _reals(op: RealMath, arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return [_real(value.type, array) for value, array in zip(op.tensors, arrays, strict=False)]


def _result(op: RealMath, x: np.ndarray) -> np.ndarray:
    """Numbers in double, clamped and rounded to the result's type."""
    type, floating = op.result.type, isinstance(op.result.type.element, ScalarType)
    if not floating:
        x = np.where(np.isnan(x), 0.0, x)
    if op.clamp_min is not None:
        x = np.maximum(x, op.clamp_min)
    if op.clamp_max is not None:
        x = np.minimum(x, op.clamp_max)
    return held_floats(type, x) if floating else np.asarray(_steps(type).stored(x))


_BINARY = {RealAddEw: np.add, RealSubEw: np.subtract, RealMulEw: np.multiply, RealDivEw: np.divide}


@evaluator(*_BINARY)
def _binary(op: RealMath, *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _result(op, _BINARY[type(op)](*_reals(op, arrays)))  # type: ignore[index]


@evaluator(RealUnary)
def _unary(op: RealUnary, *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _result(op, FUNCTIONS[op.opcode](*_reals(op, arrays)))


@evaluator(RealMatmul, RealMatmulBias)
def _matmul(op: RealMatmul | RealMatmulBias, *arrays: np.ndarray) -> np.ndarray:
    lhs, rhs, *bias = _reals(op, arrays)
    with np.errstate(all="ignore"):
        product = np.matmul(lhs, rhs)
        return _result(op, product + bias[0] if bias else product)


@evaluator(RoundingDivideByPot)
def _divide(op: RoundingDivideByPot, x: np.ndarray) -> np.ndarray:
    return rounding_divide_by_pot(x, op.exponent)


@evaluator(SaturatingAdd)
def _add(op: SaturatingAdd, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.clip(x.astype(np.int64) + y, op.clamp_min, op.clamp_max)


@evaluator(SaturatingRoundingDoublingHighMul)
def _high_multiply(op: SaturatingRoundingDoublingHighMul, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = op.result.type.storage.bits
    product = x.astype(np.int64) * y
    return np.minimum((product + (1 << (bits - 2))) >> (bits - 1), (1 << (bits - 1)) - 1)


@evaluator(Matmul)
def _integer_matmul(op: Matmul, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Sums in 64 bits, of which int32 keeps the low half."""
    return np.matmul(x.astype(np.int64) - op.lhs_zero_point, y.astype(np.int64) - op.rhs_zero_point)
