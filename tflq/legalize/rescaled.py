"""Parts shared by the multiply-accumulate operators: parameters, bounds of the accumulator, and its way to the
result.

The accumulator (i32, or i64 where the kernel sums in 64 bits) is scaled by a factor per channel, moved by the
result's zero point, saturated and clamped to the fused activation. The kernel set says which factor (`RuleBuilder.
kernel_set`): `QuantizedMultiplier` scales as MultiplyByQuantizedMultiplier does (tosa.rescale), `Float64` in float64
with one rounding half away from zero (ext.rescale_f64).

Where that can leave the kernel's types, the result is what the kernel gives, and a warning says so
(`tflq.numerics.fixed_point`):

    i32, fixed    the left shift wraps (tosa.logical_left_shift); a result that the zero point takes out of int32 is
                  the other end
    i64, fixed    the low 32 bits of the scaled sum (ext.rescale_i64)
    real          beyond int32 the kernel's quotient is the least number, and the result that end, or the other one

The bounds of each channel's sums decide whether it can. Sources: as named in `tflq.numerics.convolution`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.analysis.known import Range, value_range, weight_sums
from tflq.base.errors import Refused
from tflq.dialects.builder import Operand, RescaleMode, constant_in_shape, squeezed
from tflq.dialects.quant import RescaleF32, RescaleF64, RescaleI64
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv
from tflq.dialects.tfl.movement import StridedSlice
from tflq.dialects.tfl.shape import Range as TflRange
from tflq.dialects.tfl.shape import Shape
from tflq.ir.ops import Value
from tflq.ir.types import (
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    ui8,
)
from tflq.legalize.rule import NotApplicable, Rewritten, RuleBuilder, no_parameters
from tflq.numerics.convolution import exact_channel_bounds
from tflq.numerics.fixed_point import (
    leaves_float,
    leaves_int32,
    leaves_wide,
    multiply,
    quotient,
    wide_multipliers,
)
from tflq.numerics.requantize.scaling import (
    FAR,
    Bounds,
    Factor,
    FixedPoint,
    Float32,
    Float64,
    QuantizedMultiplier,
    Shortened,
)

_EXACT_BOUNDS = 1 << 22
"""Up to this many weights the bounds of the accumulator come from the weights themselves."""
_NEAR = 1 << 29
"""Sums nearer to 0 than this, scaled to less than half, are within all that a RESCALE of TOSA takes."""
_MOST_LEFT = 29
"""The most bits that RESCALE shifts an i32 to the left by; its own shift is 2 at least."""
_MOST_LEFT_WIDE = 13
_WIDEST = 1 << 47
_FAR_APART = 2.0**20
"""The ratio of scales up to which one product serves all channels, without a check."""
_TOO_WIDE = "the result tells apart sums of more than 52 bits"
_INEXACT_SCALING = "sums of more than 52 bits are not scaled as in the kernel: results can be up to {} counts off"
_WRAPS = "the scaled sum can exceed the 32 bits that the kernel has for it, where {}: results are up to {} counts off"
IGNORED_ZERO_POINT = "the kernel ignores the weights' zero point, which is not 0"

MultiplyAdd: TypeAlias = Conv2D | DepthwiseConv2D | TransposeConv | FullyConnected
"""Operators that kernels compute as sums of products and a bias."""


class Terms:
    """The terms of an operator's sums: products with `weights`, less zero points, and `bias`, both in the integer
    form."""

    __slots__ = ("acc", "bias", "input_zp", "weight_zp", "weights")

    def __init__(self, weights: Value, bias: Value, input_zp: int, weight_zp: int, acc: ScalarType) -> None:
        self.weights: Final = weights
        self.bias: Final = bias
        self.input_zp: Final = input_zp
        self.weight_zp: Final = weight_zp
        self.acc: Final = acc


class Sums:
    """An accumulator whose last dim holds the channels, `repeats` times in a row; `finish` turns it into the operator's
    result once it is scaled."""

    __slots__ = ("finish", "repeats", "value")

    def __init__(
        self, value: Value, repeats: int = 1, finish: Callable[[RuleBuilder, Value], Value] = lambda _, x: x
    ) -> None:
        self.value: Final = value
        self.repeats: Final = repeats
        self.finish: Final = finish


class Products:
    """The sums of an operator's products: the weights' dim of the output channels, the dims that are summed over,
    and the function that writes the sums."""

    __slots__ = ("channels", "summed", "sums")

    def __init__(self, channels: int, summed: tuple[int, ...], sums: Callable[[Any, RuleBuilder, Terms], Sums]) -> None:
        self.channels: Final = channels
        self.summed: Final = summed
        self.sums: Final = sums


def scales_of(weights: Value) -> np.ndarray | None:
    """The weights' scales, float32 [1 or n]; None if they are not quantized per layer or per axis."""
    element = weights.type.element
    if isinstance(element, UniformQuantizedType):
        return np.asarray([element.scale], np.float32)
    return element.scales if isinstance(element, UniformQuantizedPerAxisType) else None


def weight_zero_point(weights: Value) -> int:
    """The zero point that a kernel takes from weights: 0 from per-axis ones."""
    element = weights.type.element
    return element.zero_point if isinstance(element, UniformQuantizedType) else 0


def has_zero_point(weights: Value) -> bool:
    """Whether the weights have a zero point other than 0."""
    element = weights.type.element
    return isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)) and element.has_zero_point


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
    """The exception to raise for a bias that the kernel reads as another type: as a wider one, past its end."""
    words = f"bias '{bias.name}' is {bias.type.storage}, but the kernel reads it as {acc}"
    past = acc.bits > bias.type.storage.bits and acc == i64
    return NotApplicable(words, unsettled=f"{words}, past its end" if past else "")


def bias_of(b: RuleBuilder, bias: Value | None, channels: int, acc: ScalarType) -> Value:
    """The bias in the accumulator's type; zeros if it is left out."""
    if bias is None:
        return b.constant(np.zeros(channels, acc.dtype), acc)
    plain = b.value(bias)
    if plain.type.is_static and plain.type.shape != (channels,):
        plain = reshape_constant(b, plain, (channels,))
    if plain.is_constant and plain.type.storage != acc:
        return b.constant(plain.array, acc)
    return b.cast(plain, acc)


def reshape_constant(b: RuleBuilder, value: Value, shape: tuple[int, ...]) -> Value:
    """The value in another shape; a constant stays a view of its buffer. Misfit if it has not as many elements."""
    if value.is_constant:
        return constant_in_shape(value, shape)
    return b.reshape(value, shape)


def crude_bound_limit(b: RuleBuilder, factor: Factor, to: UniformQuantizedType) -> int:
    """The distance from 0 that crude bounds of a sum may have, if its reader needs no closer ones; 0 if it does."""
    if b.close or to.storage != i8 or not isinstance(factor, QuantizedMultiplier):
        return 0
    return _NEAR if factor.scale.max(initial=0) < 0.5 else 0


def bounds_of(
    x: UniformQuantizedType, weights: Value, axis: tuple[int, ...], weight_zp: int, bias: Value, crude: int = 0
) -> Bounds:
    """Bounds of the accumulator over all stored inputs; `axis` are the weights' dims that are summed over. They follow
    from the weights themselves, or only from their type where these are less than `crude` from 0."""
    low, high = x.ends
    shape = weights.type.sizes
    near = bias.type.storage.bits <= 32
    known = bias.is_constant and (near or np.abs(bias.array.astype(np.float64)).max(initial=0) < FAR)
    offset = bias.array.astype(np.int64) if known else np.zeros(1, np.int64)
    storage = weights.type.storage
    widest = max(storage.maximum - weight_zp, weight_zp - storage.minimum) * max(-low, high)
    reach = math.prod(shape[a] for a in axis) * widest
    if not weights.is_constant or math.prod(shape) > _EXACT_BOUNDS or _reaches_less(reach, offset, crude):
        bounds = Bounds(offset.reshape(-1) - reach, offset.reshape(-1) + reach)
    else:
        sums = weight_sums(weights, axis)
        least, most = exact_channel_bounds(weights.array, axis, weight_zp, low, high, offset, sums)
        bounds = Bounds(least.reshape(-1), most.reshape(-1))
    return bounds if known else bounds.widened(*value_range(bias))


def _reaches_less(reach: int, offset: np.ndarray, than: int) -> bool:
    """Whether sums of that reach, with an offset, are less than so far from 0."""
    return reach < than and reach + int(np.abs(offset).max(initial=0)) < than


class Rescaled:
    """A result, and a warning."""

    __slots__ = ("value", "warning")

    def __init__(self, value: Value, warning: str = "") -> None:
        self.value: Final = value
        self.warning: Final = warning

    def rewritten(self, value: Value | None = None, *warnings: str) -> Rewritten:
        """The answer of a rule: `value`, by default the result itself, with more warnings."""
        words = "; ".join(w for w in (self.warning, *warnings) if w)
        return Rewritten([value or self.value], warning=words, exception="range" if self.warning else "disregarded")


def requantize(
    b: RuleBuilder,
    acc: Value,
    factor: Factor,
    to: UniformQuantizedType,
    activation: str,
    bounds: Bounds,
    at_least: Bounds | None = None,
) -> Rescaled:
    """acc by a factor, in the result's type. `at_least`: bounds of sums that do occur, where `bounds` may be much too
    wide; then only these count for the warning."""
    if isinstance(factor, Float64):
        return requantize_float64(b, acc, factor.scale, to, activation, bounds)
    if isinstance(factor, QuantizedMultiplier):
        return requantize_fixed_point(b, acc, factor, to, activation, bounds, at_least)
    if isinstance(factor, (Float32, FixedPoint, Shortened)):
        clamp = _range(b, to, activation)
        _, known = bounds.within(acc.type.storage.minimum, acc.type.storage.maximum)
        return Rescaled(b.clamp(multiplied(b, acc, factor, to, known), *clamp))
    raise Refused(f"sums are not scaled by {type(factor).__name__}")


def multiplied(b: RuleBuilder, x: Value, factor: Factor, to: UniformQuantizedType, bounds: Range | None) -> Value:
    """x by a factor that no shift of int32 and no conversion leaves undefined, saturated to the result's type."""
    known = {"input_range": bounds} if bounds else {}
    if isinstance(factor, Float32):
        if not factor.rises:
            raise NotApplicable("a product of scales is 0, infinite or not a number")
        more: dict[str, Any] = {"before": factor.before} if factor.before else {}
        if factor.after is not None:
            more["after"] = np.asarray([factor.after], np.float32)
        return b.emit(RescaleF32, [x], to.storage, scale=factor.scale, output_zp=to.zero_point, **more, **known)
    if isinstance(factor, Shortened):
        x = _shortened(b, x, factor.right)
        factor = FixedPoint(np.asarray([factor.multiplier]), np.asarray([15]), double_round=False)
        bounds = i16.minimum, i16.maximum
    assert isinstance(factor, FixedPoint)
    multiplier, shift, twice = factor.numbers
    if shift.min() < 2 or shift.max() > 62:
        raise NotApplicable(f"RESCALE has no shift of {int(shift.min())} to {int(shift.max())}")
    mode: RescaleMode = "DOUBLE_ROUND" if twice else "SINGLE_ROUND"
    scaled = multiplier.astype(np.int32), 31 - shift
    return b.rescale(x, scaled, to.storage, output_zp=to.zero_point, rounding_mode=mode, input_range=bounds)


def _shortened(b: RuleBuilder, x: Value, right: int) -> Value:
    """An i32 shifted right, half up, or left, and saturated to the integers of int16."""
    if not -15 <= right < 32:
        raise NotApplicable(f"a sum is shifted by {right} bits")
    if right > 0:
        x = b.arithmetic_right_shift(x, right, round=True)
    x = b.clamp(x, i16.minimum, i16.maximum)
    return x if right >= 0 else b.clamp(b.logical_left_shift(x, -right), i16.minimum, i16.maximum)


def requantize_fixed_point(
    b: RuleBuilder,
    acc: Value,
    factor: QuantizedMultiplier,
    to: UniformQuantizedType,
    activation: str,
    bounds: Bounds,
    at_least: Bounds | None = None,
) -> Rescaled:
    """acc by the factor's multipliers, in the result's type."""
    clamp = _range(b, to, activation)
    mantissa, left = factor.multipliers
    if clamp[0] >= clamp[1]:
        mantissa, left = np.zeros(1, np.int32), np.zeros(1, np.int32)  # one number, whatever the sum
    form, leaves = (_fixed_i64, leaves_wide) if acc.type.storage == i64 else (_fixed_i32, leaves_int32)
    bounds, known = bounds.within(acc.type.storage.minimum, acc.type.storage.maximum)
    result = form(b, acc, mantissa, left, to, clamp, bounds, known)
    if at_least is None or leaves(*at_least, mantissa, left).any():
        return result
    return Rescaled(result.value)


def _fixed_i32(
    b: RuleBuilder,
    acc: Value,
    mantissa: np.ndarray,
    left: np.ndarray,
    to: UniformQuantizedType,
    clamp: tuple[int, int],
    bounds: Bounds,
    known: Range,
) -> Rescaled:
    low, high = known
    if left.max() <= 0 and max(-low, high) + abs(to.zero_point) <= i32.maximum:  # scaled by less than 1
        result = b.rescale(acc, (mantissa, left), to.storage, output_zp=to.zero_point, input_range=known)
        return Rescaled(b.clamp(result, *clamp))
    overflows = leaves_int32(*bounds, mantissa, left)
    seen: Range | None = known
    if overflows.any() or left.max() > _MOST_LEFT:
        up = np.maximum(left, 0) & 31
        acc = b.logical_left_shift(acc, squeezed(up))
        ends = Bounds(
            np.where(overflows, i32.minimum, bounds.low << up), np.where(overflows, i32.maximum, bounds.high << up)
        )
        left, seen = np.minimum(left, 0), None
    else:
        ends = bounds
    over = _leaves(ends, mantissa, left, to.zero_point)
    if over.any():
        result = _moved(b, b.rescale(acc, (mantissa, left), i32), to, clamp)
    else:
        result = b.rescale(acc, (mantissa, left), to.storage, output_zp=to.zero_point, input_range=seen)
    warning = _WRAPS.format("its shift wraps, as on x86-64", clamp[1] - clamp[0]) if (overflows | over).any() else ""
    return Rescaled(b.clamp(result, *clamp), warning)


def _leaves(ends: Bounds, mantissa: np.ndarray, left: np.ndarray, zero_point: int) -> np.ndarray:
    """Whether sums between these ends leave int32 once they are scaled and the zero point is added, per channel."""
    reach = max(-int(ends.low.min(initial=0)), int(ends.high.max(initial=0)))
    if left.max() <= 0 and reach + abs(zero_point) <= i32.maximum:
        return np.zeros(1, bool)  # scaled by less than 1
    low, high = (multiply(end.astype(np.int32), mantissa, left).astype(np.int64) for end in ends)
    return (low + zero_point < i32.minimum) | (high + zero_point > i32.maximum)


def _moved(b: RuleBuilder, scaled: Value, to: UniformQuantizedType, clamp: tuple[int, int]) -> Value:
    """scaled + zero point of an i32, clamped; where that leaves int32, and wraps, it is the other end."""
    zero = to.zero_point
    if zero > 0:
        wraps, end = b.greater(scaled, i32.maximum - zero), clamp[0]
    else:
        wraps, end = b.greater(i32.minimum - zero, scaled), clamp[1]
    inside = b.clamp(scaled, clamp[0] - zero, clamp[1] - zero)
    return b.cast(b.select(wraps, end, b.add(inside, zero)), to.storage)


def _fixed_i64(
    b: RuleBuilder,
    acc: Value,
    mantissa: np.ndarray,
    left: np.ndarray,
    to: UniformQuantizedType,
    clamp: tuple[int, int],
    bounds: Bounds,
    known: Range,
) -> Rescaled:
    """For int16, which has no zero point."""
    overflows = leaves_wide(*bounds, mantissa, left)
    low, high = known
    if not overflows.any() and left.max() <= _MOST_LEFT_WIDE and low >= -_WIDEST and high < _WIDEST:
        result = b.rescale(acc, (mantissa, left), to.storage, input_range=known)
        return Rescaled(b.clamp(result, *clamp))
    multiplier, shift = wide_multipliers(mantissa, left)
    numbers = {"multiplier": multiplier.astype(np.int32), "shift": shift.astype(np.int8)}
    word = b.emit(RescaleI64, [acc], i32, **numbers, input_range=(low, high))
    warning = _WRAPS.format("it keeps the low ones", clamp[1] - clamp[0]) if overflows.any() else ""
    return Rescaled(b.cast(b.clamp(word, *clamp), to.storage), warning)


def requantize_float64(
    b: RuleBuilder,
    acc: Value,
    scales: np.ndarray,
    to: UniformQuantizedType,
    activation: str,
    bounds: Bounds,
) -> Rescaled:
    """round_half_away(double(acc) * scale) in int32, in the result's type."""
    bounds, known = bounds.within(acc.type.storage.minimum, acc.type.storage.maximum)
    result = saturated(b, acc, scales, to, activation, known)
    low, high = _range(b, to, activation)
    below, edge = to.zero_point < 0, leaves_float(scales, to.zero_point)
    overflows = (bounds.low <= -edge) if below else (bounds.high >= edge)
    if low >= high or not overflows.any():
        return Rescaled(result)
    end = b.constant(high if below else low, to.storage)
    warning = _WRAPS.format("it gives the least number, as on x86-64", high - low)
    return Rescaled(b.select(_beyond(b, acc, edge, below), end, result), warning)


def saturated(
    b: RuleBuilder,
    acc: Value,
    scales: np.ndarray,
    to: UniformQuantizedType,
    activation: str,
    bounds: Range | None,
) -> Value:
    """round_half_away(double(acc) * scale), in the result's type, for acc within `bounds`, if they are known."""
    if to.storage not in (i8, ui8, i16):
        raise NotApplicable(f"no form scales a sum to {to.storage}")
    clamp = _range(b, to, activation)
    reach = max(-bounds[0], bounds[1], 1) if bounds else -acc.type.storage.minimum
    scales = _alike(scales, to.storage, reach)
    limit = (max(abs(bound - to.zero_point) for bound in clamp) + 1) / scales
    rounded_alike = np.floor(reach * scales + 0.5) == np.floor(float(i32.maximum) * scales + 0.5)
    wide = (np.where(rounded_alike, 0, np.minimum(reach, limit)) >= 2.0**31).any()
    if (wide or scales.max() > _FAR_APART * scales.min()) and not _has_product(scales, to, bounds, acc):
        raise NotApplicable(_TOO_WIDE, _INEXACT_SCALING.format(clamp[1] - clamp[0]))
    known = {"input_range": bounds} if bounds else {}
    return b.clamp(b.emit(RescaleF64, [acc], to.storage, scale=scales, output_zp=to.zero_point, **known), *clamp)


def scaled_sum(
    b: RuleBuilder, total: Value, source: UniformQuantizedType, to: UniformQuantizedType, bounds: Range | None
) -> Value:
    """A sum of stored values less their zero points, in the result's type."""
    return saturated(b, total, np.asarray([quotient(source.scale, to.scale)]), to, "NONE", bounds)


def _has_product(scales: np.ndarray, to: UniformQuantizedType, bounds: Range | None, acc: Value) -> bool:
    """Whether 64 bits hold an exact product by these scales."""
    from tflq.numerics.requantize.products import WideProduct

    ends = bounds or (acc.type.storage.minimum, acc.type.storage.maximum)
    return WideProduct.fit(scales, *to.ends, *ends) is not None


def _alike(scales: np.ndarray, to: ScalarType, reach: int) -> np.ndarray:
    """Positive and finite scales with the same results for sums within [-reach, reach], saturated to `to`."""
    most = 2.0**to.bits
    return np.clip(np.nan_to_num(np.asarray(scales, np.float64), nan=most, posinf=most), 0.25 / reach, most)


def _beyond(b: RuleBuilder, acc: Value, edge: np.ndarray, below: bool) -> Value:
    """Whether sums reach an edge per channel, on the side of negative ones if `below`."""
    storage = acc.type.storage
    limit = b.constant(squeezed(np.minimum(edge - 1, storage.maximum) * (-1 if below else 1)), storage)
    return b.greater(limit, acc) if below else b.greater(acc, limit)


def _range(b: RuleBuilder, to: UniformQuantizedType, activation: str) -> tuple[int, int]:
    with no_parameters:
        return b.kernel_set.activation(activation, to)


# Numbers that a model computes when the interpreter allocates: sizes of tensors, and lines of such a length.
#
# SHAPE, RANGE and STRIDED_SLICE run then, if their operands are known. So tensors whose size they compute stay static.


_NUMBER = TensorType((), i32)
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def shape_of(b: RuleBuilder, x: Value, rank: int) -> Value:
    """The shape of a tensor: i32 [rank]."""
    return b.emit(Shape, [x], TensorType((rank,), i32), out_type="INT32")


def line(b: RuleBuilder, limit: Value, step: int = 1) -> Value:
    """0, step, 2 step ... below a limit, which is an i32 scalar."""
    length = len(range(0, int(limit.array), step)) if limit.is_constant else None
    return b.emit(TflRange, b.alike(0, limit, step), TensorType((length,), i32))


def element(b: RuleBuilder, vector: Value, index: int) -> Value:
    """An element of an i32 vector, as a scalar."""
    if vector.is_constant:
        return b.constant(int(vector.array[index]))
    return sliced(b, vector, [index], [index + 1], _NUMBER, shrink_axis_mask=1)


def sliced(
    b: RuleBuilder, vector: Value, begin: Operand, end: Operand, type: TensorType, step: int = 1, **masks: int
) -> Value:
    """STRIDED_SLICE of a vector, every `step`-th element, with some masks."""
    options = {**dict.fromkeys(_MASKS, 0), **masks, "offset": False}
    return b.emit(StridedSlice, [vector, *b.alike(begin, end, [step])], type, **options)
