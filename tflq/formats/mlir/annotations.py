"""Ops of text that only say something of a value, such as `quant.stats`: a file has no place for them."""

from __future__ import annotations

from tflq.dialects.declare import Operator
from tflq.dialects.effects import visible_blocks
from tflq.dialects.tosa.movement import Identity
from tflq.dialects.traits import Annotates
from tflq.ir.facts import final
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import move_name, replace_values


def drop_annotations(module: Module) -> bool:
    """Puts operands in the place of results that only annotate them. Returns whether there were any.

    A result that a function returns keeps its name: the operand gets it, or is copied where it is an argument, a
    constant, or a result itself. Any other name is kept where the operand has none.
    """
    modified = False
    for function in module.functions:
        replacements: dict[Value, Value] = {}
        function.ops = _without(function, function.ops, replacements)
        replace_values(module, function, replacements)
        modified |= bool(replacements)
    return modified


def is_annotation(op: Op) -> bool:
    """Whether the result of an op is its operand."""
    return isinstance(op, Operator) and op.has(Annotates)


def _without(function: Function, ops: list[Op], replacements: dict[Value, Value]) -> list[Op]:
    remaining: list[Op] = []
    for op in ops:
        for block in visible_blocks(op):
            block.ops = _without(function, block.ops, replacements)
        if not is_annotation(op):
            remaining.append(op)
            continue
        (annotated,), result = op.present_operands, op.result
        source = final(annotated, replacements)
        if result in function.outputs and result.name and not _renamed(source, result, function, replacements):
            remaining.append(Op(Identity.op_name, [source], [result], {}, op.location))
        elif result.producer is op and move_name(source, result):
            replacements[source] = result
        elif result.producer is op:
            replacements[result] = source
    return remaining


def _renamed(source: Value, result: Value, function: Function, replacements: dict[Value, Value]) -> bool:
    """Lets a value that is returned only as `result` have its name. Returns whether it has it now."""
    if source.name == result.name:
        return True
    returned = {final(value, replacements) for value in function.outputs if value is not result}
    if source.producer is None or source in returned:
        return False
    source.name = ""
    return True
