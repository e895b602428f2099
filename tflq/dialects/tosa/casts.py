"""Between element types and scales."""

from __future__ import annotations

import numpy as np

from tflq.dialects.declare import (
    BOOL,
    FLOAT,
    INT,
    INTEGER,
    OneOf,
    Operator,
    array,
    attribute,
    ints,
    operand,
    result,
    words,
)
from tflq.dialects.traits.elements import Role, Tabulable
from tflq.dialects.traits.operands import ConstantOperands
from tflq.dialects.traits.types import Elementwise, SameShape
from tflq.ir.core import Value
from tflq.ir.types import i1, i8, i16, i32, i64, ui8, ui16
from tflq.numerics.rounding import ROUNDINGS, Rounding

__all__ = ["Cast", "Rescale"]


class Cast(Operator, name="tosa.cast"):
    """The numbers in another type; floats are rounded half to even and saturate, integers wrap."""

    __slots__ = ()
    input: Value = operand(OneOf(INTEGER, FLOAT, i1))
    output: Value = result(OneOf(INTEGER, FLOAT, i1))
    traits = (Tabulable(input), Elementwise(input, output))


class Rescale(Operator, name="tosa.rescale"):
    """Integers of one scale and zero point as those of another. input_range bounds the values that input - input_zp
    takes; rounding, where it is given, is that of (input - input_zp) * multiplier / 2^shift, once, whatever
    rounding_mode says: half_away, half_up and half_even to nearest, toward_zero the integer part."""

    __slots__ = ()
    input: Value = operand(OneOf(i8, ui8, i16, ui16, i32, i64))
    output: Value = result(OneOf(i8, ui8, i16, ui16, i32))
    multiplier: np.ndarray = attribute(array(i32))
    shift: np.ndarray = attribute(array(i8))
    input_zp: int = attribute(INT)
    output_zp: int = attribute(INT)
    rounding_mode: str = attribute(words("SINGLE_ROUND", "DOUBLE_ROUND"))
    scale32: bool = attribute(BOOL)
    per_channel: bool = attribute(BOOL)
    input_range: tuple[int, ...] | None = attribute(ints(2), default=None)
    rounding: Rounding | None = attribute(words(*ROUNDINGS), default=None)
    traits = (
        Tabulable(input),
        Role("rescaled"),
        SameShape(input, output),
        ConstantOperands(multiplier=i32, shift=i8, input_zp=input, output_zp=output),
    )
