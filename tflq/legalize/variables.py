"""The variables of a module: names by handle or variable tensor, and under which parameters each is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count

from tflq.analysis.variables import variable_name
from tflq.dialects.tfl.state import AssignVariable, VarHandle
from tflq.ir.core import Module, Value
from tflq.ir.types import ElementType
from tflq.light import dataclass, field

__all__ = ["Variables", "variables_of"]


@dataclass(frozen=True, slots=True)
class Variables:
    """names: of handles, and of variable tensors as they become variables. written: the element types of what is
    assigned to each resource variable, without repetition."""

    names: dict[Value, str] = field(default_factory=dict)
    written: Mapping[str, Sequence[ElementType]] = field(default_factory=dict)

    def name(self, tensor: Value) -> tuple[str, bool]:
        """The name of the variable that a variable tensor becomes, and whether this is the first time."""
        known = self.names.get(tensor)
        if known is not None:
            return known, False
        base, taken = tensor.name or "state", set(self.names.values())
        name = next(n for n in chain([base], (f"{base}_{i}" for i in count(1))) if n not in taken)
        self.names[tensor] = name
        return name, True

    def elements(self, handle: Value) -> Sequence[ElementType]:
        """What is written to the variable of a handle; nothing, if the handle is passed in."""
        made = handle.producer
        return self.written.get(variable_name(made), ()) if made is not None and isinstance(made, VarHandle) else ()


def variables_of(module: Module) -> Variables:
    """The resource variables of a module."""
    handles = {op.result: variable_name(op) for op in module.ops() if isinstance(op, VarHandle)}
    written: dict[str, list[ElementType]] = {}
    for op in module.ops():
        if isinstance(op, AssignVariable) and op.resource in handles:
            of = written.setdefault(handles[op.resource], [])
            if op.value.type.element not in of:
                of.append(op.value.type.element)
    return Variables(handles, written)
