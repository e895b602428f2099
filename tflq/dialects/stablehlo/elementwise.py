"""Arithmetic, functions, comparisons and casts, element by element; and ops that compute nothing."""

from __future__ import annotations

import re

from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.stablehlo.rules import agree, elementwise, one_kind
from tflq.dialects.traits.operands import Impure
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, i1, is_quantized
from tflq.ir.verifier import constraint


class Binary(Operator):
    """Of two tensors, element by element."""

    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, one_kind)


class Add(Binary, name="stablehlo.add"):
    """The sum; of booleans, whether one is true."""


class Subtract(Binary, name="stablehlo.subtract"):
    """The difference."""


class Multiply(Binary, name="stablehlo.multiply"):
    """The product; of booleans, whether both are true."""


class Divide(Binary, name="stablehlo.divide"):
    """The quotient; of integers, without its fraction."""


class Remainder(Binary, name="stablehlo.remainder"):
    """What division leaves, with the sign of the dividend."""


class Maximum(Binary, name="stablehlo.maximum"):
    """The greater."""


class Minimum(Binary, name="stablehlo.minimum"):
    """The lesser."""


class Power(Binary, name="stablehlo.power"):
    """The power."""


class And(Binary, name="stablehlo.and"):
    """Bits that both have."""


class Or(Binary, name="stablehlo.or"):
    """Bits that one of them has."""


class Xor(Binary, name="stablehlo.xor"):
    """Bits that differ."""


# Functions of one tensor, element by element.


class Unary(Operator):
    """Of one tensor, element by element."""

    input: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, one_kind)


class Abs(Unary, name="stablehlo.abs"):
    """The absolute value."""


class Negate(Unary, name="stablehlo.negate"):
    """The value with the other sign."""


class Not(Unary, name="stablehlo.not"):
    """Every bit the other way."""


class Sign(Unary, name="stablehlo.sign"):
    """-1, 0 or 1."""


class Ceil(Unary, name="stablehlo.ceil"):
    """The next integer up."""


class Floor(Unary, name="stablehlo.floor"):
    """The next integer down."""


class RoundNearestEven(Unary, name="stablehlo.round_nearest_even"):
    """The nearest integer, of two the even one."""


class RoundNearestAfz(Unary, name="stablehlo.round_nearest_afz"):
    """The nearest integer, of two the one away from zero."""


class Exponential(Unary, name="stablehlo.exponential"):
    """e to the power of it."""


class Log(Unary, name="stablehlo.log"):
    """The natural logarithm."""


class Logistic(Unary, name="stablehlo.logistic"):
    """1 / (1 + exp(-x))"""


class Sqrt(Unary, name="stablehlo.sqrt"):
    """The square root."""


class Rsqrt(Unary, name="stablehlo.rsqrt"):
    """1 / sqrt(x)"""


class Tanh(Unary, name="stablehlo.tanh"):
    """The hyperbolic tangent."""


class Cosine(Unary, name="stablehlo.cosine"):
    """The cosine."""


class Sine(Unary, name="stablehlo.sine"):
    """The sine."""


# Comparison and choice, element by element.


_DIRECTION = re.compile(r"EQ|NE|GE|GT|LE|LT")


@constraint
def _compared(op: Compare) -> bool:
    """the operands must have the same element type, and the result is of i1"""
    return op.lhs.type.element == op.rhs.type.element and op.result.type.element == i1


@constraint
def _directed(op: Compare) -> bool:
    """'comparison_direction' must be one of EQ, NE, GE, GT, LE and LT"""
    return bool(op.direction)


@constraint
def _chosen(op: Select) -> bool:
    """'pred' must be of i1, a scalar or of the shape of the others, which must have the type of the result"""
    made = op.result.type
    same = op.on_true.type.element == op.on_false.type.element == made.element
    shapes = agree(op.on_true.type.shape, made.shape) and agree(op.on_false.type.shape, made.shape)
    return (
        same
        and shapes
        and op.pred.type.element == i1
        and (op.pred.type.rank == 0 or agree(op.pred.type.shape, made.shape))
    )


@constraint
def _bounded(op: Clamp) -> bool:
    """'min' and 'max' must have the operand's element type, and be scalars or of its shape"""
    given, made = op.input.type, op.result.type
    bounds = all(b.rank == 0 or agree(b.shape, given.shape) for b in (op.min.type, op.max.type))
    return bounds and agree(given.shape, made.shape) and op.min.type.element == op.max.type.element == given.element


class Compare(Operator, name="stablehlo.compare"):
    """Whether two values compare as `comparison_direction` says."""

    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, _compared, _directed)

    @property
    def direction(self) -> str:
        """EQ, NE, GE, GT, LE or LT; "" if it is not stated."""
        stated = self.attributes.get("comparison_direction")
        found = _DIRECTION.search(str(getattr(stated, "text", stated)).replace("comparison_direction", ""))
        return found[0] if found else ""


class Select(Operator, name="stablehlo.select"):
    """One of two values."""

    pred: Value = operand()
    on_true: Value = operand()
    on_false: Value = operand()
    result: Value = result_()
    constraints = (declared, _chosen)


class Clamp(Operator, name="stablehlo.clamp"):
    """A value within bounds."""

    min: Value = operand()
    input: Value = operand()
    max: Value = operand()
    result: Value = result_()
    constraints = (declared, _bounded)


# Casts between real numbers and quantized ones, and between plain types.


def _expressed(op: Op, index: int = 0) -> object:
    value = op.operand(index)
    element = value.type.element
    return element.expressed if is_quantized(element) else element


@constraint
def _made_quantized(op: Op) -> bool:
    """(C2) the operand must be floating-point or quantized, the result quantized, and both must express one type"""
    element = op.operand(0).type.element
    made = op.result.type.element
    given = is_quantized(element) or (isinstance(element, ScalarType) and element.is_float)
    return given and is_quantized(made) and made.expressed == _expressed(op)


@constraint
def _made_real(op: Op) -> bool:
    """(C2) the operand must be quantized, and the result of the type that it expresses"""
    return is_quantized(op.operand(0).type.element) and op.result.type.element == _expressed(op)


@constraint
def _plain(op: Op) -> bool:
    """neither operand nor result may be quantized: that is uniform_quantize and uniform_dequantize"""
    return isinstance(op.operand(0).type.element, ScalarType) and isinstance(op.result.type.element, ScalarType)


class _Cast(Operator):
    """A tensor as one of another element type."""

    input: Value = operand()
    result: Value = result_()


class UniformQuantize(_Cast, name="stablehlo.uniform_quantize"):
    """result = clamp(round_nearest_even(operand / scale + zero_point), storage_min, storage_max); what is quantized is
    dequantized first."""

    constraints = (declared, elementwise, _made_quantized)


class UniformDequantize(_Cast, name="stablehlo.uniform_dequantize"):
    """result = (operand - zero_point) * scale"""

    constraints = (declared, elementwise, _made_real)


class Convert(_Cast, name="stablehlo.convert"):
    """The value in another plain type."""

    constraints = (declared, elementwise, _plain)


# Ops that compute nothing: the end of a region, a barrier, calls of what others define.


@constraint
def _passed_on(op: OptimizationBarrier) -> bool:
    """the results must have the types of the operands"""
    return [v.type for v in op.values] == [v.type for v in op.results]


class Return(Operator, name="stablehlo.return"):
    """The end of a region, and what it gives."""

    values: list[Value] = operand(variadic=True)


class OptimizationBarrier(Operator, name="stablehlo.optimization_barrier"):
    """Its operands; what makes them is not folded into what reads them."""

    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    constraints = (_passed_on,)
    traits = (Impure(),)


class CustomCall(Operator, name="stablehlo.custom_call"):
    """What somebody else defines."""

    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    traits = (Impure(),)
