"""The `func` dialect of MLIR: calls of functions, and functions as values. Functions themselves are no ops here."""

from __future__ import annotations

from tflq.dialects.declare import Kind, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.traits.operands import Impure
from tflq.ir.core import Value
from tflq.ir.lexer import Symbol

# Calls of the module's functions. That they name one, and are of its type, is checked where the module is known
# (`tflq.ir.verifier`).


_SYMBOL = Kind("function", lambda value: isinstance(value, Symbol))


class Call(Operator, name="func.call"):
    """outputs = what the function `callee` makes of the inputs"""

    __slots__ = ()
    inputs: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    callee: Symbol = attribute(_SYMBOL)
    traits = (Impure(),)


class CallIndirect(Operator, name="func.call_indirect"):
    """outputs = what the function that is a value makes of the inputs"""

    __slots__ = ()
    callee: Value = operand()
    inputs: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    traits = (Impure(),)


class Constant(Operator, name="func.constant"):
    """The function `value`, as a value."""

    __slots__ = ()
    result: Value = result_()
    value: Symbol = attribute(_SYMBOL)
