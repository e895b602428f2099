"""The IR verifier: what holds in every form, whatever its dialect.

Values are defined once and before their use; constants are within the bounds of their types; quantized axes are axes of
the tensors, wherever a type stands; ops obey the constraints that their classes declare, and calls are those of the
functions they name (`op_checks`). Which other ops are legal is for each form's own verifier. Runs after every pass, so
it walks the module once.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final, NoReturn

from tflq.errors import VerificationError
from tflq.ir.core import Function, Module, Op, Value, walk
from tflq.ir.op_checks import ENDS, OP_CHECKS
from tflq.ir.quant_constraints import PER_AXIS, axis_problem, bounds_problem, signless_integers
from tflq.ir.types import ScalarType

__all__ = ["fail", "verify", "verify_casts", "verify_ops"]

_CHECKED: Final = frozenset({*ENDS, *OP_CHECKS})
"""Ops that are checked by name."""


def verify(module: Module) -> None:
    """VerificationError, showing the op among its neighbours, if the module breaks an invariant of the IR."""
    for index, function in enumerate(module.functions):
        _verify_header(module, index, "argument", function.inputs)
        if not function.info.get("declaration"):
            _Function(module, index, function).verify()
        _verify_header(module, index, "result", function.outputs)


def verify_ops(function: Function, known: Set[Value]) -> None:
    """The same for the ops of a function that is not whole: `known` are defined before these."""
    check = _Function(Module([function]), 0, function)
    check.defined |= known
    check.ops(function.ops, None, "")


def verify_casts(module: Module) -> None:
    """VerificationError if a quant.scast is not between a quantized and a signless type, as the `quant` dialect has it.
    A conversion's own casts may be to unsigned types, which are what files hold."""
    for index, function in enumerate(module.functions):
        for op in function.ops:
            for inner in walk([op]) if op.regions else (op,):
                if inner.name == "quant.scast" and (reason := signless_integers(inner)) is not None:
                    fail(module, index, op, reason)


def _verify_header(module: Module, index: int, kind: str, values: Sequence[Value]) -> None:
    for position, value in enumerate(values):
        if value.type.element.__class__ in PER_AXIS and (reason := axis_problem(value.type)) is not None:
            fail(module, index, None, f"{kind} {position}: {reason}")


class _Function:
    """The check of one function."""

    def __init__(self, module: Module, index: int, function: Function) -> None:
        self.module = module
        self.index = index
        self.function = function
        self.defined: set[Value] = set(function.inputs)

    def fail(self, op: Op | None, reason: str) -> NoReturn:
        fail(self.module, self.index, op, reason)

    def verify(self) -> None:
        function, defined = self.function, self.defined
        if len(defined) != len(function.inputs):
            self.fail(None, "two arguments of the function are the same value")
        for argument in function.inputs:
            if argument.producer is not None:
                self.fail(None, f"argument '{argument.name}' is the result of an op ({argument.producer.name})")
        self.ops(function.ops, None, "")
        for position, value in enumerate(function.outputs):
            if value not in defined and (value.producer is not None or not _is_given(value)):
                self.fail(None, f"output {position} {_undefined(value, function)}")
            if value.buffer is not None and (reason := bounds_problem(value)) is not None:
                self.fail(None, f"output {position}: {reason}")

    def ops(self, ops: Sequence[Op], outer: Op | None, parent: str) -> None:
        """The ops of a function, or of a region of `outer`, which messages show, or of an op inside of it: `parent`."""
        defined = self.defined
        for op in ops:
            shown = outer or op
            for position, value in enumerate(op.operands):
                if value is None:
                    continue
                if value not in defined and (value.producer is not None or not _is_given(value)):
                    self.fail(shown, _within(outer, op, f"operand {position} {_undefined(value, self.function)}"))
                if value.buffer is not None and value.type.element.__class__ is not ScalarType:
                    reason = constant_problem(value)
                    if reason is not None:
                        self.fail(shown, _within(outer, op, f"operand {position}: {reason}"))
            plain = True
            for position, value in enumerate(op.results):
                if value in defined:
                    what = f"result {position} ('{value.name}') is defined a second time"
                    self.fail(shown, _within(outer, op, what))
                if value.producer is not op:
                    what = f"result {position} ('{value.name}') names another op as its producer"
                    self.fail(shown, _within(outer, op, what))
                defined.add(value)
                plain = plain and value.type.element.__class__ is ScalarType
            for constraint in op.constraints:
                reason = constraint(op)
                if reason is not None:
                    self.fail(shown, _within(outer, op, reason))
            if op.name in _CHECKED:
                self._named(op, outer, parent)
            for position, value in enumerate(() if plain else op.results):
                if value.type.element.__class__ in PER_AXIS and (reason := axis_problem(value.type)) is not None:
                    self.fail(shown, _within(outer, op, f"result {position}: {reason}"))
            if op.regions:
                self._regions(op, shown)

    def _named(self, op: Op, outer: Op | None, parent: str) -> None:
        """What is asked of an op by its name."""
        if ENDS.get(op.name, parent) != parent:
            where = f"it ends a block of {ENDS[op.name]} and stands nowhere else"
            self.fail(outer or op, _within(outer, op, where))
        for check in OP_CHECKS.get(op.name, ()):
            reason = check(op, self.module)
            if reason is not None:
                self.fail(outer or op, _within(outer, op, reason))

    def _regions(self, op: Op, outer: Op) -> None:
        """What is inside of an op: it sees what is defined before, and nothing after the op sees it."""
        before = self.defined
        for region in op.regions:
            for block in region.blocks:
                self.defined = before | set(block.arguments)
                if len(set(block.arguments)) != len(block.arguments) or not before.isdisjoint(block.arguments):
                    self.fail(outer, f"an argument of a block of '{op.name}' is defined a second time")
                for value in block.arguments:
                    if (reason := axis_problem(value.type)) is not None:
                        self.fail(outer, f"an argument of a block of '{op.name}': {reason}")
                self.ops(block.ops, outer, op.name)
        self.defined = before


def _within(outer: Op | None, op: Op, reason: str) -> str:
    """A reason with the op it is about, if that is inside of another one."""
    return reason if outer is None else f"'{op.name}' inside of it: {reason}"


def constant_problem(value: Value) -> str | None:
    """What is wrong with a constant."""
    if value.type.element.__class__ in PER_AXIS and (reason := axis_problem(value.type)) is not None:
        return reason
    return bounds_problem(value)


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
