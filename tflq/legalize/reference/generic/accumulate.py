"""What the multiply-accumulate operators share: reading parameters, bounding the accumulator.

The accumulator is i32, or i64 where the kernel sums in 64 bits. `rescaled.py` requantizes it. Sources: as named in
`tflq.numerics.convolution`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from tflq.analysis.ranges import Range, value_range
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, TransposeConv
from tflq.dialects.tfl.matmul import FullyConnected
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, i16, i32, i64
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.light import dataclass
from tflq.numerics.convolution import exact_channel_bounds

__all__ = [
    "IGNORED_ZERO_POINT",
    "Bounds",
    "MultiplyAdd",
    "Sums",
    "Terms",
    "accumulator",
    "bias_of",
    "bounds_of",
    "scales_of",
    "unread_bias",
    "unused_zero_point",
    "viewed",
    "weight_zero_point",
]

_EXACT_BOUNDS = 1 << 22
"""Up to this many weights the bounds of the accumulator come from the weights themselves."""

_FAR = 2.0**61
"""A bias from which bounds may leave int64."""

IGNORED_ZERO_POINT = "the kernel ignores the weights' zero point, which is not 0"


MultiplyAdd: TypeAlias = Conv2D | DepthwiseConv2D | TransposeConv | FullyConnected
"""Operators that kernels compute as sums of products and a bias."""


class Bounds(NamedTuple):
    """Least and greatest sums, int64 [1 or C] each."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, acc: ScalarType) -> Bounds:
        """Of any number of a type."""
        return cls(np.asarray([acc.minimum], np.int64), np.asarray([acc.maximum], np.int64))

    def widened(self, by: Range) -> Bounds:
        """With any number of a range added: of all that the type holds, if that could leave int64."""
        if max(-by[0], by[1]) >= _FAR:
            return Bounds.of(i64)
        return Bounds(self.low + by[0], self.high + by[1])

    def within(self, acc: ScalarType) -> Bounds:
        """Bounds of what `acc` holds of the sums, which wrap."""
        low, high = self.range
        if acc.minimum <= low and high <= acc.maximum:
            return self
        fits = (self.low >= acc.minimum) & (self.high <= acc.maximum)
        return Bounds(np.where(fits, self.low, acc.minimum), np.where(fits, self.high, acc.maximum))

    @property
    def range(self) -> Range:
        """Of all channels."""
        return (int(self.low.min()), int(self.high.max())) if self.low.size else (0, 0)


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


def accumulator(op: MultiplyAdd, bias: Value | None) -> ScalarType:
    """The type a kernel sums in: i32 for 8-bit inputs; for int16 i64, or i32 where the options say so."""
    storage = op.output.type.storage
    if storage != i16:
        if bias is not None and bias.type.storage != i32:
            raise NotApplicable(f"bias '{bias.name}' is {bias.type.storage}, not i32")
        return i32
    acc = i32 if not isinstance(op, DepthwiseConv2D) and op.quantized_bias_type == "INT32" else i64
    if bias is not None and bias.type.storage != acc:
        answer = unread_bias(bias, acc)
        refused = isinstance(op, DepthwiseConv2D)  # by the interpreter, too
        raise NotApplicable(str(answer)) if refused else answer
    return acc


def unread_bias(bias: Value, acc: ScalarType) -> NotApplicable:
    """For a bias of another type than the kernel reads; where that is a wider one, the kernel reads past its end."""
    words = f"bias '{bias.name}' is {bias.type.storage}, but the kernel reads it as {acc}"
    past = acc.bits > bias.type.storage.bits and acc == i64
    return NotApplicable(words, unsettled=f"{words}, past its end" if past else "")


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


def bounds_of(x: UniformQuantizedType, weights: Value, axis: tuple[int, ...], weight_zp: int, bias: Value) -> Bounds:
    """Bounds of the accumulator over all stored inputs, `axis` summed over."""
    low, high = x.storage.minimum - x.zero_point, x.storage.maximum - x.zero_point
    shape = [d or 0 for d in weights.type.shape or ()]
    near = bias.type.storage.bits <= 32
    known = bias.is_constant and (near or np.abs(bias.array.astype(np.float64)).max(initial=0) < _FAR)
    offset = bias.array.astype(np.int64) if known else np.zeros(1, np.int64)
    if weights.is_constant and math.prod(shape) <= _EXACT_BOUNDS:
        least, most = exact_channel_bounds(weights.array, axis, weight_zp, low, high, offset)
        found = Bounds(least.reshape(-1), most.reshape(-1))
    else:
        terms = math.prod(shape[a] for a in axis)
        storage = weights.type.storage
        reach = terms * max(storage.maximum - weight_zp, weight_zp - storage.minimum) * max(-low, high)
        found = Bounds(offset.reshape(-1) - reach, offset.reshape(-1) + reach)
    return found if known else found.widened(value_range(bias))
