"""TOSA 1.0's operators as MLIR spells them → the tosa form: `text.py` backwards, after the text form has been parsed.

Compile-time-constant operands become attributes, enumerations words, a tensor that RESCALE reads or makes as unsigned
is of an unsigned type, and i48 is i64. An operator that is in the tosa form already stays as it is. Control flow with
regions and variables are not read: a .tosa file has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tflq.errors import InvalidModelError, Reason, UnsupportedError
from tflq.ir.attributes import Opaque, TypedFloat, TypedInt
from tflq.ir.core import Function, Location, Module, Op, Value
from tflq.ir.registry import op_class
from tflq.ir.types import ScalarType, TensorType, i8, i16, i64, named_scalar, ui8, ui16
from tflq.tosa.files.attributes import AS_1_0, MODES
from tflq.tosa.operands import Slot, attribute, constant_type, signless, slots

__all__ = ["to_tosa_form", "with_attributes"]

_UNSIGNED: Final[Mapping[ScalarType, ScalarType]] = {i8: ui8, i16: ui16}
_MADE: Final = frozenset({"acc_type", "input_unsigned", "local_bound", "nan_mode", "output_unsigned"})
"""Attributes that types say."""
_OURS: Final = {tosa: ours for ours, tosa in MODES.items()}
_I48: Final = named_scalar("i48")
"""What the tosa form holds in i64."""
_SHAPE_OP: Final = "tosa.const_shape"


def to_tosa_form(module: Module) -> None:
    """Changes a module of TOSA's operators in place. UnsupportedError lists what the tosa form lacks,
    InvalidModelError names an operator whose operands are not those of TOSA 1.0."""
    reasons: list[Reason] = []
    for index, function in enumerate(module.functions):
        for value in function.inputs:
            stated = value.info.get("attributes", {})
            if "tosa.tensor_name" in stated:
                value.name = str(stated["tosa.tensor_name"])
                rest = {key: item for key, item in stated.items() if key != "tosa.tensor_name"}
                info = {key: item for key, item in value.info.items() if key != "attributes"}
                value.info = info | ({"attributes": rest} if rest else {})
        for value in function.values():
            if value.type.element == _I48:
                value.type = TensorType(value.type.shape, i64)
        _function(function, reasons)
        _place(module, index, function)
    if reasons:
        what = f"{len(reasons)} operator(s) of the text cannot be read:"
        raise UnsupportedError(what, reasons, remedy=AS_1_0)


def with_attributes(module: Module) -> None:
    """Operands of TOSA's operators that are constants become attributes, in a module of other operators, too.
    InvalidModelError as of `to_tosa_form`."""
    for function in module.functions:
        for op in function.ops:
            if op.name.startswith("tosa.") and op_class(op.name) is not None and not op.regions:
                _operator(op, {})


def _function(function: Function, reasons: list[Reason]) -> None:
    shapes: dict[Value, np.ndarray] = {}
    ops: list[Op] = []
    for op in function.ops:
        if op.name == _SHAPE_OP:
            shapes[op.result] = np.asarray(op.attributes.get("values", ()), np.int64).reshape(-1)
            continue
        if op_class(op.name) is None or op.regions:
            what = f"{op.name} {'with regions' if op.regions else 'is no operator of the tosa form'}"
            reasons.append(Reason.at(op.location, what, remedy="read the .tosa file instead"))
        else:
            _operator(op, shapes)
        ops.append(op)
    function.ops = ops
    named = function.info.get("result_attributes") or ()
    for value, stated in zip(function.outputs, named, strict=False):
        if "tosa.tensor_name" in stated and not value.name:
            value.name = str(stated["tosa.tensor_name"])
    function.info = {key: item for key, item in function.info.items() if key != "result_attributes"}


def _place(module: Module, index: int, function: Function) -> None:
    """Names results as their locations say, if no other tensor is called so, and gives a place to operators that have
    none."""
    taken = {value.name for value in function.values()}
    for position, op in enumerate(function.ops):
        if op.location is not None and (op.location.file or op.location.opcode):
            continue
        named = "" if op.location is None else op.location.tensor
        if op.results and named not in taken:
            op.result.name = named
            taken.add(named)
        tensor = op.result.name if op.results else ""
        op.location = Location(module.source, index, position, op.name.removeprefix("tosa.").upper(), tensor)


def _operator(op: Op, shapes: Mapping[Value, np.ndarray]) -> None:
    wanted = slots(type(op))
    unsigned = {key for key in ("input_unsigned", "output_unsigned") if op.attributes.get(key) is True}
    if "input_unsigned" in unsigned:
        _as_unsigned(op.operand(0))
    if "output_unsigned" in unsigned:
        _as_unsigned(op.result)
    op.attributes = {key: _plain(key, item) for key, item in op.attributes.items() if key not in _MADE}
    if not any(slot.type for slot in wanted) or len(op.operands) != len(wanted):
        return
    pairs = list(zip(wanted, op.operands, strict=True))
    op.operands = [value for slot, value in pairs if not slot.type]
    for slot, value in pairs:
        if slot.type and value is not None:
            _attribute(op, slot, value, shapes, unsigned)


def _attribute(op: Op, slot: Slot, value: Value, shapes: Mapping[Value, np.ndarray], unsigned: set[str]) -> None:
    """Gives an op the attribute that a constant operand stands for."""
    known = shapes.get(value)
    if known is None and not value.is_constant:
        raise InvalidModelError(op.location or op.name, f"the operand '{slot.name}' is not a constant")
    array = np.asarray(value.array if known is None else known).reshape(-1)
    element = constant_type(op, slot)
    if known is None and value.type.storage != signless(element):
        raise InvalidModelError(op.location or op.name, f"'{slot.name}' is {value.type.storage}, not {element}")
    flag = slot.name.replace("_zp", "_unsigned")
    made = attribute(slot, array, value.type.storage, unsigned=flag in unsigned)
    if slot.name != "shape":  # the result's type says it
        op.attributes[slot.name] = made


def _as_unsigned(value: Value) -> None:
    storage = value.type.storage
    if value.type.element in _UNSIGNED:
        value.type = TensorType(value.type.shape, _UNSIGNED[storage])


def _plain(key: str, item: Any) -> Any:
    """An attribute as the tosa form has it."""
    if isinstance(item, Opaque):
        word = item.text.partition("<")[2].removesuffix(">")
        if key == "mode":
            return _OURS.get(word, word)
        return "SINGLE_ROUND" if word == "INEXACT_ROUND" else word
    if isinstance(item, (TypedInt, TypedFloat)):
        return item.plain
    return tuple(item.tolist()) if isinstance(item, np.ndarray) and item.ndim == 1 and key not in _ARRAYS else item


_ARRAYS: Final = ("multiplier", "shift", "table", "values")
