"""The ops: elementwise, on two tensors of one shape. Being declared they are pure, so cse and dce know them."""

from __future__ import annotations

from tflq.dialects.declare import FLOAT, QUANTIZED, Operator, operand, result
from tflq.ir.ops import Op, Value

__all__ = ["Add", "Div", "Mod", "Mul"]


def one_shape(op: Op) -> str | None:
    """Operands and result are of one shape."""
    shapes = {value.type.shape for value in op.tensors}
    return None if len(shapes) == 1 else "operands and result must have the same shape"


class Add(Operator, name="ml.add"):
    """sum = lhs + rhs"""

    lhs: Value = operand(FLOAT, QUANTIZED)
    rhs: Value = operand(FLOAT, QUANTIZED)
    sum: Value = result(FLOAT, QUANTIZED)
    constraints = (one_shape,)


class Mul(Operator, name="ml.mul"):
    """product = lhs * rhs"""

    lhs: Value = operand(FLOAT, QUANTIZED)
    rhs: Value = operand(FLOAT, QUANTIZED)
    product: Value = result(FLOAT, QUANTIZED)
    constraints = (one_shape,)


class Div(Operator, name="ml.div"):
    """quotient = lhs / rhs"""

    lhs: Value = operand(FLOAT, QUANTIZED)
    rhs: Value = operand(FLOAT, QUANTIZED)
    quotient: Value = result(FLOAT, QUANTIZED)
    constraints = (one_shape,)


class Mod(Operator, name="ml.mod"):
    """remainder of lhs / rhs, with the sign of lhs"""

    lhs: Value = operand(FLOAT, QUANTIZED)
    rhs: Value = operand(FLOAT, QUANTIZED)
    remainder: Value = result(FLOAT, QUANTIZED)
    constraints = (one_shape,)
