"""The `func` dialect of MLIR: calls of functions, and functions as values. Functions themselves are not ops here."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.declare import Kind, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.traits.operands import Impure
from tflq.ir.core import Module, Value
from tflq.ir.lexer import Symbol
from tflq.ir.types import BareType, FunctionType, TensorType

# Calls of the module's functions: they name one, and are of its type.


_SYMBOL = Kind("function", lambda value: isinstance(value, Symbol))


def _matches(name: object, given: FunctionType, module: Module) -> str | None:
    """Why the module has no function of this name and type."""
    if not isinstance(name, Symbol):
        return "it must name a function: @name"
    function = next((f for f in module.functions if f.name == name), None)
    if function is None:
        return f"there is no function @{name}"
    kind = FunctionType(_types(function.inputs), _types(function.outputs))
    return None if given == kind else f"@{name} is used as {_text(given)}, but is {_text(kind)}"


def _types(values: Sequence[Value | None]) -> tuple[TensorType, ...]:
    return tuple(_MISSING if v is None else v.type for v in values)


def _text(kind: FunctionType) -> str:
    from tflq.ir.print_types import type_text

    return type_text(kind)


_MISSING = BareType.of(FunctionType((), ()))


def _calls_one(op: Call, module: Module, _: str) -> str | None:
    return _matches(op.attributes.get("callee"), FunctionType(_types(op.operands), _types(op.results)), module)


class Call(Operator, name="func.call"):
    """outputs = what the function `callee` makes of the inputs"""

    inputs: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    callee: Symbol = attribute(_SYMBOL)
    traits = (Impure(),)
    module_constraints = (_calls_one,)


def _calls_operand(op: CallIndirect) -> str | None:
    if not op.operands or op.operands[0] is None or not isinstance(op.operands[0].type.element, FunctionType):
        return "its first operand must be a function"
    kind = op.operands[0].type.element
    given = FunctionType(_types(op.operands[1:]), _types(op.results))
    return None if given == kind else f"it is {_text(given)}, but the function is {_text(kind)}"


class CallIndirect(Operator, name="func.call_indirect"):
    """outputs = what the function that is a value makes of the inputs"""

    callee: Value = operand()
    inputs: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    traits = (Impure(),)
    constraints = (_calls_operand,)


def _names_one(op: Constant, module: Module, _: str) -> str | None:
    if op.operands or len(op.results) != 1:
        return "it must have no operands and one result"
    kind = op.result.type.element
    if not isinstance(kind, FunctionType):
        return "its result must be of a function type"
    return _matches(op.attributes.get("value"), kind, module)


class Constant(Operator, name="func.constant"):
    """The function `value`, as a value."""

    result: Value = result_()
    value: Symbol = attribute(_SYMBOL)
    module_constraints = (_names_one,)
