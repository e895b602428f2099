"""Resource variables: their names, and which operators read and write each.

A handle is made by VAR_HANDLE, or passed to a function that an operator calls. A file does not say what a variable
holds; what it is initialized with, what is read from it and what is assigned to it does.
Kernels: var_handle.cc, read_variable.cc, assign_variable.cc, call_once.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.dialects.calls import callees, entry_functions
from tflq.dialects.tfl.control import CallOnce, If
from tflq.dialects.tfl.state import AssignVariable, ReadVariable, VarHandle
from tflq.ir.core import Module, Value
from tflq.ir.types import resource
from tflq.light import dataclass

__all__ = ["Access", "Accesses", "accesses", "is_handle", "variable_name"]


@dataclass(frozen=True, slots=True)
class Access:
    """That an operator reads or assigns a variable. `once`: the function, by index, that CALL_ONCE runs to do so; None
    in every run."""

    name: str
    op: ReadVariable | AssignVariable
    once: int | None = None

    @property
    def value(self) -> Value:
        """What is read or assigned."""
        return self.op.value

    @property
    def written(self) -> bool:
        return isinstance(self.op, AssignVariable)


def is_handle(value: Value) -> bool:
    return value.type.element == resource


def variable_name(op: VarHandle) -> str:
    """The name of the variable that a VAR_HANDLE is of."""
    return "/".join(w for w in (op.container, op.shared_name) if w) or "variable"


def accesses(
    module: Module, index: int, handles: Sequence[str | None] = (), callers: tuple[int, ...] = ()
) -> Iterator[Access]:
    """What a function and those that it calls do with variables, in order. handles: the names of the variables that its
    arguments are handles of. callers: the functions that are being followed."""
    if index in callers or not 0 <= index < len(module.functions):
        return
    function = module.functions[index]
    names = {v: name for v, name in zip(function.inputs, handles, strict=False) if name}
    for op in function.ops:
        if isinstance(op, VarHandle):
            names[op.result] = variable_name(op)
        elif isinstance(op, (ReadVariable, AssignVariable)):
            if op.resource in names:
                yield Access(names[op.resource], op)
        elif called := callees(op):
            passed = [None if v is None else names.get(v) for v in (op.inputs if isinstance(op, If) else op.operands)]
            for other in called:
                for access in accesses(module, other, passed, (*callers, index)):
                    yield Access(access.name, access.op, other) if isinstance(op, CallOnce) else access
            names.update({v: n for v, n in zip(op.results, passed, strict=False) if n and is_handle(v)})


class Accesses:
    """What a module does with variables, by name and by handle."""

    def __init__(self, module: Module) -> None:
        self._named: dict[str, dict[tuple[Value, int | None], Access]] = {}
        self._names: dict[Value, dict[str, None]] = {}
        for index in entry_functions(module):
            for access in accesses(module, index):
                self._named.setdefault(access.name, {})[access.value, access.once] = access
                self._names.setdefault(access.op.resource, {})[access.name] = None

    def named(self, name: str) -> list[Access]:
        """Those of a variable: what it is initialized with, what is read from it, what is assigned to it."""
        found = self._named.get(name, {}).values()
        return sorted(found, key=lambda access: (access.once is None, access.written))

    def of(self, handle: Value) -> list[Access]:
        """Those of the variables that a value is a handle of."""
        return [access for name in self._names.get(handle, ()) for access in self.named(name)]
