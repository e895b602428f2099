"""What is no computation: the end of a region, a barrier, calls of what others define."""

from __future__ import annotations

from tflq.dialects.declare import Operator, operand, result
from tflq.dialects.traits.effects import Impure
from tflq.ir.core import Value
from tflq.ir.op_checks import constraint

__all__ = ["CustomCall", "OptimizationBarrier", "Return"]


@constraint
def _passed_on(op: OptimizationBarrier) -> bool:
    """the results must have the types of the operands"""
    return [v.type for v in op.values] == [v.type for v in op.results]


class Return(Operator, name="stablehlo.return"):
    """The end of a region, and what it gives."""

    __slots__ = ()
    values: list[Value] = operand(variadic=True)


class OptimizationBarrier(Operator, name="stablehlo.optimization_barrier"):
    """Its operands; what makes them is not folded into what reads them."""

    __slots__ = ()
    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    constraints = (_passed_on,)
    traits = (Impure(),)


class CustomCall(Operator, name="stablehlo.custom_call"):
    """What somebody else defines."""

    __slots__ = ()
    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    traits = (Impure(),)
