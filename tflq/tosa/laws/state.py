"""Laws of variables (TOSA 1.0, section 2.14)."""

from __future__ import annotations

from tflq.dialects.tosa.state import Variable, VariableRead, VariableWrite
from tflq.tosa.laws.control import fits
from tflq.tosa.laws.registry import Context, Violations, law

__all__: list[str] = []


@law(Variable)
def variable(op: Variable, _: Context) -> Violations:
    if not op.variable:
        yield "a variable without a name"
    if not op.initial_value.is_constant:
        yield f"the initial value of '{op.variable}' is not a constant"


@law(VariableRead, VariableWrite)
def access(op: VariableRead | VariableWrite, c: Context) -> Violations:
    name = op.variable
    value = op.output if isinstance(op, VariableRead) else op.input
    declared = c.variables.get(name)
    if declared is None:
        yield f"no variable is called '{name}'"
    elif not fits(value.type, declared):
        yield f"'{name}' is {declared}, not {value.type}"
