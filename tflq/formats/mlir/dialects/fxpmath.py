"""`fxpmath`: arithmetic of real numbers as fixed-point units have it, and of the integers that carry it out.

Real ops take floats and quantized types. A quantized operand is the real number that it stands for; a quantized
result is the nearest step, half away from zero, within the storage range, where NaN counts as 0. Every real op
clamps its result to [`clamp_min`, `clamp_max`], where these are given. The pass `raise-real-math` makes them of
TFLite's floats, `lower-real-math` makes ops on integers of them (docs/numerics.md).

Source: the quantization framework proposed for MLIR (docs/proposals.md), which names the ops; the names here are
those of its classes without Op, in small letters.
"""

from __future__ import annotations

from math import isnan
from typing import Any, ClassVar, Final

from tflq.dialects.constraints import agree as shapes_agree
from tflq.dialects.declare import FLOAT, INT, QUANTIZED, Kind, OneOf, Operator, Types, attribute, operand, words
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit, agree
from tflq.dialects.inference import text as shape_text
from tflq.dialects.traits import Broadcasts, SameShape
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, ScalarType, i8, i16, i32
from tflq.ir.verifier import Check, constraint

REAL: Final = Types(FLOAT, QUANTIZED, text="a float or a quantized type")
_BOUND: Final = Kind("a float that is a number", lambda value: isinstance(value, float) and not isnan(value))


# What holds of every op.


def _inferred(op: Any) -> str | None:
    """The shape of the result must be the one that follows from the operands."""
    try:
        shape = op.infer_shapes()
    except Misfit as misfit:
        return str(misfit)
    assert not isinstance(shape, list)
    declared_shape = op.result.type.shape
    if shapes_agree(shape, declared_shape):
        return None
    return f"the result is {shape_text(declared_shape)}, and {shape_text(shape)} follows from the operands"


def _expressed(element: ElementType) -> ScalarType | None:
    return element if isinstance(element, ScalarType) else getattr(element, "expressed", None)


@constraint("operands and result must be of one float type, or quantized and express it")
def _one_real(op: Operator) -> bool:
    return len({_expressed(value.type.element) for value in op.tensors}) == 1


@constraint("clamp_min must not be above clamp_max")
def _ordered(op: Any) -> bool:
    return op.clamp_min is None or op.clamp_max is None or bool(op.clamp_min <= op.clamp_max)


# Real numbers.


class RealMath(Operator):
    """Of real numbers; the result is clamped."""

    clamp_min: float | None = attribute(_BOUND, default=None)
    clamp_max: float | None = attribute(_BOUND, default=None)
    constraints: ClassVar[tuple[Check, ...]] = (declared, _one_real, _inferred, _ordered)


class RealBinary(RealMath):
    """Of two tensors that broadcast, element by element."""

    lhs: Value = operand(REAL)
    rhs: Value = operand(REAL)
    output: Value = result_(REAL)
    traits = (Broadcasts(lhs, rhs, output),)


class RealAddEw(RealBinary, name="fxpmath.real_add_ew"):
    """clamp(lhs + rhs)"""


class RealSubEw(RealBinary, name="fxpmath.real_sub_ew"):
    """clamp(lhs - rhs)"""


class RealMulEw(RealBinary, name="fxpmath.real_mul_ew"):
    """clamp(lhs * rhs)"""


class RealDivEw(RealBinary, name="fxpmath.real_div_ew"):
    """clamp(lhs / rhs). A division by 0 is an infinity with the sign of lhs, stored as the end of the range on that
    side. 0 / 0 is NaN, stored as 0. Source: IEEE 754"""


OPCODES: Final = (
    *("IDENTITY", "TANH", "SIGMOID", "EXP", "LOG", "NEG", "RSQRT"),
    *("SIN", "SQUARE", "SQRT", "CMPZ", "CMPNZ", "CMPLZ", "CMPGZ"),
)
"""The functions of `real_unary`. The last four compare with 0 (equal, not equal, less, greater): 1.0 or 0.0."""


class RealUnary(RealMath, name="fxpmath.real_unary"):
    """clamp(f(input)), f by `opcode`; the CMP functions compare with 0 and give 1.0 or 0.0"""

    input: Value = operand(REAL)
    output: Value = result_(REAL)
    opcode: str = attribute(words(*OPCODES))
    traits = (SameShape(input, output),)


class RealMatmul(RealMath, name="fxpmath.real_matmul"):
    """clamp(sum over k of lhs[..., k] * rhs[k, n])"""

    lhs: Value = operand(REAL)
    rhs: Value = operand(REAL)
    output: Value = result_(REAL)

    def infer(self, site: DeclaredShapes) -> Dims:
        return _product(site, self.operand(0), self.operand(1))


class RealMatmulBias(RealMath, name="fxpmath.real_matmul_bias"):
    """clamp(sum over k of lhs[..., k] * rhs[k, n] + bias[n])"""

    lhs: Value = operand(REAL)
    rhs: Value = operand(REAL)
    bias: Value = operand(REAL)
    output: Value = result_(REAL)

    def infer(self, site: DeclaredShapes) -> Dims:
        *rows, units = _product(site, self.lhs, self.rhs)
        return (*rows, agree(units, site.dims(self.bias, 1)[0], "the bias and the columns of rhs"))


def _product(site: DeclaredShapes, lhs: Value, rhs: Value) -> Dims:
    *rows, length = site.dims(lhs, least=1)
    inner, units = site.dims(rhs, 2)
    agree(length, inner, "the last dim of lhs and the rows of rhs")
    return (*rows, units)


# Integers.


_T: Final = OneOf(i8, i16, i32)


@constraint("exponent must be from 0 to 31")
def _exponent(op: Any) -> bool:
    return 0 <= op.exponent <= 31


@constraint("clamp_min and clamp_max must be integers of the element type")
def _bounds_fit(op: Any) -> bool:
    storage = op.result.type.storage
    return all(storage.minimum <= bound <= storage.maximum for bound in (op.clamp_min, op.clamp_max))


class RoundingDivideByPot(Operator, name="fxpmath.rounding_divide_by_pot"):
    """input / 2^exponent, rounded to nearest, half away from zero"""

    input: Value = operand(_T)
    output: Value = result_(_T)
    exponent: int = attribute(INT)
    traits = (SameShape(input, output),)
    constraints = (declared, _inferred, _exponent)


class SaturatingAdd(Operator, name="fxpmath.saturating_add"):
    """clamp(lhs + rhs), the sum as if the type held it; the operands broadcast"""

    lhs: Value = operand(_T)
    rhs: Value = operand(_T)
    output: Value = result_(_T)
    clamp_min: int = attribute(INT)
    clamp_max: int = attribute(INT)
    traits = (Broadcasts(lhs, rhs, output),)
    constraints = (declared, _inferred, _ordered, _bounds_fit)


class SaturatingRoundingDoublingHighMul(Operator, name="fxpmath.saturating_rounding_doubling_high_mul"):
    """lhs * rhs / 2^(w - 1) in a type of w bits, rounded to nearest, half up. The least integer times itself, which the
    type does not hold, is the greatest. The operands broadcast"""

    lhs: Value = operand(_T)
    rhs: Value = operand(_T)
    output: Value = result_(_T)
    traits = (Broadcasts(lhs, rhs, output),)
    constraints = (declared, _inferred)


class Matmul(Operator, name="fxpmath.matmul"):
    """sum over k of (lhs[..., k] - lhs_zero_point) * (rhs[k, n] - rhs_zero_point), which wraps"""

    lhs: Value = operand(i8)
    rhs: Value = operand(i8)
    output: Value = result_(i32)
    lhs_zero_point: int = attribute(INT)
    rhs_zero_point: int = attribute(INT)
    constraints = (declared, _inferred)

    def infer(self, site: DeclaredShapes) -> Dims:
        return _product(site, self.lhs, self.rhs)
