"""Constraints on the scales of a kernel's operands and results: why an op does not keep one, or None.

    same_scale                       all quantized ports have one scale and zero point
    same_operand_scale               the operands do
    operand_scale_below BOUND        the operands' scales are below BOUND
    fixed_scale SCALE ZERO_POINT     the results have these
    multiplier_scale [BOUND]         operands' scales, multiplied, over the result's: a positive multiplier below BOUND
                                     (2^31 unless said; 1: shifts to the right only)
    multiplier_accumulator_scale     likewise of input and weights, and the bias is stored at input × weights, zero
              [BOUND]                point 0
    power_of_two_scale               every scale is a power of two
    no_activation                    no activation is fused
    lowered                          never kept: what matches this line is lowered

Others can be entered by `constraint`, before a file that names them is read.

Source: the shorthands of the RFC on quantization in MLIR; the tolerance of bias scales is GetQuantizedConvolution-
Multiplier's, 0.02 of the result's scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from tflq.dialects.declare import Operator, Slot
from tflq.ir.core import Op, Value
from tflq.ir.types import UniformQuantizedType
from tflq.light import dataclass

__all__ = ["CONSTRAINTS", "Constraint", "constraint"]

_Function: TypeAlias = Callable[..., str | None]
F = TypeVar("F", bound=_Function)

_BIAS_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class Constraint:
    """A function of an op and numbers. `numbers`: what each is, "positive" or "integer"; "?": it may be left out.
    `accumulates`: only operators with input, weights and bias have what it is about."""

    function: _Function
    numbers: tuple[str, ...] = ()
    accumulates: bool = False

    def parse(self, words: Sequence[str]) -> tuple[float, ...]:
        """The numbers. ValueError says what they have to be."""
        asked = ", ".join(kind.removesuffix("?") + (" (or none)" * kind.endswith("?")) for kind in self.numbers)
        least = sum(not kind.endswith("?") for kind in self.numbers)
        try:
            found = tuple(map(float, words))
        except ValueError:
            found = (math.nan,)
        if not least <= len(found) <= len(self.numbers) or not all(map(_is, found, self.numbers)):
            raise ValueError(f"{len(self.numbers) or 'no'} number(s)" + (f": {asked}" if asked else ""))
        return found

    def misfit(self, operands: Sequence[Slot]) -> str | None:
        """The operators that it is of, if one with such operands is none of them."""
        names = {slot.name for slot in operands}
        if not self.accumulates or ({"input", "bias"} <= names and names & _WEIGHTS):
            return None
        return "operators with input, weights and bias"


def _is(number: float, kind: str) -> bool:
    return math.isfinite(number) and (number > 0 if kind.startswith("positive") else number.is_integer())


CONSTRAINTS: dict[str, Constraint] = {}
"""By name."""

_WEIGHTS = frozenset({"filter", "weights"})


def constraint(name: str, *numbers: str, accumulates: bool = False) -> Callable[[F], F]:
    """Enters a function of an op and numbers under a name, by which signatures ask for it."""

    def register(function: F) -> F:
        CONSTRAINTS[name] = Constraint(function, numbers, accumulates)
        return function

    return register


def _scales(value: Value) -> np.ndarray:
    element = value.type.element
    if isinstance(element, UniformQuantizedType):
        return np.asarray([element.scale])
    return np.asarray(element.scales, np.float64).reshape(-1)  # type: ignore[union-attr]


def _zero_points(value: Value) -> np.ndarray:
    element = value.type.element
    if isinstance(element, UniformQuantizedType):
        return np.asarray([element.zero_point])
    return np.asarray(element.zero_points)  # type: ignore[union-attr]


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


_COUNTS = (1 << 16) - 1


@constraint("same_scale")
def _same_scale(op: Op) -> str | None:
    return _alike(_quantized(op.tensors))


@constraint("same_operand_scale")
def _same_operand_scale(op: Op) -> str | None:
    return _alike(_quantized(op.operands))


@constraint("operand_scale_below", "positive")
def _operand_scale_below(op: Op, bound: float) -> str | None:
    for value in _quantized(op.operands):
        if not (_scales(value) < bound).all():
            return f"the scale of '{value.name}' is {_scales(value).max():g}, not below {bound:g}"
    return None


@constraint("fixed_scale", "positive", "integer")
def _fixed_scale(op: Op, scale: float, zero_point: float) -> str | None:
    """Converters write 1/65535 for 1/65536, and kernels take it for that: over 16 bits it is less than one count."""
    for value in _quantized(op.results):
        element = value.type.element
        single = isinstance(element, UniformQuantizedType) and element.zero_point == int(zero_point)
        if not single or abs(_scales(value)[0] - scale) > scale / _COUNTS:
            return f"'{value.name}' is not of scale {scale:g} and zero point {zero_point:g}"
    return None


@constraint("multiplier_scale", "positive?")
def _multiplier_scale(op: Op, bound: float = 2.0**31) -> str | None:
    return _multiplier(_quantized(op.operands), op, bound)


def _multiplier(factors: list[Value], op: Op, bound: float) -> str | None:
    """The product of the scales of some values over those of the results: one per index where there is an axis."""
    for result in _quantized(op.results):
        ratio = np.ones(1)
        for value in factors:
            scales = _scales(value)
            if scales.size != ratio.size and 1 not in (scales.size, ratio.size):
                return f"'{value.name}' has {scales.size} scales, another operand {ratio.size}"
            with np.errstate(invalid="ignore"):
                ratio = ratio * scales
        scales = _scales(result)
        if scales.size not in (1, ratio.size):
            return f"'{result.name}' has {scales.size} scales, its operands {ratio.size}"
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = ratio / scales
        if not (ratio < bound).all():
            return f"scales give a multiplier of {ratio.max():g} for '{result.name}', which is not below {bound:g}"
    return None


@constraint("multiplier_accumulator_scale", "positive?", accumulates=True)
def _multiplier_accumulator_scale(op: Op, bound: float = 2.0**31) -> str | None:
    parts = _parts(op)
    x, weights, bias = parts["input"], next(parts[name] for name in _WEIGHTS if name in parts), parts["bias"]
    if x is None or weights is None or not (x.type.quantized and weights.type.quantized and op.result.type.quantized):
        return "input, weights or result are not quantized"
    reason = _multiplier([x, weights], op, bound)
    if reason is None and bias is not None and bias.type.quantized:
        if _zero_points(bias).any():
            return f"bias '{bias.name}' has a zero point"
        product, scales = _scales(x) * _scales(weights), _scales(bias)
        fits = 1 in (product.size, scales.size) or product.size == scales.size
        if not fits or (np.abs(product - scales) / _scales(op.result) > _BIAS_TOLERANCE).any():
            return f"bias '{bias.name}' is not stored at the scale of input times weights"
    return reason


def _parts(op: Op) -> dict[str, Value | None]:
    """An op's operands by the names that its declaration has for them."""
    assert isinstance(op, Operator)
    return {slot.name: op.optional(place) for place, slot in enumerate(op.operand_slots)}


@constraint("power_of_two_scale")
def _power_of_two_scale(op: Op) -> str | None:
    for value in _quantized(op.tensors):
        if (np.frexp(_scales(value))[0] != 0.5).any():
            return f"the scale of '{value.name}' is not a power of two"
    return None


@constraint("no_activation")
def _no_activation(op: Op) -> str | None:
    activation = getattr(op, "fused_activation_function", "NONE")
    return None if activation == "NONE" else f"the fused activation is {activation}"


@constraint("lowered")
def _lowered(op: Op) -> str | None:
    return "the target has no kernel on these types"
