"""Functions of the module, and operators from outside TFLite."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import Stated
from tflq.dialects.traits.effects import Calls, Impure, Kept, Unquantized
from tflq.ir.core import Value
from tflq.ir.types import Shape

__all__ = ["Call", "CallOnce", "Custom", "Delegate", "If", "PlaceholderForGreaterOpCodes", "While"]

CALLS = Kept("calls a subgraph")


class Call(Operator, name="tfl.call"):
    """Runs a function; no kernel exists."""

    __slots__ = ()
    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    subgraph: int = attribute(default=0)
    traits = (CALLS, Calls(subgraph, inputs=inputs), Impure())

    def infer(self, site: Stated) -> list[Shape]:
        return site.branches([self.subgraph], self.inputs)


class CallOnce(Operator, name="tfl.call_once"):
    """Runs a function once, before anything else. Source: kernels/call_once.cc."""

    __slots__ = ()
    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    init_subgraph_index: int = attribute(default=0)
    traits = (CALLS, Calls(init_subgraph_index, inputs=inputs), Impure())

    def infer(self, site: Stated) -> list[Shape]:
        site.branches([self.init_subgraph_index], ())
        return []


class If(Operator, name="tfl.if"):
    """Runs one of two functions. Source: kernels/if.cc."""

    __slots__ = ()
    condition: Value = operand()
    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    then_subgraph_index: int = attribute(default=0)
    else_subgraph_index: int = attribute(default=0)
    traits = (CALLS, Calls(then_subgraph_index, else_subgraph_index, inputs=inputs), Impure())

    def infer(self, site: Stated) -> list[Shape]:
        return site.branches([self.then_subgraph_index, self.else_subgraph_index], self.inputs)


class While(Operator, name="tfl.while"):
    """Runs a function as long as another says so. Source: kernels/while.cc."""

    __slots__ = ()
    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    cond_subgraph_index: int = attribute(default=0)
    body_subgraph_index: int = attribute(default=0)
    traits = (CALLS, Calls(cond_subgraph_index, body_subgraph_index, inputs=inputs), Impure())

    def infer(self, site: Stated) -> list[Shape]:
        return site.loop(self.cond_subgraph_index, self.body_subgraph_index, self.inputs)


class Custom(Operator, name="tfl.custom"):
    """An operator that the interpreter is given by name."""

    __slots__ = ()
    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    traits = (Kept("custom operator"), Impure())

    @property
    def code(self) -> str:
        """The name that the interpreter knows it by."""
        return str(self.attributes.get("custom_code") or "")


class Delegate(Operator, name="tfl.delegate"):
    """What a delegate runs; an interpreter makes it."""

    __slots__ = ()
    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    traits = (Impure(), Unquantized("an interpreter makes it as it delegates; no file holds one"))


class PlaceholderForGreaterOpCodes(Operator, name="tfl.placeholder_for_greater_op_codes"):
    """A mark in the table of operators, not an operator."""

    __slots__ = ()
    inputs: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    traits = (Unquantized("a mark in the operator code, not an operator"),)
