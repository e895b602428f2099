"""What the multiply-accumulate operators share: reading parameters, bounding the accumulator, requantizing it.

The accumulator (i32, or i64 where the kernel sums in 64 bits) is scaled by a real number per channel, moved by the
result's zero point, saturated and clamped to the fused activation. `fixed` scales as MultiplyByQuantizedMultiplier does
(tosa.rescale), `real` in float64 with one rounding half away from zero (ext.rescale_f64). Sources: as named in
`tflq.numerics.convolution`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, i16, i32, i64
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.numerics.activation import activation_range
from tflq.numerics.convolution import crude_bounds, exact_bounds
from tflq.numerics.fixed_point import quantize_multipliers, require_defined

__all__ = [
    "IGNORED_ZERO_POINT",
    "Sums",
    "Terms",
    "accumulator",
    "bias_of",
    "bounds_of",
    "fixed",
    "real",
    "scales_of",
    "unused_zero_point",
    "viewed",
    "weight_zero_point",
]

_EXACT_BOUNDS = 1 << 22
"""Up to this many weights the bounds of the accumulator come from the weights themselves."""

IGNORED_ZERO_POINT = "the weights' zero point is not 0: the kernel disregards it"


@dataclass(frozen=True, slots=True)
class Terms:
    """What an operator sums: products with `weights`, less zero points, and `bias`, both in the integer form."""

    weights: Value
    bias: Value
    input_zp: int
    weight_zp: int
    acc: ScalarType


def _itself(_: RuleBuilder, x: Value) -> Value:
    return x


@dataclass(frozen=True, slots=True)
class Sums:
    """An accumulator whose last dim holds the channels, `repeats` times in a row; `finish` makes the operator's result
    of it once it is scaled."""

    value: Value
    repeats: int = 1
    finish: Callable[[RuleBuilder, Value], Value] = _itself


def scales_of(weights: Value) -> np.ndarray | None:
    """The weights' scales, float32 [1 or n]; None if they are not quantized per layer or per axis."""
    element = weights.type.element
    if isinstance(element, UniformQuantizedType):
        return np.asarray([element.scale], np.float32)
    return element.scales if isinstance(element, UniformQuantizedPerAxisType) else None


def weight_zero_point(weights: Value) -> int:
    """The one zero point a kernel takes from per-layer weights; per-axis weights have none."""
    element = weights.type.element
    return element.zero_point if isinstance(element, UniformQuantizedType) else 0


def unused_zero_point(weights: Value) -> bool:
    """Whether the weights have a zero point other than 0."""
    element = weights.type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        return bool(element.zero_points.any())
    return isinstance(element, UniformQuantizedType) and element.zero_point != 0


def accumulator(op: Op, bias: Value | None) -> ScalarType | NotApplicable:
    """The type a kernel sums in: i32 for 8-bit inputs; for int16 i64, or i32 where the options say so."""
    storage = op.result.type.storage
    declared = op.attributes.get("quantized_bias_type", "FLOAT32")
    if storage != i16:
        if bias is not None and bias.type.storage != i32:
            return NotApplicable(f"bias '{bias.name}' is {bias.type.storage}, not i32")
        return i32
    acc = i32 if declared == "INT32" else i64
    if bias is not None and bias.type.storage != acc:
        return NotApplicable(f"bias '{bias.name}' is {bias.type.storage}, but the kernel reads it as {acc}")
    return acc


def bias_of(b: RuleBuilder, bias: Value | None, channels: int, acc: ScalarType) -> Value:
    """The bias in the accumulator's type; zeros if it is left out."""
    if bias is None:
        return b.constant(np.zeros(channels, acc.dtype), acc)
    plain = b.value(bias)
    if plain.is_constant and plain.type.storage != acc:
        return b.constant(plain.array, acc)
    return b.cast(plain, acc)


def viewed(b: RuleBuilder, value: Value, shape: tuple[int, ...]) -> Value:
    """The value in another shape; a constant stays a view of its buffer."""
    if value.is_constant:
        return Value(TensorType(shape, value.type.element), buffer=value.buffer)
    return b.reshape(value, shape)


def bounds_of(
    x: UniformQuantizedType, weights: Value, axis: tuple[int, ...], weight_zp: int, bias: Value
) -> tuple[int, int] | None:
    """Bounds of the accumulator over all stored inputs, `axis` summed over. None if the bias is not known."""
    if not bias.is_constant:
        return None
    low, high = x.storage.minimum - x.zero_point, x.storage.maximum - x.zero_point
    shape = [d or 0 for d in weights.type.shape or ()]
    if weights.is_constant and math.prod(shape) <= _EXACT_BOUNDS:
        return exact_bounds(weights.array, axis, weight_zp, low, high, bias.array)
    terms = math.prod(shape[a] for a in axis)
    storage = weights.type.storage
    reach = max(storage.maximum - weight_zp, weight_zp - storage.minimum)
    return crude_bounds(terms, reach, low, high, bias.array)


def fixed(
    b: RuleBuilder,
    acc: Value,
    scales: np.ndarray,
    to: UniformQuantizedType,
    activation: str,
    bounds: tuple[int, int] | None,
) -> Value | NotApplicable:
    """acc by the scales' multipliers, in the result's type; a left shift that may overflow wraps, as in the kernel."""
    try:
        clamp = _range(to, activation)
        mantissa, left = quantize_multipliers(scales)
        require_defined(left)
    except ValueError as error:
        return NotApplicable(str(error))
    reach = 1 << 31 if bounds is None else max(-bounds[0], bounds[1])
    if acc.type.storage == i64:
        if left.max() > 13 or reach >= 1 << 47 or reach * float(scales.max()) >= 2.0**31 - 2.0**16:
            return NotApplicable("the scaled accumulator can leave the 32 bits that the kernel has for it")
    elif left.max() > 29 or reach << max(int(left.max()), 0) >= 1 << 31:
        up = np.maximum(left, 0)
        if up.any():
            acc = b.mul(acc, b.constant(np.left_shift(1, up.astype(np.int32)), i32))
            left, bounds = left - up, None
    result = b.rescale(acc, (mantissa, left), to.storage, output_zp=to.zero_point)
    return b.clamp(_bounded(result, bounds), *clamp)


def real(
    b: RuleBuilder,
    acc: Value,
    scales: np.ndarray,
    to: UniformQuantizedType,
    activation: str,
    bounds: tuple[int, int] | None,
) -> Value | NotApplicable:
    """round_half_away(double(acc) * scale), in the result's type."""
    try:
        clamp = _range(to, activation)
    except ValueError as error:
        return NotApplicable(str(error))
    reach = (1 << 31 if acc.type.storage == i32 else 1 << 63) if bounds is None else max(-bounds[0], bounds[1])
    if reach * float(scales.max()) >= 2.0**31 - 2.0**16:
        return NotApplicable("the scaled accumulator can leave the 32 bits that the kernel has for it")
    told_apart = (max(abs(bound - to.zero_point) for bound in clamp) + 1) / scales
    rounded_alike = np.floor(reach * scales + 0.5) == np.floor(float((1 << 31) - 1) * scales + 0.5)
    if (np.where(rounded_alike, 0, np.minimum(reach, told_apart)) >= 2.0**31).any():
        return NotApplicable("the result tells apart accumulators of more than 32 bits")
    stored = acc.type.with_element(to.storage)
    result = b.emit("ext.rescale_f64", [acc], stored, scale=np.asarray(scales, np.float64), output_zp=to.zero_point)
    return b.clamp(_bounded(result, bounds), *clamp)


def _bounded(result: Value, bounds: tuple[int, int] | None) -> Value:
    """Notes the range of a rescale's input on the op."""
    if bounds is not None and result.producer is not None:
        result.producer.attributes["input_range"] = bounds
    return result


def _range(to: UniformQuantizedType, activation: str) -> tuple[int, int]:
    return activation_range(activation, to.storage.minimum, to.storage.maximum, to.scale, to.zero_point)
