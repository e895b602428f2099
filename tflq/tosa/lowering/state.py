"""VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE on TOSA's variables, and those of the integer form.

A variable has a name and an initial value: what the functions that CALL_ONCE runs assign to it, else zeros (TFLite
fails to read what was never assigned). TOSA 1.0 has variables of int8 and of floats; booleans are kept as int8, int16
and int32 as their bytes, the low one first, in a separate dim. Kernels: var_handle.cc, read_variable.cc,
assign_variable.cc, call_once.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.analysis.variables import accesses, is_handle, variable_name
from tflq.dialects.quant.casts import Scast
from tflq.dialects.tfl.control import CallOnce
from tflq.dialects.tfl.state import AssignVariable, ReadVariable, VarHandle
from tflq.dialects.tosa.bits import BitwiseAnd, BitwiseOr
from tflq.dialects.tosa.state import Variable, VariableRead, VariableWrite
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i1, i8, i16, i32
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.scopes import Scope, Use, uses
from tflq.tosa.lowering.shaping import joined, part

__all__ = ["held", "hold", "scope_of"]


@lowering(VarHandle)
def var_handle(op: VarHandle, t: Tosa) -> Value:
    """Nothing: a variable is found by its name."""
    handle = Value(op.result.type)
    t.handles[handle] = variable_name(op)
    return handle


@lowering(CallOnce)
def call_once(op: CallOnce, t: Tosa) -> list[Value]:
    """Nothing: what the function assigns is initial values."""
    t.need("variable", "CALL_ONCE")
    if t.scope is not None:
        raise Refused("a branch or a loop runs it, and TOSA's variables have their initial values from the start")
    for access in accesses(t.module, op.init_subgraph_index):
        if access.name in t.held:
            raise Refused(f"the variable '{access.name}' is used before it, and variables can only start as constants")
    for inner in t.module.functions[op.init_subgraph_index].ops:
        if isinstance(inner, AssignVariable):
            if _stored(inner.value) is None:
                raise Refused(f"'{inner.value.name}', which a variable starts as, is not a constant")
        elif not isinstance(inner, (VarHandle, Scast)):
            raise Refused(f"the function that it calls has {inner.name}, and variables can only start as constants")
    return []


@lowering(ReadVariable)
def read_variable(op: ReadVariable, t: Tosa) -> Value:
    return held(t, _declared(op, t, op.result), t.type(op.result))


@lowering(AssignVariable)
def assign_variable(op: AssignVariable, t: Tosa) -> list[Value]:
    return _write(t, _declared(op, t, op.value), op.value)


@lowering(Variable)
def variable(op: Variable, t: Tosa) -> list[Value]:
    """Its initial value, as the bytes it is kept in."""
    t.need("variable", "the state of an operator")
    start = op.initial_value
    type = _kept_type(t, start)
    array = t.value(start).array
    t.variables[op.variable] = t.constant(_bytes(array) if type.element == i8 else array, type.storage)
    return []


@lowering(VariableRead)
def read(op: VariableRead, t: Tosa) -> Value:
    return held(t, op.variable, t.type(op.result))


@lowering(VariableWrite)
def write(op: VariableWrite, t: Tosa) -> list[Value]:
    return _write(t, op.variable, op.input)


def _fetched(t: Tosa, name: str, result: Value) -> Value:
    """What a variable holds, put together from its bytes."""
    storage, shape = t.storage(result), _shape(result)
    kept = t.op(VariableRead, [], [_kept_type(t, result)], {"name": name}).result
    if storage == i1:
        return t.cast(kept, i1)
    if storage not in (i16, i32):
        return kept
    total: Value | None = None
    count = storage.bits // 8
    one = (1,) * max(1, len(shape))
    for k in range(count):
        byte = t.reshape(t.cast(part(t, kept, 0, k, 1), i32), shape or (1,))
        if k < count - 1:
            byte = t.emit(BitwiseAnd, [byte, t.constant(np.full(one, 255))])
        if k:
            byte = t.logical_left_shift(byte, t.constant(np.full(one, 8 * k)))
        total = byte if total is None else t.emit(BitwiseOr, [total, byte])
    return t.cast(t.reshape(total or kept, shape), storage)


def _write(t: Tosa, name: str, source: Value) -> list[Value]:
    """Makes a value what a variable holds."""
    hold(t, name, t.value(source))
    return []


def _store(t: Tosa, name: str, x: Value) -> None:
    """Writes a variable, taken apart into bytes. The last write of a function stays."""
    storage, shape = x.type.storage, _shape(x)
    if name in t.written:
        t.ops.remove(t.written[name])
    if storage == i1:
        x = t.cast(x, i8)
    elif storage in (i16, i32):
        wide, one = t.reshape(t.cast(x, i32), (1, *shape)), (1,) * (len(shape) + 1)
        shifts = [t.constant(np.full(one, 8 * k)) for k in range(storage.bits // 8)]
        x = joined(t, [t.cast(t.arithmetic_right_shift(wide, s), i8) for s in shifts], 0)
    t.written[name] = t.op(VariableWrite, [x], [], {"name": name})


def _declared(op: ReadVariable | AssignVariable, t: Tosa, value: Value) -> str:
    """The name of the variable that an operator reads or writes, which holds such values."""
    t.need("variable", op.short_name.upper())
    name = t.handles.get(t.value(op.resource))
    if name is None:
        raise Refused("the variable is not named by a VAR_HANDLE")
    _declare(t, name, value)
    return name


def _declare(t: Tosa, name: str, value: Value) -> None:
    """Gives the module a variable that holds such values. Refused if it has one of the name that holds others."""
    type = _kept_type(t, value)
    if name not in t.variables:
        initial = _initial(t, name, value)
        start = np.full(_shape(value), t.zero_point(value), t.storage(value).dtype) if initial is None else initial
        t.variables[name] = t.constant(_bytes(start) if type.element == i8 else start, type.storage)
    if t.variables[name].type != type:
        others = (a.value for a in t.accesses.named(name) if a.value.type != value.type)
        listed = ", ".join(f"'{v.name}' is {v.type}" for v in (value, *others))
        raise Refused(f"the variable '{name}' holds values of more than one type: {listed}")


def scope_of(t: Tosa, functions: Sequence[int], operands: Sequence[Value | None]) -> Scope:
    """The variables that functions called on operands use; each is declared."""
    handles = tuple(None if v is None or not is_handle(v) else t.handles.get(t.value(v)) for v in operands)
    found: dict[str, list[Use]] = {}
    for index in functions:
        for name, use in uses(t.module, index, handles).items():
            _declare(t, name, use.like)
            found.setdefault(name, []).append(use)
    given = tuple((name, t.type(found[name][0].like)) for name in sorted(found))
    return Scope(handles, given, tuple(name for name, _ in given if any(use.written for use in found[name])))


def held(t: Tosa, name: str, type: TensorType) -> Value:
    """What a variable holds that is declared."""
    if name not in t.held:
        t.held[name] = _fetched(t, name, Value(type))
    return t.held[name]


def hold(t: Tosa, name: str, value: Value) -> None:
    """Makes a value what a variable holds that is declared."""
    t.held[name] = value
    if t.scope is None:
        _store(t, name, value)


def _shape(value: Value) -> tuple[int, ...]:
    shape = value.type.shape
    if shape is None or None in shape:
        raise Refused("a variable of an unknown shape has no form in TOSA")
    return tuple(d or 0 for d in shape)


def _kept_type(t: Tosa, value: Value) -> TensorType:
    """The type of the variable that holds such values."""
    storage, shape = t.storage(value), _shape(value)
    if storage in (i16, i32):
        return TensorType((storage.bits // 8, *shape), i8)
    if not (storage in (i1, i8) or storage.is_float):
        raise Refused(f"TOSA has no variables of {storage}")
    return TensorType(shape, i8 if storage == i1 else storage)


def _bytes(array: np.ndarray) -> np.ndarray:
    """An array as the int8 that a variable keeps it in."""
    if array.dtype.itemsize == 1:
        return array.astype(np.int8)
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
    return np.moveaxis(little.reshape(*array.shape, 1).view(np.int8), -1, 0)


def _initial(t: Tosa, name: str, value: Value) -> np.ndarray | None:
    """What CALL_ONCE assigns to a variable, last: stored integers, signed. Refused if two functions that it runs assign
    different values: which one holds depends on what a caller runs first."""
    started = {access.once: access.value for access in t.accesses.named(name) if access.once is not None}
    last: tuple[Value, np.ndarray] | None = None
    for source in started.values():
        found = _stored(source)
        if found is None:
            continue  # CALL_ONCE is refused
        if t.storage(found) != t.storage(value) or _shape(found) != _shape(value):
            raise Refused(
                f"the variable '{name}' starts as '{source.name}', {source.type}, "
                f"and holds '{value.name}', {value.type}"
            )
        array = t.value(found).array
        if last is not None and not np.array_equal(last[1], array):
            raise Refused(
                f"the variable '{name}' starts as '{last[0].name}' in one function, as '{source.name}' in another"
            )
        last = source, array
    return None if last is None else last[1]


def _stored(value: Value) -> Value | None:
    """The constant that a value is, of whatever type."""
    while isinstance(value.producer, Scast):
        value = value.producer.input
    return value if value.is_constant else None
