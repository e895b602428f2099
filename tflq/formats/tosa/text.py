"""A module in the tosa form → MLIR text of the `tosa` dialect, and back.

The module is brought into the form that MLIR has, then printed in the standard form (`tflq.ir.text.printer`):
compile-time-constant operands are `tosa.const` and `tosa.const_shape` before their first use, equal ones shared;
regions of control flow take nothing from around them, so each has its own constants. A function per entry point, called
by its signature's key; what control flow calls becomes regions. Types are signless, i48 stands for i64. Functions'
arguments have the tensors' names, inner values as locations.

Back (`to_tosa_form`, after the text has been parsed): compile-time-constant operands become attributes, enumerations
words, a tensor that RESCALE reads or makes as unsigned is of an unsigned type, and i48 is i64. An operator that is in
the tosa form already stays as it is. Control flow with regions and variables are not read: a .tosa file has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

from tflq.base.errors import InvalidModelError, Reason, UnsupportedError, operators
from tflq.dialects.effects import callees
from tflq.dialects.quant import Scast
from tflq.dialects.tosa.movement import Rescale, Variable
from tflq.formats.tosa.check import Requirements, requirements
from tflq.formats.tosa.operands import (
    AS_1_0,
    GRAPHS,
    MODES_READ,
    UNSIGNED,
    Accumulates,
    Constant,
    Slot,
    accumulator,
    attribute,
    constant_type,
    is_unsigned,
    operands,
    reached,
    signless,
    slots,
)
from tflq.formats.tosa.rules import Target
from tflq.ir.attributes import Opaque, TypedArray, TypedFloat, TypedInt
from tflq.ir.module import Function, Module
from tflq.ir.ops import Block, Location, Op, Region, Value, op_class
from tflq.ir.text.lexer import TOSA_CONSTANT
from tflq.ir.text.print_types import type_text
from tflq.ir.text.printer import standard_pieces
from tflq.ir.types import BareType, ScalarType, Shape, TensorType, element_storage, i32, i64, named_scalar, scalar_type
from tflq.numerics.kernel_sets import IN_FILE, Exactness

_NOT_WRITTEN: Final = GRAPHS | {"input_range"}
"""Hints, and functions, which become regions."""
_ENUMS: Final = {"mode": "resize_mode", "rounding_mode": "rounding_mode"}
_I48: Final = named_scalar("i48")
_NAME: Final = "tosa.tensor_name"
_SHAPE_OP: Final = "tosa.const_shape"
_DERIVED: Final = frozenset({"acc_type", "input_unsigned", "local_bound", "nan_mode", "output_unsigned"})
"""Attributes that follow from types."""
_ARRAYS: Final = ("multiplier", "shift", "table", "values")


def mlir_text(module: Module, target: Target | None = None, *, function: int | None = None) -> str:
    """The text of a module; of one of its entry points if `function` says which."""
    return "".join(mlir_pieces(module, target, function=function))


def mlir_pieces(module: Module, target: Target | None = None, *, function: int | None = None) -> Iterator[str]:
    """The text in pieces, each an operator or a part of a constant at most."""
    target = target or Target()
    entries = _entries(module)
    chosen = {i: name for i, name in entries.items() if function in (None, i)} or {function or 0: "main"}
    part = Module([*reached(module, chosen).values()])
    needs = requirements(part, target)
    functions = [_function(module, module.functions[i], name) for i, name in chosen.items()]
    exactness = Exactness.read(module.metadata_of(IN_FILE))
    comment = f"{needs}\n// kernels of {exactness.name}: {exactness}" if exactness else str(needs)
    yield from standard_pieces(Module(functions, info=_target_env(needs)), comment, _variables(part))


def _entries(module: Module) -> dict[int, str]:
    """The symbol of each entry point: those that signatures name, or the first function."""
    out: dict[int, str] = {}
    for signature in module.signatures or ():
        name = re.sub(r"[^\w.$]", "_", signature.key or "main", flags=re.ASCII)
        name = f"_{name}" if name[0].isdigit() else name
        while name in out.values():
            name += "_"
        out.setdefault(signature.function, name)
    return out or {0: "main"}


def _target_env(needs: Requirements) -> Mapping[str, Any]:
    """The attribute that tells validators what a module needs.

    MLIR cannot read an attribute with an empty list; without one it takes both profiles and no extensions.
    """
    if not needs.extensions:
        return {}
    env = (
        f'#tosa.target_env<specification_version = "{needs.specification}", level = "{needs.level}", '
        f"profiles = [{', '.join(needs.profiles)}], extensions = [{', '.join(needs.extensions)}]>"
    )
    return {"attributes": {"tosa.target_env": Opaque(env)}}


def _variables(module: Module) -> list[Op]:
    """One declaration per name."""
    declared = {op.variable: op.initial_value for op in module.ops() if isinstance(op, Variable)}
    return [Op(Variable.op_name, [], [], _declaration(name, initial)) for name, initial in declared.items()]


def _declaration(name: str, initial: Value) -> dict[str, Any]:
    shape = initial.type.dims
    return {
        "sym_name": name,
        "var_shape": Opaque(f"dense<{list(shape)}> : tensor<{len(shape)}xindex>"),
        "type": _element(initial.type.storage),
        "initial_value": elements(initial),
    }


def _function(module: Module, function: Function, name: str) -> Function:
    """A function as MLIR has it. Comments tell a caller what the stored integers are."""
    comments = []
    for side, values in (("argument", function.inputs), ("result", function.outputs)):
        for i, value in enumerate(values):
            quantized = value.info.get("quantized")
            words = [] if quantized is None else [type_text(quantized)]
            words += ["unsigned"] if is_unsigned(value.type) else []
            if words:
                comments.append(f"{side} {i}: {', '.join(words)}")
    body = _Body(module, function)
    for value, argument in zip(function.inputs, body.arguments, strict=True):
        argument.info = {"attributes": _named(value)}
    info = {"comments": comments, "result_attributes": [_named(value) for value in function.outputs]}
    return Function(name, body.arguments, body.outputs, body.ops, info=info)


def _named(value: Value) -> dict[str, Any]:
    return {_NAME: value.name} if value.name else {}


class _Body:
    """A function's values and ops, in a function or a region, with the constants it has."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.arguments = [Value(_type(value.type)) for value in function.inputs]
        self.ops: list[Op] = []
        self._values = dict(zip(function.inputs, self.arguments, strict=True))
        self._constants: dict[tuple[ScalarType, tuple[int, ...], bytes], Value] = {}
        for op in function.ops:
            if not isinstance(op, Variable):
                self._op(op)
        self.outputs = [self._value(value) for value in function.outputs]

    def _op(self, op: Op) -> None:
        inputs: list[Value | None] = [
            self._constant(v) if isinstance(v, Constant) else self._value(v) for v in operands(op)
        ]
        results = [Value(_type(value.type), value.name) for value in op.results]
        self._values.update(zip(op.results, results, strict=True))
        regions = [self._region(self.module.functions[called]) for called in callees(op)]
        self.ops.append(Op(op.name, inputs, results, _attributes(op), regions=regions))

    def _region(self, function: Function) -> Region:
        body = _Body(self.module, function)
        return Region([Block(body.arguments, [*body.ops, Op("tosa.yield", [*body.outputs], [])])])

    def _value(self, value: Value) -> Value:
        """The value in the place of a module's value; a constant is emitted at its first use."""
        result = self._values.get(value)
        if result is None:
            result = self._values[value] = Value(_type(value.type), value.name)
            self.ops.append(Op(TOSA_CONSTANT, [], [result], {"values": elements(value)}))
        return result

    def _constant(self, constant: Constant) -> Value:
        """A compile-time-constant operand."""
        array, element = constant.array, _element(constant.element)
        key = element, array.shape, array.tobytes()
        result = self._constants.get(key)
        if result is None:
            type = _tensor(array.shape, element)
            result = self._constants[key] = Value(_shape_type(array.size) if constant.is_shape else type)
            values = {"values": TypedArray.of(array, element, type)}
            self.ops.append(Op(_SHAPE_OP if constant.is_shape else TOSA_CONSTANT, [], [result], values))
        return result


@cache
def _element(element: ScalarType) -> ScalarType:
    """i48 for i64, which stands for it; i8 for ui8."""
    return _I48 if element is i64 and _I48 is not None else signless(element)


@lru_cache(maxsize=4096)
def _tensor(shape: Shape, element: ScalarType) -> TensorType:
    return TensorType(shape, element)


@lru_cache(maxsize=4096)
def _shape_type(size: int) -> TensorType:
    return BareType.of(scalar_type(f"!tosa.shape<{size}>", 0, "opaque", ""))


def _type(type: TensorType) -> TensorType:
    return _tensor(type.shape, _element(element_storage(type.element)))


def elements(value: Value) -> TypedArray:
    """The elements of a constant, as bits where numpy lacks their type."""
    storage = value.type.storage
    assert value.buffer is not None
    if storage.bits < 8:
        array = value.array
    else:
        shown = signless(storage)
        dtype = shown.dtype if shown.numpy else np.dtype(f"u{storage.bits // 8}")
        array = value.buffer.data.view(dtype).reshape(value.type.sizes)
    type = _type(value.type)
    return TypedArray.of(array, type.element, type)


@cache
def _unwritten(kind: type[Op]) -> frozenset[str]:
    return _NOT_WRITTEN | {slot.name for slot in slots(kind) if slot.type}


def _attributes(op: Op) -> dict[str, Any]:
    """Attributes that are not operands in TOSA, and those that follow from types."""
    kind: Any = type(op)
    unwritten = _unwritten(kind)
    attributes = {key: _attribute(op, key, value) for key, value in op.attributes.items() if key not in unwritten}
    if isinstance(op, Accumulates):
        attributes["acc_type"] = _element(accumulator(op))
    if isinstance(op, Rescale):
        attributes |= {"input_unsigned": is_unsigned(op.input.type), "output_unsigned": is_unsigned(op.result.type)}
    return attributes


def _attribute(op: Op, key: str, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if key in _ENUMS:
        return Opaque(f"#tosa.{_ENUMS[key]}<{value}>")
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list):
        element = i32 if key == "perms" else i64
        return TypedArray.of(np.array(value, element.dtype), element)
    if key in ("min_val", "max_val"):
        storage = op.result.type.storage
        return TypedFloat(value, storage) if storage.is_float else TypedInt(value, _element(storage))
    return TypedInt(value, i32)


# MLIR text → the tosa form.


def to_tosa_form(module: Module) -> None:
    """Changes a module of TOSA's operators in place. UnsupportedError lists what the tosa form lacks,
    InvalidModelError names an operator whose operands are not those of TOSA 1.0."""
    reasons: list[Reason] = []
    for index, function in enumerate(module.functions):
        for value in function.inputs:
            attributes = value.info.get("attributes", {})
            if _NAME in attributes:
                value.name = str(attributes[_NAME])
                rest = {key: item for key, item in attributes.items() if key != _NAME}
                info = {key: item for key, item in value.info.items() if key != "attributes"}
                value.info = info | ({"attributes": rest} if rest else {})
        for value in function.values():
            if value.type.element == _I48:
                value.type = TensorType(value.type.shape, i64)
        _from_text_function(function, reasons)
        _place(module, index, function)
    if reasons:
        what = f"cannot read {operators(len(reasons))} of the text:"
        raise UnsupportedError(what, reasons, remedy=AS_1_0)


def with_attributes(module: Module) -> None:
    """Operands of TOSA's operators that are constants become attributes, in a module of other operators, too.
    InvalidModelError as of `to_tosa_form`."""
    for function in module.functions:
        for op in function.ops:
            if op.name.startswith("tosa.") and op_class(op.name) is not None and not op.regions:
                _operator(op, {})


def with_stored_rescales(module: Module) -> None:
    """Puts a `quant.scast` between each `tosa.rescale` and the quantized tensors that it reads or writes, as functions
    have them in their headers: its attributes say all of their parameters that it needs."""
    for function in module.functions:
        ops: list[Op] = []
        stored: dict[Value, Value] = {}
        for op in function.ops:
            if not isinstance(op, Rescale) or not any(value.type.quantized for value in op.tensors):
                ops.append(op)
                continue
            for value in (value for value in op.present_operands if value.type.quantized):
                if value not in stored:
                    stored[value] = Value(value.type.stripped())
                    ops.append(Op(Scast.op_name, [value], [stored[value]]))
            op.operands = [value and stored.get(value, value) for value in op.operands]
            ops.append(op)
            if op.output.type.quantized:
                whole, op.results = op.output, [Value(op.output.type.stripped(), producer=op)]
                ops.append(Op(Scast.op_name, list(op.results), [whole]))
        function.ops = ops


def _from_text_function(function: Function, reasons: list[Reason]) -> None:
    shapes: dict[Value, np.ndarray] = {}
    ops: list[Op] = []
    for op in function.ops:
        if op.name == _SHAPE_OP:
            shapes[op.result] = np.asarray(op.attributes.get("values", ()), np.int64).reshape(-1)
            continue
        if op_class(op.name) is None or op.regions:
            what = f"{op.name} {'with regions' if op.regions else 'is not an operator of the tosa form'}"
            reasons.append(Reason.at(op.location, what, remedy="read the .tosa file instead"))
        else:
            _operator(op, shapes)
        ops.append(op)
    function.ops = ops
    named = function.info.get("result_attributes") or ()
    for value, attributes in zip(function.outputs, named, strict=False):
        if _NAME in attributes and not value.name:
            value.name = str(attributes[_NAME])
    function.info = {key: item for key, item in function.info.items() if key != "result_attributes"}


def _place(module: Module, index: int, function: Function) -> None:
    """Names results as their locations say, if no other tensor is called so, and gives a place to operators that have
    none."""
    used = {value.name for value in function.values()}
    for position, op in enumerate(function.ops):
        if op.location is not None and (op.location.file or op.location.opcode):
            continue
        named = "" if op.location is None else op.location.tensor
        if op.results and named not in used:
            op.result.name = named
            used.add(named)
        tensor = op.result.name if op.results else ""
        op.location = Location(module.source, index, position, op.name.removeprefix("tosa.").upper(), tensor)


def _operator(op: Op, shapes: Mapping[Value, np.ndarray]) -> None:
    wanted = slots(type(op))
    unsigned = {key for key in ("input_unsigned", "output_unsigned") if op.attributes.get(key) is True}
    if isinstance(op, Rescale) and "input_unsigned" in unsigned:
        _as_unsigned(op.input)
    if "output_unsigned" in unsigned:
        _as_unsigned(op.result)
    op.attributes = {key: _plain(key, item) for key, item in op.attributes.items() if key not in _DERIVED}
    if not any(slot.type for slot in wanted) or len(op.operands) != len(wanted):
        return
    pairs = list(zip(wanted, op.operands, strict=True))
    op.operands = [value for slot, value in pairs if not slot.type]
    for slot, value in pairs:
        if slot.type and value is not None:
            _from_text_attribute(op, slot, value, shapes, unsigned)


def _from_text_attribute(
    op: Op, slot: Slot, value: Value, shapes: Mapping[Value, np.ndarray], unsigned: set[str]
) -> None:
    """Gives an op the attribute that a constant operand stands for."""
    known = shapes.get(value)
    if known is None and not value.is_constant:
        raise InvalidModelError(op.location or op.name, f"the operand '{slot.name}' is not a constant")
    array = np.asarray(value.array if known is None else known).reshape(-1)
    element = constant_type(op, slot)
    if known is None and value.type.storage != signless(element):
        raise InvalidModelError(op.location or op.name, f"'{slot.name}' is {value.type.storage}, not {element}")
    flag = slot.name.replace("_zp", "_unsigned")
    parsed = attribute(slot, array, value.type.storage, unsigned=flag in unsigned)
    if slot.name != "shape":  # the result's type says it
        op.attributes[slot.name] = parsed


def _as_unsigned(value: Value) -> None:
    storage = value.type.storage
    if value.type.element in UNSIGNED:
        value.type = TensorType(value.type.shape, UNSIGNED[storage])


def _plain(key: str, item: Any) -> Any:
    """An attribute as the tosa form has it."""
    if isinstance(item, Opaque):
        word = item.text.partition("<")[2].removesuffix(">")
        if key == "mode":
            return MODES_READ.get(word, word)
        return "SINGLE_ROUND" if word == "INEXACT_ROUND" else word
    if isinstance(item, (TypedInt, TypedFloat)):
        return item.plain
    return tuple(item.tolist()) if isinstance(item, np.ndarray) and item.ndim == 1 and key not in _ARRAYS else item
