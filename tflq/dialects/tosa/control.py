"""Functions of the module."""

from __future__ import annotations

from tflq.dialects.declare import ANY, INT, Operator, attribute, operand, result
from tflq.dialects.inference import Stated
from tflq.dialects.traits.effects import Calls, Impure
from tflq.ir.core import Value
from tflq.ir.types import Shape, i1

__all__ = ["CondIf", "WhileLoop"]


class CondIf(Operator, name="tosa.cond_if"):
    """Runs one of two functions."""

    __slots__ = ()
    condition: Value = operand(i1)
    inputs: list[Value | None] = operand(ANY, variadic=True)
    outputs: list[Value] = result(ANY, variadic=True)
    then_graph: int = attribute(INT)
    else_graph: int = attribute(INT)
    traits = (Calls(then_graph, else_graph), Impure())

    def infer(self, site: Stated) -> list[Shape]:
        return site.branches([self.then_graph, self.else_graph], self.inputs)


class WhileLoop(Operator, name="tosa.while_loop"):
    """Runs a function as long as another says so."""

    __slots__ = ()
    inputs: list[Value | None] = operand(ANY, variadic=True)
    outputs: list[Value] = result(ANY, variadic=True)
    cond_graph: int = attribute(INT)
    body_graph: int = attribute(INT)
    traits = (Calls(cond_graph, body_graph), Impure())

    def infer(self, site: Stated) -> list[Shape]:
        return site.loop(self.cond_graph, self.body_graph, self.inputs)
