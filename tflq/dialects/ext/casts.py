"""Between element types."""

from __future__ import annotations

from tflq.dialects.declare import FLOAT, INTEGER, Operator, operand, result
from tflq.dialects.traits.types import SameShape
from tflq.ir.core import Value

__all__ = ["Truncate"]


class Truncate(Operator, name="ext.truncate"):
    """The integer part; what the type cannot hold becomes its nearest end, NaN 0 or an end."""

    __slots__ = ()
    input: Value = operand(FLOAT)
    output: Value = result(INTEGER)
    traits = (SameShape(input, output),)
