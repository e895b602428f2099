"""A module in the tosa form → MLIR text of the `tosa` dialect.

The module is brought into the form that MLIR has, then printed in the standard form (`tflq.ir.printer`):
compile-time-constant operands are `tosa.const` and `tosa.const_shape` before their first use, equal ones shared;
regions of control flow take nothing from around them, so each has its own constants. A function per entry point, called
by its signature's key; what control flow calls becomes regions. Types are signless, i48 stands for i64. Functions'
arguments have the tensors' names, inner values as locations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

from tflq.dialects.calls import callees
from tflq.dialects.tosa.casts import Rescale
from tflq.dialects.tosa.state import Variable
from tflq.ir.attributes import Opaque, TypedArray, TypedFloat, TypedInt
from tflq.ir.core import Block, Function, Module, Op, Region, Value
from tflq.ir.print_types import type_text
from tflq.ir.printer import standard_pieces
from tflq.ir.types import BareType, ScalarType, Shape, TensorType, element_storage, i32, i64, named_scalar
from tflq.tosa.files.attributes import GRAPHS
from tflq.tosa.operands import Accumulates, Constant, accumulator, is_unsigned, operands, signless, slots
from tflq.tosa.requirements import Requirements, requirements
from tflq.tosa.target import Target

__all__ = ["elements", "mlir_pieces", "mlir_text"]

_NOT_WRITTEN: Final = GRAPHS | {"input_range"}
"""Hints, and functions, which become regions."""
_ENUMS: Final = {"mode": "resize_mode", "rounding_mode": "rounding_mode"}
_I48: Final = named_scalar("i48")
_NAME: Final = "tosa.tensor_name"


def mlir_text(module: Module, target: Target | None = None, *, function: int | None = None) -> str:
    """The text of a module; of one of its entry points if `function` says which."""
    return "".join(mlir_pieces(module, target, function=function))


def mlir_pieces(module: Module, target: Target | None = None, *, function: int | None = None) -> Iterator[str]:
    """The text in pieces, each an operator or a part of a constant at most."""
    target = target or Target()
    entries = _entries(module)
    chosen = {i: name for i, name in entries.items() if function in (None, i)} or {function or 0: "main"}
    called = _called(module, chosen)
    part = Module([module.functions[i] for i in called])
    needs = requirements(part, target)
    functions = [_function(module, module.functions[i], name) for i, name in chosen.items()]
    yield from standard_pieces(Module(functions, info=_target_env(needs)), str(needs), _variables(part))


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


def _called(module: Module, entries: Sequence[int] | dict[int, str]) -> list[int]:
    """Functions and those that control flow in them calls."""
    found, todo = dict.fromkeys(entries), list(entries)
    while todo:
        for op in module.functions[todo.pop()].ops:
            new = [index for index in callees(op) if index not in found]
            found.update(dict.fromkeys(new))
            todo += new
    return list(found)


def _target_env(needs: Requirements) -> Mapping[str, Any]:
    """What a module needs as the attribute that validators read.

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
    return [Op("tosa.variable", [], [], _declaration(name, initial)) for name, initial in declared.items()]


def _declaration(name: str, initial: Value) -> dict[str, Any]:
    shape = initial.type.shape or ()
    return {
        "sym_name": name,
        "var_shape": Opaque(f"dense<{list(shape)}> : tensor<{len(shape)}xindex>"),
        "type": _element(initial.type.storage),
        "initial_value": elements(initial),
    }


def _function(module: Module, function: Function, name: str) -> Function:
    """A function as MLIR has it. What a caller has to know of stored integers is in comments."""
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
        given: list[Value | None] = [
            self._constant(v) if isinstance(v, Constant) else self._value(v) for v in operands(op)
        ]
        results = [Value(_type(value.type), value.name) for value in op.results]
        self._values.update(zip(op.results, results, strict=True))
        regions = [self._region(self.module.functions[called]) for called in callees(op)]
        self.ops.append(Op(op.name, given, results, _attributes(op), regions=regions))

    def _region(self, function: Function) -> Region:
        body = _Body(self.module, function)
        return Region([Block(body.arguments, [*body.ops, Op("tosa.yield", [*body.outputs], [])])])

    def _value(self, value: Value) -> Value:
        """What stands for a value; a constant of the module is made when it is met first."""
        made = self._values.get(value)
        if made is None:
            made = self._values[value] = Value(_type(value.type), value.name)
            self.ops.append(Op("tosa.const", [], [made], {"values": elements(value)}))
        return made

    def _constant(self, constant: Constant) -> Value:
        """A compile-time-constant operand."""
        array, element = constant.array, _element(constant.element)
        key = element, array.shape, array.tobytes()
        made = self._constants.get(key)
        if made is None:
            type = _tensor(array.shape, element)
            made = self._constants[key] = Value(_shape_type(array.size) if constant.is_shape else type)
            values = {"values": TypedArray.of(array, element, type)}
            self.ops.append(Op("tosa.const_shape" if constant.is_shape else "tosa.const", [], [made], values))
        return made


@cache
def _element(element: ScalarType) -> ScalarType:
    """i48 for i64, which stands for it; i8 for ui8."""
    return _I48 if element is i64 and _I48 is not None else signless(element)


@lru_cache(maxsize=4096)
def _tensor(shape: Shape, element: ScalarType) -> TensorType:
    return TensorType(shape, element)


@lru_cache(maxsize=4096)
def _shape_type(size: int) -> TensorType:
    return BareType.of(ScalarType(f"!tosa.shape<{size}>", 0, "opaque", ""))


def _type(type: TensorType) -> TensorType:
    return _tensor(type.shape, _element(element_storage(type.element)))


def elements(value: Value) -> TypedArray:
    """The elements of a constant; those that numpy has no type for as bits."""
    storage = value.type.storage
    assert value.buffer is not None
    if storage.bits < 8:
        array = value.array
    else:
        held = storage.dtype if storage.numpy else np.dtype(f"u{storage.bits // 8}")
        array = value.buffer.data.view(held).reshape(tuple(d or 0 for d in value.type.shape or ()))
    type = _type(value.type)
    return TypedArray.of(array, type.element, type)


@cache
def _taken(kind: type[Op]) -> frozenset[str]:
    return _NOT_WRITTEN | {slot.name for slot in slots(kind) if slot.type}


def _attributes(op: Op) -> dict[str, Any]:
    """Attributes that are not operands in TOSA, and what types say."""
    kind: Any = type(op)
    taken = _taken(kind)
    made = {key: _attribute(op, key, value) for key, value in op.attributes.items() if key not in taken}
    if isinstance(op, Accumulates):
        made["acc_type"] = _element(accumulator(op))
    if isinstance(op, Rescale):
        made |= {"input_unsigned": is_unsigned(op.input.type), "output_unsigned": is_unsigned(op.result.type)}
    return made


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
