"""Ops of the integer form beside TOSA: the casts of the `quant` dialect between real values, quantized values and
their storage. And `ext`, the numerics that TFLite has and TOSA lacks.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from tflq.dialects.declare import (
    ANY,
    FLOAT,
    INT,
    INTEGER,
    QUANTIZED,
    OneOf,
    Operator,
    array,
    attribute,
    ints,
    operand,
    result,
    words,
)
from tflq.dialects.declare import result as result_
from tflq.dialects.traits import Broadcasts, ComputesInFloat, Role, SameShape, Tabulable, WithinRange
from tflq.ir.facts import walk
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.types import f32, f64, i8, i16, i32, i64, ui8
from tflq.ir.verifier import (
    axis_integrity,
    both_ranked_or_unranked,
    both_scalars_or_tensors,
    expressed_matches,
    fail,
    integer_or_quantized,
    one_operand_and_result,
    one_side_quantized,
    operand_float,
    operand_quantized,
    result_float,
    result_quantized,
    same_shape,
    signless_integers,
    storage_width,
)
from tflq.numerics.fixed_point import ROUNDINGS, Rounding
from tflq.numerics.requantize.scaling import Float32, Float64

_ALIKE: Final = (both_scalars_or_tensors, both_ranked_or_unranked, same_shape)


class Qcast(Operator, name="quant.qcast"):
    """result = clamp(round(input / scale) + zero_point, storage_min, storage_max)

    `rounding` is that of the quotient, `sum_rounding` of the sum with the zero point; by default half to even, of the
    quotient.
    """

    input: Value = operand(FLOAT)
    result: Value = result_(QUANTIZED)
    rounding: Rounding | None = attribute(words(*ROUNDINGS), default=None)
    sum_rounding: Rounding | None = attribute(words(*ROUNDINGS), default=None)
    traits = (Role("quantized"), ComputesInFloat(), SameShape(input, result))
    constraints = (one_operand_and_result, operand_float, result_quantized, expressed_matches, *_ALIKE, axis_integrity)


class Dcast(Operator, name="quant.dcast"):
    """result = (input - zero_point) * scale"""

    input: Value = operand(QUANTIZED)
    result: Value = result_(FLOAT)
    traits = (Role("dequantized"), ComputesInFloat(), SameShape(input, result))
    constraints = (one_operand_and_result, operand_quantized, result_float, expressed_matches, *_ALIKE, axis_integrity)


class Scast(Operator, name="quant.scast"):
    """result = input, the same stored integers under another type"""

    input: Value = operand(INTEGER, QUANTIZED)
    result: Value = result_(QUANTIZED, INTEGER)
    traits = (Role("stored"), SameShape(input, result))
    constraints = (
        one_operand_and_result,
        integer_or_quantized,
        one_side_quantized,
        *_ALIKE,
        storage_width,
        axis_integrity,
    )


def verify_casts(module: Module) -> None:
    """VerificationError if a quant.scast is not between a quantized and a signless type, as the `quant` dialect has it.
    A conversion's own casts may be to unsigned types, which are what files hold."""
    for index, function in enumerate(module.functions):
        for op in function.ops:
            for inner in walk([op]) if op.regions else (op,):
                if isinstance(inner, Scast) and (reason := signless_integers(inner)) is not None:
                    fail(module, index, op, reason)


# The `ext` dialect. Each class says exactly what it computes.


class Truncate(Operator, name="ext.truncate"):
    """The integer part; what the type cannot hold becomes its nearest end, NaN 0 or an end."""

    input: Value = operand(FLOAT)
    output: Value = result(INTEGER)
    traits = (SameShape(input, output),)


# Rescalings that TFLite has and TOSA lacks.


class RescaleF64(Operator, name="ext.rescale_f64"):
    """output = saturate(round(input * scale) + output_zp). The product is in float64, rounded to nearest, half away
    from zero. Several scales are one per index of the last dim; input_range bounds the values that input takes."""

    input: Value = operand(OneOf(i32, i64))
    output: Value = result(OneOf(i8, ui8, i16))
    scale: np.ndarray = attribute(array(f64))
    output_zp: int = attribute(INT)
    input_range: tuple[int, ...] | None = attribute(ints(2), default=None)
    traits = (Tabulable(input), Role("rescaled"), SameShape(input, output))

    @property
    def factor(self) -> Float64:
        return Float64(np.atleast_1d(np.asarray(self.scale, np.float64)))


class RescaleF32(Operator, name="ext.rescale_f32"):
    """output = saturate(rint((input + before) * scale) + output_zp), or saturate(rint((input + before) * scale +
    after)), if `after` is there. The sum with `before` is converted to float32, and each step after it is rounded to
    float32; rint rounds halves to even. Several scales are one per index of the last dim; input_range bounds the
    values that input takes."""

    input: Value = operand(i32)
    output: Value = result(OneOf(i8, ui8, i16))
    scale: np.ndarray = attribute(array(f32))
    output_zp: int = attribute(INT)
    before: int = attribute(INT, default=0)
    after: np.ndarray | None = attribute(array(f32), default=None)
    input_range: tuple[int, ...] | None = attribute(ints(2), default=None)
    traits = (Tabulable(input), Role("rescaled"), SameShape(input, output))

    @property
    def factor(self) -> Float32:
        after = None if self.after is None else np.float32(self.after[0])
        return Float32(self.scale, self.before, after, 0 if after is None else self.output_zp)


RescaleFloat: TypeAlias = RescaleF64 | RescaleF32
"""Rescalings whose factor is a float."""


class RescaleI64(Operator, name="ext.rescale_i64"):
    """output = the low 32 bits of (input * multiplier + 2^((shift - 1) mod 64)) >> shift. Product and sum are in 64
    bits, which wrap; shift is 0 to 63. Several multipliers and shifts are one per index of the last dim;
    input_range bounds the values that input takes."""

    input: Value = operand(i64)
    output: Value = result(i32)
    multiplier: np.ndarray = attribute(array(i32))
    shift: np.ndarray = attribute(array(i8))
    input_range: tuple[int, ...] | None = attribute(ints(2), default=None)
    traits = (SameShape(input, output),)


class RescaleMean(Operator, name="ext.rescale_mean"):
    """output = saturate(y + output_zp), where y = x / 2^max(e, 0), rounded half away from zero. x = sums *
    2^max(-e, 0) * M / 2^31, rounded half up. M = floor(multiplier * 2^f / n), e = f - shift, f =
    min(floor(log2(n)), 31 + shift). n > 0 is the number of elements of values along axes."""

    sums: Value = operand(i32)
    values: Value = operand(ANY)
    output: Value = result(OneOf(i8, ui8, i16))
    axes: tuple[int, ...] = attribute(ints())
    multiplier: int = attribute(INT)
    shift: int = attribute(INT)
    output_zp: int = attribute(INT)
    traits = (SameShape(sums, output),)


class RoundingDivideByPot(Operator, name="ext.rounding_divide_by_pot"):
    """output = input / 2^exponent, rounded to nearest, half away from zero; the quotient fits int16."""

    input: Value = operand(i64)
    output: Value = result(i16)
    exponent: int = attribute(INT)
    traits = (Tabulable(input), SameShape(input, output))


# Tables of more entries than TOSA's.


class Table16Bit(Operator, name="ext.table_16bit"):
    """output = table[input + 32768], of 65536 entries."""

    T = OneOf(i8, ui8, i16, i32)
    input: Value = operand(i16)
    table: Value = operand(T, constant=True)
    output: Value = result(T)
    traits = (Role("looked_up"), SameShape(input, output))


class Table2D(Operator, name="ext.table_2d"):
    """output = table[256 * (input1 - least of its type) + (input2 - least of its type)], of 65536 entries; the
    operands broadcast."""

    T = OneOf(i8, ui8)
    input1: Value = operand(OneOf(i8, ui8))
    input2: Value = operand(OneOf(i8, ui8))
    table: Value = operand(T, constant=True)
    output: Value = result(T)
    traits = (Tabulable(input1, input2), WithinRange(table), Role("looked_up"), Broadcasts(input1, input2, output))
