"""Variables in functions that control flow calls: values beside their arguments and results.

Only an entry point reads and writes variables, each once; what a branch or a loop reads it is given, and what it
writes it gives back. Handles of variables that are passed on are names by which a function is lowered, not arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.dialects.calls import callees
from tflq.dialects.tfl.control import CallOnce, If
from tflq.dialects.tfl.state import AssignVariable, ReadVariable, VarHandle
from tflq.ir.core import Module, Value
from tflq.ir.types import TensorType, resource

__all__ = ["NO_STATE", "Scope", "Use", "handle_name", "is_handle", "uses"]


@dataclass(frozen=True)
class Scope:
    """What a function that is called has of variables: the name of the one each argument is a handle of, if it is;
    those it is given, with the types of the values, and those it gives back."""

    handles: tuple[str | None, ...] = ()
    given: tuple[tuple[str, TensorType], ...] = ()
    returned: tuple[str, ...] = ()


NO_STATE = Scope()


@dataclass(frozen=True, slots=True)
class Use:
    """That functions use a variable: a value it holds there, and whether they write it."""

    like: Value
    written: bool


def is_handle(value: Value) -> bool:
    return value.type.element == resource


def handle_name(op: VarHandle) -> str:
    """The name of the variable that a VAR_HANDLE is of."""
    return "/".join(w for w in (op.container, op.shared_name) if w) or "variable"


def uses(module: Module, index: int, handles: Sequence[str | None]) -> dict[str, Use]:
    """The variables that a function and those it calls use; `handles`: the names of those its arguments stand for."""
    function = module.functions[index]
    names = {v: name for v, name in zip(function.inputs, handles, strict=True) if name}
    found: dict[str, Use] = {}

    def add(name: str, use: Use) -> None:
        known = found.get(name)
        found[name] = use if known is None else Use(known.like, known.written or use.written)

    for op in function.ops:
        if isinstance(op, VarHandle):
            names[op.result] = handle_name(op)
        elif isinstance(op, AssignVariable) and op.resource in names:
            add(names[op.resource], Use(op.value, written=True))
        elif isinstance(op, ReadVariable) and op.resource in names:
            add(names[op.resource], Use(op.result, written=False))
        elif not isinstance(op, CallOnce):
            given = op.inputs if isinstance(op, If) else op.operands
            passed = [None if v is None else names.get(v) for v in given]
            for called in callees(op):
                for name, use in uses(module, called, passed).items():
                    add(name, use)
            names.update({v: n for v, n in zip(op.results, passed, strict=False) if n and is_handle(v)})
    return found
