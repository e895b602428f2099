"""Constraints: what is asked of an op, as a function that says why it is invalid, or None.

Those of a class are its `constraints`. Here is how they are made, and those that depend on the op's module: calls are
those of functions that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tflq.ir.core import Function, Module, Op, walk
from tflq.ir.types import BareType, FunctionType, TensorType

__all__ = ["ENDS", "OP_CHECKS", "Check", "OpCheck", "constraint"]

Check: TypeAlias = Callable[[Any], str | None]
"""The reason why an op is invalid, or None."""

OpCheck: TypeAlias = Callable[[Op, Module], str | None]
"""The reason why an op is invalid in its module, or None."""


def constraint(predicate: Callable[[Any], bool], sentence: str = "") -> Check:
    """The check whose reason is the docstring of a predicate that does not hold, or another sentence."""
    reason: Final = sentence or " ".join((predicate.__doc__ or "").split())

    def check(op: Op) -> str | None:
        return None if predicate(op) else reason

    check.__doc__ = reason
    return check


ENDS: Final = {"quant.return": "quant.region"}
"""Ops that end a block of another op, and stand nowhere else."""


def _call(op: Op, module: Module) -> str | None:
    name = op.attributes.get("callee")
    return _matches(name, FunctionType(_types(op.operands), _types(op.results)), module)


def _constant(op: Op, module: Module) -> str | None:
    if op.operands or len(op.results) != 1:
        return "it must have no operands and one result"
    kind = op.result.type.element
    if not isinstance(kind, FunctionType):
        return "its result must be of a function type"
    return _matches(op.attributes.get("value"), kind, module)


def _call_indirect(op: Op, _: Module) -> str | None:
    if not op.operands or op.operands[0] is None or not isinstance(op.operands[0].type.element, FunctionType):
        return "its first operand must be a function"
    kind = op.operands[0].type.element
    given = FunctionType(_types(op.operands[1:]), _types(op.results))
    return None if given == kind else f"it is {_text(given)}, but the function is {_text(kind)}"


def _matches(name: object, given: FunctionType, module: Module) -> str | None:
    """Why a function of a name, and of the type with which it is used, is none of the module's."""
    from tflq.ir.syntax import Symbol

    if not isinstance(name, Symbol):
        return "it must name a function: @name"
    function = next((f for f in module.functions if f.name == name), None)
    if function is None:
        return f"there is no function @{name}"
    kind = _type_of(function)
    return None if given == kind else f"@{name} is used as {_text(given)}, but is {_text(kind)}"


def _type_of(function: Function) -> FunctionType:
    return FunctionType(_types(function.inputs), _types(function.outputs))


def _types(values: object) -> tuple[TensorType, ...]:
    return tuple(_MISSING if v is None else v.type for v in values)  # type: ignore[attr-defined]


def _pad(op: Op, _: Module) -> str | None:
    """The padding value of tosa.pad is said once."""
    if len(op.operands) > 2 and "quantization_info" in op.attributes:
        return "the padding value is given twice, as an operand and in 'quantization_info'"
    return None


def _stats_ref(op: Op, module: Module) -> str | None:
    """The key of a point is unique."""
    key = op.attributes.get("statsKey")
    alike = (o for f in module.functions for o in walk(f.ops) if o.name == op.name)
    if next(o for o in alike if o.attributes.get("statsKey") == key) is op:
        return None
    return f"there is another point with the key '{key}'"


_MISSING = BareType.of(FunctionType((), ()))

OP_CHECKS: Final[dict[str, tuple[OpCheck, ...]]] = {
    "func.call": (_call,),
    "func.call_indirect": (_call_indirect,),
    "func.constant": (_constant,),
    "quant.stats_ref": (_stats_ref,),
    "tosa.pad": (_pad,),
}


def _text(kind: FunctionType) -> str:
    from tflq.ir.print_types import type_text

    return type_text(kind)
