"""What the rules of elementwise operators share: guards on quantization parameters, scaling as the kernels do it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import ElementType, ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, i32
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.numerics.fixed_point import Multiplier, left_shift
from tflq.numerics.requantize import real_table

__all__ = [
    "centred",
    "kernel_name",
    "per_layer",
    "requantized",
    "requantized_if_plain",
    "rounding_shift",
    "scaled",
    "symmetric",
    "zero_point_of",
]


def kernel_name(op: Op) -> str:
    """TFLite's name of an operator: ADD for tfl.add."""
    return op.name.removeprefix("tfl.").upper()


def per_layer(op: Op, values: Iterable[Value] | None = None) -> list[UniformQuantizedType]:
    """The quantized types of tensors (default: operands, then results), all per layer. NotApplicable if one is not."""
    elements: list[UniformQuantizedType] = []
    for value in op.tensors if values is None else values:
        element = value.type.element
        if isinstance(element, UniformQuantizedType):
            elements.append(element)
        elif isinstance(element, UniformQuantizedPerAxisType):
            raise NotApplicable(f"tensor '{value.name}' is quantized per axis; {kernel_name(op)} has no per-axis form")
        else:
            raise NotApplicable(
                f"tensor '{value.name}' ({value.type.storage}) has no per-layer quantization parameters"
            )
    return elements


def symmetric(op: Op, *elements: UniformQuantizedType) -> None:
    """NotApplicable unless zero points are 0, which the int16 kernels demand."""
    for element in elements:
        if element.zero_point != 0:
            raise NotApplicable(f"{kernel_name(op)} on int16 has no zero point, here {element.zero_point}")


def centred(b: RuleBuilder, operand: Value, element: UniformQuantizedType) -> Value:
    """x - zero_point of an operand as i32."""
    wide = b.cast(b.value(operand), i32)
    return b.sub(wide, b.constant(np.asarray(element.zero_point))) if element.zero_point else wide


def requantized(b: RuleBuilder, x: Value, source: UniformQuantizedType, target: UniformQuantizedType) -> Value:
    """The nearest stored values of what x (plain, 8 or 16 bits) stands for, under other parameters."""
    if (source.scale, source.zero_point) == (target.scale, target.zero_point):
        return x
    parameters = (source.scale, source.zero_point, target.scale, target.zero_point)
    return b.table(x, real_table(source.storage.dtype, *parameters))


def requantized_if_plain(b: RuleBuilder, x: Value, source: ElementType, target: ElementType) -> Value | None:
    """`requantized`, if both have one scale and one storage type of 8 or 16 bits; else None."""
    if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
        return None
    if source.storage != target.storage or source.storage.bits not in (8, 16):
        return None
    return requantized(b, x, source, target)


def scaled(
    b: RuleBuilder,
    x: Value,
    multiplier: Multiplier,
    to: ScalarType,
    bound: int,
    *,
    input_zp: int = 0,
    output_zp: int = 0,
    input_range: tuple[int, int] | None = None,
) -> Value:
    """saturate(MultiplyByQuantizedMultiplier(x - input_zp) + output_zp), for |x - input_zp| <= bound.

    The kernel shifts left, and adds the zero point, in int32, which wraps; RESCALE does not. Where it could, a
    multiplication by 2^shift and an addition do the same as the kernel. A shift of more than 31 is taken modulo 32. All
    of that is undefined in C++, and noted.
    """
    if multiplier.shift > 30 or bound << max(multiplier.shift, 0) >= 1 << 31:
        b.note_undefined(f"a left shift by {multiplier.shift} leaves int32")
    left, right = int(left_shift(multiplier.shift)), max(-multiplier.shift, 0)
    multiplier = Multiplier(multiplier.mantissa, left - right)
    shifts_exactly = bound << left < 1 << 31 or not (left or input_zp)
    if shifts_exactly and (bound << left >> right) + 1 + abs(output_zp) < 1 << 31:
        return b.rescale(x, multiplier, to, input_zp=input_zp, output_zp=output_zp, input_range=input_range)
    wide = b.cast(x, i32)
    if input_zp:
        wide = b.sub(wide, b.constant(np.asarray(input_zp)))
    if left:
        wide = b.mul(wide, b.constant(np.asarray(1 << left, np.int64).astype(np.int32)))
        multiplier = Multiplier(multiplier.mantissa, 0)
    wide = b.rescale(wide, multiplier, i32)
    if output_zp:
        wide = b.add(wide, b.constant(np.asarray(output_zp)))
    return b.cast(b.clamp(wide, to.minimum, to.maximum), to)


def rounding_shift(b: RuleBuilder, x: Value, exponent: int | Value) -> Value:
    """x / 2^exponent of an i32, rounded half away from zero: a negative half is pushed below by its sign. An exponent
    may be a tensor that broadcasts, of 0..31."""
    if isinstance(exponent, int):
        if not exponent:
            return x
        exponent, rounds = b.constant(np.asarray(exponent)), None
    else:
        rounds = b.minimum(exponent, b.constant(np.asarray(1)))
    sign = b.arithmetic_right_shift(x, b.constant(np.asarray(31)))
    if rounds is not None:
        sign = b.mul(sign, rounds)
    return b.arithmetic_right_shift(b.add(x, sign), exponent, round=True)


def zero_point_of(value: Value) -> int | None:
    """The one zero point of a tensor that is quantized per layer; None of others."""
    element = value.type.element
    return element.zero_point if isinstance(element, UniformQuantizedType) else None
