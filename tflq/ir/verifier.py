"""The IR verifier: what holds in every form, whatever its dialect.

Values are defined once and before their use; constants are within the bounds of their types; ops obey the constraints
that their classes declare. Which other ops are legal is for each form's own verifier. Runs after every pass, so
it walks the module once.
"""

from __future__ import annotations

from typing import NoReturn

from tflq.errors import VerificationError
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.quant_constraints import bounds_problem

__all__ = ["fail", "verify"]


def verify(module: Module) -> None:
    """VerificationError, showing the op among its neighbours, if the module breaks an invariant of the IR."""
    for index, function in enumerate(module.functions):
        if not function.info.get("declaration"):
            _verify_function(module, index, function)


def _verify_function(module: Module, index: int, function: Function) -> None:
    defined: set[Value] = set(function.inputs)
    if len(defined) != len(function.inputs):
        fail(module, index, None, "two arguments of the function are the same value")
    for argument in function.inputs:
        if argument.producer is not None:
            fail(module, index, None, f"argument '{argument.name}' is the result of an op ({argument.producer.name})")
    for op in function.ops:
        for position, value in enumerate(op.operands):
            if value is not None and value not in defined and (value.producer is not None or not _is_given(value)):
                fail(module, index, op, f"operand {position} {_undefined(value, function)}")
            if value is not None and value.buffer is not None and (reason := bounds_problem(value)) is not None:
                fail(module, index, op, f"operand {position}: {reason}")
        for position, value in enumerate(op.results):
            if value in defined:
                fail(module, index, op, f"result {position} ('{value.name}') is defined a second time")
            if value.producer is not op:
                fail(module, index, op, f"result {position} ('{value.name}') names another op as its producer")
            defined.add(value)
        for constraint in op.constraints:
            reason = constraint(op)
            if reason is not None:
                fail(module, index, op, reason)
    for position, value in enumerate(function.outputs):
        if value not in defined and (value.producer is not None or not _is_given(value)):
            fail(module, index, None, f"output {position} {_undefined(value, function)}")
        if value.buffer is not None and (reason := bounds_problem(value)) is not None:
            fail(module, index, None, f"output {position}: {reason}")


def _is_given(value: Value) -> bool:
    """Whether a value that nothing produces has a content: a constant or a variable tensor."""
    return value.buffer is not None or bool(value.info.get("is_variable"))


def _undefined(value: Value, function: Function) -> str:
    if value.producer is None:
        return f"('{value.name}') is used, but nothing defines it"
    if value.producer in function.ops:
        return f"('{value.name}') is used before {value.producer.name} defines it"
    return f"('{value.name}') is the result of {value.producer.name}, which is not an op of this function"


def fail(module: Module, index: int, op: Op | None, reason: str) -> NoReturn:
    """VerificationError: what is wrong with an op, or with its function, and the op among its neighbours."""
    from tflq.ir.printer import print_context

    function = module.functions[index]
    subject = f"function {index} '{function.name}'" if op is None else f"'{op.name}'"
    place = f"{op.location}: " if op is not None and op.location is not None else ""
    raise VerificationError(f"{place}{subject}: {reason}\n{print_context(module, index, op)}")
