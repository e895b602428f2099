"""The module verifier: what a reader returns holds, or `InvalidModelError` says what does not and where.

The structure of the bytes and every index have been checked before there is a module (`structure.py`, `reader.py`).
Here follow, in order: the model, its tensors (`verify_shapes`, `verify_quantization`), its graph (`verify_graph`) and
its operators, by the operands, attributes and traits that their classes declare. Harmless defects become warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflq.dialects.declare import Operator
from tflq.dialects.declared import compiled
from tflq.dialects.tfl import builtin_of
from tflq.dialects.tfl.control import Custom
from tflq.dialects.traits.constants import check_attribute
from tflq.dialects.traits.effects import Undescribed
from tflq.errors import InvalidModelError
from tflq.flatbuffer import verify_graph, verify_quantization, verify_shapes
from tflq.flatbuffer.layout import options_of, table
from tflq.ir.notes import Notes

if TYPE_CHECKING:
    from tflq.ir.core import Function, Module, Op, Value

__all__ = ["verify_module"]

_VERSION = 3


def verify_module(module: Module) -> list[str]:
    """Check a module just read: InvalidModelError at its first defect, else the harmless ones, its `warnings`."""
    notes = Notes()
    if module.version != _VERSION:
        notes.fail("Model.version", f"schema version {module.version}, not {_VERSION}")
    if not module.functions:
        notes.fail("Model.subgraphs", "there is no subgraph")
    if module.buffers and module.buffers[0].data.size:
        what = "holds data, but stands for no buffer, and no tensor can use them"
        notes.warn("Model.buffers[0]", what, remedy="leave it empty")
    verify_graph.verify_operator_codes(module, notes)
    verify_shapes.verify_external(module, notes)
    for index, function in enumerate(module.functions):
        _verify_tensors(function, index, notes)
        verify_graph.verify_flow(function, index, notes)
    verify_graph.verify_signatures(module, notes)
    verify_graph.verify_calls(module, notes)
    for op in module.ops():
        _verify_op(module, op, notes)
    module.warnings = notes.finish()
    return module.warnings


def _verify_tensors(function: Function, index: int, notes: Notes) -> None:
    used = set(function.values())
    for number, value in enumerate(function.tensors):
        where = f"subgraph {index}, tensor {number} '{value.name}'"
        if value in used:
            _verify_tensor(value, where, notes)
            continue
        try:
            _verify_tensor(value, where, notes)
        except InvalidModelError as error:
            notes.warn(error.where, f"{error.reason.what}, but no operator uses it", remedy="remove the tensor")


def _verify_tensor(value: Value, where: str, notes: Notes) -> None:
    verify_shapes.verify_tensor(value, where, notes)
    verify_quantization.verify_parameters(value, where, notes)


def _verify_op(module: Module, op: Op, notes: Notes) -> None:
    if not isinstance(op, Operator):
        notes.fail_op(op, f"{op.name} is not in the operator table")
    if op.info:
        _verify_options(op, notes)
    if (reason := compiled(type(op)).values(op)) is not None:
        notes.fail_op(op, reason)
    verify_graph.verify_call_arity(module, op, notes)
    for attribute in op.checked_attributes:
        check_attribute(attribute, op, notes)
    for trait in op.checked_traits:
        trait.check(op, notes)


def _verify_options(op: Operator, notes: Notes) -> None:
    """The options table is that of the operator, or is left out where an operator can do without."""
    if "options" not in op.info or isinstance(op, Custom):
        return
    given = op.info["options"]
    expected = options_of(builtin_of(op.name))
    if given is not None:
        notes.fail_op(op, f"has {given} where {expected or 'no options'} belongs")
    if expected is not None and table(expected).fields and not op.has(Undescribed):
        notes.warn_op(op, f"has no {expected}, so its attributes are taken to be 0", remedy=f"write its {expected}")
