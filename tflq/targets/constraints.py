"""Constraints on the scales of a kernel's operands and results: why an op does not keep one, or None.

    same_scale                       all quantized ports have one scale and zero point
    same_operand_scale               the operands do
    fixed_scale SCALE ZERO_POINT     the results have these
    multiplier_scale [BOUND]         operands' scales, multiplied, over the result's: a positive multiplier below BOUND
                                     (2^31 unless said; 1: shifts to the right only)
    multiplier_accumulator_scale     likewise of input and weights, and the bias is stored at input × weights, zero
                                     point 0
    power_of_two_scale               every scale is a power of two
    lowered                          never kept: what matches this line is lowered

Source: the shorthands of the RFC on quantization in MLIR; the tolerance of bias scales is GetQuantizedConvolution-
Multiplier's, 0.02 of the result's scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import UniformQuantizedType

__all__ = ["CONSTRAINTS", "Constraint", "constraint"]

Constraint: TypeAlias = Callable[..., str | None]
CONSTRAINTS: dict[str, tuple[Constraint, int, int]] = {}
"""By name: the function of an op and numbers, and how many numbers it takes at least and at most."""

_BIAS_TOLERANCE = 0.02


def constraint(name: str, least: int = 0, most: int | None = None) -> Callable[[Constraint], Constraint]:
    """Registers a constraint, with how many numbers it takes."""

    def register(function: Constraint) -> Constraint:
        CONSTRAINTS[name] = (function, least, least if most is None else most)
        return function

    return register


def _scales(value: Value) -> np.ndarray:
    element = value.type.element
    if isinstance(element, UniformQuantizedType):
        return np.asarray([element.scale])
    return np.asarray(element.scales, np.float64).reshape(-1)  # type: ignore[union-attr]


def _quantized(values: Iterable[Value | None]) -> list[Value]:
    return [v for v in values if v is not None and v.type.quantized]


def _parameters(value: Value) -> tuple[object, ...]:
    element = value.type.element
    if isinstance(element, UniformQuantizedType):
        return element.scale, element.zero_point
    return (element,)


def _alike(values: list[Value]) -> str | None:
    other = next((v for v in values[1:] if _parameters(v) != _parameters(values[0])), None)
    return None if other is None else f"'{values[0].name}' and '{other.name}' differ in scale or zero point"


@constraint("same_scale")
def _same_scale(op: Op) -> str | None:
    return _alike(_quantized(op.values))


@constraint("same_operand_scale")
def _same_operand_scale(op: Op) -> str | None:
    return _alike(_quantized(op.operands))


@constraint("fixed_scale", 2)
def _fixed_scale(op: Op, scale: float, zero_point: float) -> str | None:
    for value in _quantized(op.results):
        if _parameters(value) != (float(np.float32(scale)), int(zero_point)):
            return f"'{value.name}' is not of scale {scale:g} and zero point {zero_point:g}"
    return None


@constraint("multiplier_scale", 0, 1)
def _multiplier_scale(op: Op, bound: float = 2.0**31) -> str | None:
    product = np.ones(1)
    for value in _quantized(op.operands):
        product = product * _scales(value)
    return _multiplier(product, op.result, bound)


def _multiplier(product: np.ndarray, result: Value, bound: float) -> str | None:
    ratio = product / _scales(result)
    if (ratio > 0).all() and (ratio < bound).all():
        return None
    return f"scales give a multiplier of {ratio.max():g} for '{result.name}', which is not below {bound:g}"


@constraint("multiplier_accumulator_scale", 0, 1)
def _multiplier_accumulator_scale(op: Op, bound: float = 2.0**31) -> str | None:
    x, weights, bias = op.operand(0), op.operand(1), op.optional(2)
    if not (x.type.quantized and weights.type.quantized and op.result.type.quantized):
        return "input, weights or result are not quantized"
    product = _scales(x) * _scales(weights)
    if bias is not None and bias.type.quantized:
        if bias.type.element.storage.bits > 8 and np.any(getattr(bias.type.element, "zero_point", 0)):  # type: ignore[union-attr]
            return f"bias '{bias.name}' has a zero point"
        if (np.abs(product - _scales(bias)) / _scales(op.result) > _BIAS_TOLERANCE).any():
            return f"bias '{bias.name}' is not stored at the scale of input times weights"
    return _multiplier(product, op.result, bound)


@constraint("power_of_two_scale")
def _power_of_two_scale(op: Op) -> str | None:
    for value in _quantized(op.values):
        if (np.frexp(_scales(value))[0] != 0.5).any():
            return f"the scale of '{value.name}' is not a power of two"
    return None


@constraint("lowered")
def _lowered(op: Op) -> str | None:
    return "the target has no kernel on these types"
