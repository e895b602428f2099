"""Variables."""

from __future__ import annotations

from tflq.dialects.declare import ANY, STRING, OneOf, Operator, attribute, operand, result
from tflq.dialects.inference import Stated
from tflq.dialects.traits.effects import Impure
from tflq.ir.core import Value
from tflq.ir.types import Shape

__all__ = ["Variable", "VariableRead", "VariableWrite"]


class Variable(Operator, name="tosa.variable"):
    """A variable and what it holds at first."""

    __slots__ = ()
    initial_value: Value = operand(OneOf(ANY), constant=True)
    variable: str = attribute(STRING, key="name")
    traits = (Impure(),)

    def infer(self, _: Stated) -> list[Shape]:
        return []


class VariableRead(Operator, name="tosa.variable_read"):
    """What a variable holds."""

    __slots__ = ()
    output: Value = result(OneOf(ANY))
    variable: str = attribute(STRING, key="name")
    traits = (Impure(),)


class VariableWrite(Operator, name="tosa.variable_write"):
    """Writes a variable."""

    __slots__ = ()
    input: Value = operand(OneOf(ANY))
    variable: str = attribute(STRING, key="name")
    traits = (Impure(),)

    def infer(self, _: Stated) -> list[Shape]:
        return []
