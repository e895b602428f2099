"""Resource variables: READ_VARIABLE and ASSIGN_VARIABLE copy stored integers, whatever parameters they had.

Where parameters must hold, a variable has those under which it is written first; what is written or read under others
is requantized. Sources: kernels/read_variable.cc, assign_variable.cc.
"""

from __future__ import annotations

from tflq.dialects.tfl.runtime import version_info
from tflq.dialects.tfl.state import AssignVariable, ReadVariable
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.legalize.reference.generic.movement import COPIED
from tflq.legalize.rule import Answer, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import requantized_if_plain

__all__: list[str] = []


@rule(AssignVariable)
def assign(op: AssignVariable, b: RuleBuilder) -> Answer:
    """The variable = the stored integers."""
    handle, value = op.resource, op.value
    plain, element = b.value(value), value.type.element
    held = next(iter(b.variables.elements(handle)), element)
    if b.real and held != element:
        other = requantized_if_plain(b, plain, element, held)
        if other is None:
            raise _rejected(value, "written")
        plain = other
    b.op(op.name, [handle, plain], [], op.attributes, version_info(op))
    return []


@rule(ReadVariable)
def read(op: ReadVariable, b: RuleBuilder) -> Answer:
    """result = the integers stored in the variable."""
    element, written = op.result.type.element, b.variables.elements(op.resource)
    made = b.op(op.name, [op.resource], [op.result.type.stripped()], op.attributes, version_info(op)).result
    if all(other == element for other in written):
        return made
    if not b.real:
        return Rewritten([made], warning=COPIED)
    if written[0] == element:
        return made
    other = requantized_if_plain(b, made, written[0], element)
    if other is None:
        raise _rejected(op.result, "read")
    return other


def _rejected(value: Value, done: str) -> Refused:
    return Refused(
        f"'{value.name}' is {done} under other parameters than its variable has, and not per layer in 8 or 16 bits",
        "give both the same parameters, or convert with semantics 'interpreter', which copies the integers",
    )
