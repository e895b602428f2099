"""The numerics that TFLite has and TOSA lacks. Each class says exactly what it computes."""

from __future__ import annotations

import numpy as np

from tflq.dialects.declare import ANY, FLOAT, INT, INTEGER, OneOf, Operator, array, attribute, ints, operand, result
from tflq.dialects.traits.operands import Role, Tabulable, WithinRange
from tflq.dialects.traits.types import Broadcasts, SameShape
from tflq.ir.core import Value
from tflq.ir.types import f64, i8, i16, i32, i64, ui8

# Between element types.


class Truncate(Operator, name="ext.truncate"):
    """The integer part; what the type cannot hold becomes its nearest end, NaN 0 or an end."""

    input: Value = operand(FLOAT)
    output: Value = result(INTEGER)
    traits = (SameShape(input, output),)


# Rescalings that TFLite has and TOSA lacks.


class RescaleF64(Operator, name="ext.rescale_f64"):
    """output = saturate(round(input * scale) + output_zp), the product in float64, round to nearest, half away from
    zero; several scales are one per index of the last dim; input_range bounds the values that input takes."""

    input: Value = operand(OneOf(i32, i64))
    output: Value = result(OneOf(i8, ui8, i16))
    scale: np.ndarray = attribute(array(f64))
    output_zp: int = attribute(INT)
    input_range: tuple[int, ...] | None = attribute(ints(2), default=None)
    traits = (Tabulable(input), Role("rescaled"), SameShape(input, output))


class RescaleI64(Operator, name="ext.rescale_i64"):
    """output = the low 32 bits of (input * multiplier + 2^((shift - 1) mod 64)) >> shift, product and sum in 64 bits,
    which wrap; shift is 0 to 63; several multipliers and shifts are one per index of the last dim; input_range
    bounds the values that input takes."""

    input: Value = operand(i64)
    output: Value = result(i32)
    multiplier: np.ndarray = attribute(array(i32))
    shift: np.ndarray = attribute(array(i8))
    input_range: tuple[int, ...] | None = attribute(ints(2), default=None)
    traits = (SameShape(input, output),)


class RescaleMean(Operator, name="ext.rescale_mean"):
    """output = saturate(sums * 2^max(-e, 0) * M / 2^31, rounded half up, / 2^max(e, 0), rounded half away from zero, +
    output_zp), where M = floor(multiplier * 2^f / n), e = f - shift, n the number of elements of values along axes,
    n > 0, f = min(floor(log2(n)), 31 + shift)."""

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
