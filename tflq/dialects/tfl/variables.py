"""Resource variables: what they hold stays between runs."""

from __future__ import annotations

from typing import Any

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import Stated
from tflq.dialects.traits.operands import Impure
from tflq.ir.core import Value
from tflq.ir.types import Shape


class VarHandle(Operator, name="tfl.var_handle"):
    """The handle of a variable. Source: kernels/var_handle.cc."""

    resource: Value = result()
    container: Any = attribute(default=None)
    shared_name: Any = attribute(default=None)
    traits = (Impure(),)

    def infer(self, _: Stated) -> Shape:
        return self.resource.type.shape


class ReadVariable(Operator, name="tfl.read_variable"):
    """What a variable holds. Source: kernels/read_variable.cc."""

    resource: Value = operand()
    value: Value = result()
    traits = (Impure(),)

    def infer(self, site: Stated) -> Shape:
        return site.variable(self.resource, self.value, False)


class AssignVariable(Operator, name="tfl.assign_variable"):
    """Writes a variable. Source: kernels/assign_variable.cc."""

    resource: Value = operand()
    value: Value = operand()
    traits = (Impure(),)

    def infer(self, site: Stated) -> list[Shape]:
        site.variable(self.resource, self.value, True)
        return []
