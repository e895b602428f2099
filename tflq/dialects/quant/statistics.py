"""Statistics of values, and points that are known by a key. Each op results in its operand, which it says something of.

Source: "Instrumentation and constraint ops" of MLIR's documentation of quantization.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.dialects.declare import Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.traits.effects import Impure
from tflq.ir.core import Op, Value
from tflq.ir.op_checks import constraint
from tflq.ir.quant_constraints import one_operand_and_result
from tflq.ir.types import ScalarType

__all__ = ["ConstFakeQuant", "ConstFakeQuantPerAxis", "CoupledRef", "Stats", "StatsRef"]

_BITS = range(2, 17)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_pairs(value: Any, rank: int) -> bool:
    """Whether an attribute is floats of a rank, whose last dim is a minimum and a maximum."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == rank and value.shape[-1:] == (2,)


def _ordered(value: Any) -> bool:
    """Whether every minimum is at most its maximum; not so if one is no number."""
    pairs = np.asarray(value)
    return bool((pairs[..., 0] <= pairs[..., 1]).all())


@constraint
def _same_type(op: Op) -> bool:
    """the operand and the result must be of the same type"""
    return op.operand(0).type == op.result.type


@constraint
def _real(op: Op) -> bool:
    """the operand must be a tensor of reals: of a floating-point or a quantized type"""
    element = op.operand(0).type.element
    return not isinstance(element, ScalarType) or element.is_float


@constraint
def _range_given(op: Op) -> bool:
    """min and max must be numbers"""
    return _is_number(op.attributes.get("min")) and _is_number(op.attributes.get("max"))


@constraint
def _range_ordered(op: Op) -> bool:
    """min must be below max"""
    return bool(op.attributes["min"] < op.attributes["max"])


@constraint
def _ranges_given(op: Op) -> bool:
    """min and max must be lists of numbers, one for each index of the axis"""
    low, high = op.attributes.get("min"), op.attributes.get("max")
    lists = all(isinstance(side, (list, tuple, np.ndarray)) and all(map(_is_number, side)) for side in (low, high))
    return lists and len(low) == len(high) > 0  # type: ignore[arg-type]


@constraint
def _ranges_ordered(op: Op) -> bool:
    """each min must be below its max"""
    return all(low < high for low, high in zip(op.attributes["min"], op.attributes["max"], strict=True))


@constraint
def _ranges_of_axis(op: Op) -> bool:
    """there must be one min and one max for each index of the axis, which must be an axis of the tensor"""
    return _fits_axis(op, len(op.attributes["min"]))


@constraint
def _bits(op: Op) -> bool:
    """num_bits must be an integer from 2 to 16"""
    bits = op.attributes.get("num_bits")
    return isinstance(bits, int) and not isinstance(bits, bool) and bits in _BITS


@constraint
def _flags(op: Op) -> bool:
    """narrow_range and is_signed must be true or false"""
    return all(isinstance(op.attributes.get(key, False), bool) for key in ("narrow_range", "is_signed"))


@constraint
def _layer_given(op: Op) -> bool:
    """layerStats must be a minimum and a maximum: floats of shape 2"""
    return _is_pairs(op.attributes.get("layerStats"), 1)


@constraint
def _layer_ordered(op: Op) -> bool:
    """the minimum in layerStats must not be above the maximum"""
    return _ordered(op.attributes["layerStats"])


@constraint
def _axis_together(op: Op) -> bool:
    """axisStats and axis must be given together"""
    return ("axisStats" in op.attributes) == ("axis" in op.attributes)


@constraint
def _axis_pairs(op: Op) -> bool:
    """axisStats must be a minimum and a maximum for each index of the axis: floats of shape Nx2"""
    return "axisStats" not in op.attributes or _is_pairs(op.attributes["axisStats"], 2)


@constraint
def _axis_ordered(op: Op) -> bool:
    """no minimum in axisStats must be above its maximum"""
    return "axisStats" not in op.attributes or _ordered(op.attributes["axisStats"])


@constraint
def _axis_size(op: Op) -> bool:
    """axis must be an axis of the tensor, and axisStats have one pair for each index of it"""
    return "axisStats" not in op.attributes or _fits_axis(op, len(op.attributes["axisStats"]))


@constraint
def _stats_key(op: Op) -> bool:
    """statsKey must be a string that is not empty"""
    return _is_key(op.attributes.get("statsKey"))


@constraint
def _coupled_key(op: Op) -> bool:
    """coupledKey must be a string that is not empty"""
    return _is_key(op.attributes.get("coupledKey"))


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _fits_axis(op: Op, count: int) -> bool:
    """Whether an attribute `axis` is an axis of the operand that is so long."""
    axis, shape = op.attributes.get("axis"), op.operand(0).type.shape
    if not isinstance(axis, int) or isinstance(axis, bool) or axis < 0:
        return False
    return shape is None or (axis < len(shape) and shape[axis] in (None, count))


class ConstFakeQuant(Operator, name="quant.const_fake_quant"):
    """result = inputs, quantized to `num_bits` over [min, max] and dequantized again, as TensorFlow's
    fake_quant_with_min_max_args does.

    narrow_range: without the lowest integer. is_signed: stored as signed integers.
    """

    __slots__ = ()
    inputs: Value = operand()
    outputs: Value = result_()
    min: float = attribute()
    max: float = attribute()
    num_bits: int = attribute()
    narrow_range: bool = attribute(default=False)
    is_signed: bool = attribute(default=False)
    constraints = (one_operand_and_result, _same_type, _real, _range_given, _range_ordered, _bits, _flags)


class ConstFakeQuantPerAxis(Operator, name="quant.const_fake_quant_per_axis"):
    """`quant.const_fake_quant` with a range for each index of an axis."""

    __slots__ = ()
    inputs: Value = operand()
    outputs: Value = result_()
    min: list[float] = attribute()
    max: list[float] = attribute()
    axis: int = attribute()
    num_bits: int = attribute()
    narrow_range: bool = attribute(default=False)
    is_signed: bool = attribute(default=False)
    constraints = (
        *(one_operand_and_result, _same_type, _real, _ranges_given, _ranges_ordered, _ranges_of_axis, _bits, _flags),
    )


class Stats(Operator, name="quant.stats"):
    """result = arg, whose minimum and maximum were seen to be `layerStats`, and along `axis` `axisStats`."""

    __slots__ = ()
    arg: Value = operand()
    result: Value = result_()
    layer_stats: np.ndarray = attribute(key="layerStats")
    axis_stats: np.ndarray | None = attribute(default=None, key="axisStats")
    axis: int | None = attribute(default=None)
    constraints = (
        *(one_operand_and_result, _same_type, _real, _layer_given, _layer_ordered),
        *(_axis_together, _axis_pairs, _axis_ordered, _axis_size),
    )


class StatsRef(Operator, name="quant.stats_ref"):
    """result = arg; statistics are to be gathered here, under a key that no other point has."""

    __slots__ = ()
    arg: Value = operand()
    result: Value = result_()
    stats_key: str = attribute(key="statsKey")
    traits = (Impure(),)
    constraints = (one_operand_and_result, _same_type, _real, _stats_key)


class CoupledRef(Operator, name="quant.coupled_ref"):
    """result = arg; all points of one key have one quantized type."""

    __slots__ = ()
    arg: Value = operand()
    result: Value = result_()
    coupled_key: str = attribute(key="coupledKey")
    traits = (Impure(),)
    constraints = (one_operand_and_result, _same_type, _real, _coupled_key)
