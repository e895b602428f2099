"""Variables and control flow.

VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE, and variables of the integer form, on TOSA's variables. IF and
WHILE as COND_IF and WHILE_LOOP. CALL and STABLEHLO_COMPOSITE as the ops of the function, in place.

A variable has a name and an initial value: what the functions that CALL_ONCE runs assign to it, else zeros (TFLite
fails to read what was never assigned). TOSA 1.0 has variables of int8 and of floats; booleans are kept as int8, int16
and int32 as their bytes, the low one first, in a separate dim.

Functions that COND_IF and WHILE_LOOP name take and give signed tensors, as the operators around them do, and the
variables that they use. Kernels: var_handle.cc, read_variable.cc, assign_variable.cc, call_once.cc, if.cc, while.cc,
stablehlo_composite.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.analysis.known import check_starts, constant_behind, variable_name
from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.effects import is_handle
from tflq.dialects.tfl.stablehlo import StablehloComposite
from tflq.dialects.tfl.state import AssignVariable, Call, CallOnce, If, ReadVariable, VarHandle, While
from tflq.dialects.tosa.elementwise import BitwiseAnd, BitwiseOr
from tflq.dialects.tosa.movement import CondIf, Variable, VariableRead, VariableWrite, WhileLoop
from tflq.formats.tosa.lowering.context import Scope, Tosa, Use, joined, lowering, part, uses
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, i1, i8, i16, i32, i64


@lowering(VarHandle)
def var_handle(op: VarHandle, t: Tosa) -> Value:
    """No operator: a variable is known by its name."""
    handle = Value(op.result.type)
    t.handles[handle] = variable_name(op)
    return handle


@lowering(CallOnce)
def call_once(op: CallOnce, t: Tosa) -> list[Value]:
    """No operator: the function assigns initial values."""
    t.need("variable", "CALL_ONCE")
    if t.scope is not None:
        raise Refused("a branch or a loop runs it, and TOSA's variables have their initial values from the start")
    check_starts(t.module, op.init_subgraph_index, t.variable_values)
    return []


@lowering(ReadVariable)
def read_variable(op: ReadVariable, t: Tosa) -> Value:
    return variable_value(t, _declared(op, t, op.result), t.type(op.result))


@lowering(AssignVariable)
def assign_variable(op: AssignVariable, t: Tosa) -> list[Value]:
    hold(t, _declared(op, t, op.value), t.value(op.value))
    return []


@lowering(Variable)
def variable(op: Variable, t: Tosa) -> list[Value]:
    """Its initial value, as the bytes it is kept in."""
    t.need("variable", "the state of an operator")
    start = op.initial_value
    type = _variable_type(t, start)
    array = t.value(start).array
    t.variables[op.variable] = t.constant(_bytes(array) if type.element == i8 else array, type.storage)
    return []


@lowering(VariableRead)
def read(op: VariableRead, t: Tosa) -> Value:
    return variable_value(t, op.variable, t.type(op.result))


@lowering(VariableWrite)
def write(op: VariableWrite, t: Tosa) -> list[Value]:
    hold(t, op.variable, t.value(op.input))
    return []


def _fetched(t: Tosa, name: str, result: Value) -> Value:
    """The value of a variable, put together from its bytes."""
    storage, shape = t.storage(result), _shape(result)
    stored = t.op(VariableRead, [], [_variable_type(t, result)], {"name": name}).result
    if storage == i1:
        return t.cast(stored, i1)
    if storage not in (i16, i32):
        return stored
    total: Value | None = None
    count = storage.bits // 8
    one = (1,) * max(1, len(shape))
    for k in range(count):
        byte = t.reshape(t.cast(part(t, stored, 0, k, 1), i32), shape or (1,))
        if k < count - 1:
            byte = t.emit(BitwiseAnd, [byte, t.constant(np.full(one, 255))])
        if k:
            byte = t.logical_left_shift(byte, t.constant(np.full(one, 8 * k)))
        total = byte if total is None else t.emit(BitwiseOr, [total, byte])
    return t.cast(t.reshape(total or stored, shape), storage)


def _store(t: Tosa, name: str, x: Value) -> None:
    """Writes a variable, taken apart into bytes, in the place of an earlier write of the function."""
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
    """The name of the variable that an operator reads or writes; it is declared for such values."""
    t.need("variable", op.short_name.upper())
    name = t.handles.get(t.value(op.resource))
    if name is None:
        raise Refused("the variable is not named by a VAR_HANDLE")
    _declare(t, name, value)
    return name


def _declare(t: Tosa, name: str, value: Value) -> None:
    """Gives the module a variable for such values. Refused if it has one of that name for others."""
    type = _variable_type(t, value)
    if name not in t.variables:
        initial = _initial(t, name, value)
        start = sized.full(_shape(value), t.zero_point(value), t.storage(value).dtype) if initial is None else initial
        t.variables[name] = t.constant(_bytes(start) if type.element == i8 else start, type.storage)
    if t.variables[name].type != type:
        others = {a.value.type: a.value for a in t.accesses.named(name) if a.value.type != value.type}
        listed = ", ".join(f"'{v.name}' is {v.type}" for v in (value, *others.values()))
        raise Refused(f"the variable '{name}' holds values of more than one type: {listed}")


def scope_of(t: Tosa, functions: Sequence[int], operands: Sequence[Value | None]) -> Scope:
    """The variables that functions use when they are called on operands; each is declared."""
    handles = tuple(None if v is None or not is_handle(v) else t.handles.get(t.value(v)) for v in operands)
    uses_of: dict[str, list[Use]] = {}
    for index in functions:
        for name, use in uses(t.module, index, handles).items():
            _declare(t, name, use.like)
            uses_of.setdefault(name, []).append(use)
    inputs = tuple((name, t.type(uses_of[name][0].like)) for name in sorted(uses_of))
    return Scope(handles, inputs, tuple(name for name, _ in inputs if any(use.written for use in uses_of[name])))


def variable_value(t: Tosa, name: str, type: TensorType) -> Value:
    """The value of a variable at this place."""
    if name not in t.variable_values:
        t.variable_values[name] = _fetched(t, name, Value(type))
    return t.variable_values[name]


def hold(t: Tosa, name: str, value: Value) -> None:
    """Gives a variable another value, which an entry point writes."""
    t.variable_values[name] = value
    if t.scope is None:
        _store(t, name, value)


def _shape(value: Value) -> tuple[int, ...]:
    if not value.type.is_static:
        raise Refused("a variable of an unknown shape has no form in TOSA")
    return value.type.sizes


def _variable_type(t: Tosa, value: Value) -> TensorType:
    """The type of a variable for such values."""
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
    """The last value that CALL_ONCE assigns to a variable: stored integers, signed. Refused if two functions that it
    runs assign different values: which of them holds depends on what a caller runs first."""
    started = {access.once: access.value for access in t.accesses.named(name) if access.once is not None}
    last: tuple[Value, np.ndarray] | None = None
    for source in started.values():
        start = constant_behind(source)
        if start is None:
            continue  # CALL_ONCE is refused
        begins = f"the variable '{name}' starts as"
        if t.storage(start) != t.storage(value) or _shape(start) != _shape(value):
            raise Refused(f"{begins} '{source.name}', {source.type}, and holds '{value.name}', {value.type}")
        array = t.value(start).array
        if last is not None and not np.array_equal(last[1], array):
            raise Refused(f"{begins} '{last[0].name}' in one function, as '{source.name}' in another")
        last = source, array
    return None if last is None else last[1]


# Control flow and calls.


@lowering(If)
def cond_if(op: If, t: Tosa) -> list[Value]:
    """One of two functions."""
    t.need("controlflow", "IF")
    then, otherwise = op.then_subgraph_index, op.else_subgraph_index
    inputs = _plain_operands(op.operands, t)
    for index in (then, otherwise):
        _fits(t, index, op.inputs, op.results)
    scope = scope_of(t, [then, otherwise], op.inputs)
    if any(is_handle(v) for v in op.results):
        raise Refused("it gives a handle, and a variable must be known by its name")
    state = [variable_value(t, name, type) for name, type in scope.inputs]
    graphs = {"then_graph": t.callee(then, scope), "else_graph": t.callee(otherwise, scope)}
    types = dict(scope.inputs)
    result_types = [*(t.type(v) for v in op.results), *(types[name] for name in scope.returned)]
    results = t.op(CondIf, [*inputs, *state], result_types, graphs).results
    for name, value in zip(scope.returned, results[len(op.results) :], strict=True):
        hold(t, name, value)
    return results[: len(op.results)]


@lowering(While)
def while_loop(op: While, t: Tosa) -> list[Value]:
    """One function as long as another says so. The variables that either uses are carried along."""
    t.need("controlflow", "WHILE")
    condition, body = op.cond_subgraph_index, op.body_subgraph_index
    inputs = _plain_operands(op.operands, t)
    _fits(t, condition, op.operands, None)
    _fits(t, body, op.operands, op.results)
    test = scope_of(t, [condition], op.operands)
    if test.returned:
        raise Refused(f"its condition writes the variable '{test.returned[0]}'")
    scope = scope_of(t, [condition, body], op.operands)
    names = tuple(name for name, _ in scope.inputs)
    state = [variable_value(t, name, type) for name, type in scope.inputs]
    graphs = {
        "cond_graph": t.callee(condition, replace(scope, returned=())),
        "body_graph": t.callee(body, replace(scope, returned=names)),
    }
    plain = [v for v in op.results if not is_handle(v)]
    types = [*(t.type(v) for v in plain), *(type for _, type in scope.inputs)]
    results = t.op(WhileLoop, [*inputs, *state], types, graphs).results
    for name, value in zip(names, results[len(plain) :], strict=True):
        if name in scope.returned:
            hold(t, name, value)
    values = iter(results)
    return [
        t.value(x) if x is not None and is_handle(v) else next(values)
        for x, v in zip(op.operands, op.results, strict=True)
    ]


def _plain_operands(operands: Sequence[Value | None], t: Tosa) -> list[Value]:
    """The operands without handles. Refused if one is of 64 bits."""
    for value in operands:
        if value is not None and value.type.storage == i64:
            raise Refused(f"'{value.name}', which it takes, is of 64 bits")
    return [t.value(v) for v in operands if v is not None and not is_handle(v)]


def _fits(t: Tosa, index: int, operands: Sequence[Value | None], results: Sequence[Value] | None) -> None:
    """Refused if a function takes or gives other types than the operator that calls it."""
    function = t.module.functions[index]
    inputs = [v for v in operands if v is not None]
    pairs = [(inputs, function.inputs), (results or [], function.outputs if results is not None else [])]
    for side, other in pairs:
        if len(side) != len(other):
            raise Refused(f"'{function.name}', which it calls, has {len(other)} values for {len(side)}")
        for value, inner in zip(side, other, strict=True):
            if not _alike(t.type(value), t.type(inner)) or t.offset(value) != t.offset(inner):
                raise Refused(
                    f"'{value.name}' is {value.type}, and in the function called {inner.type}; TOSA needs equal types"
                )


def _alike(a: TensorType, b: TensorType) -> bool:
    """Whether two types are equal, as far as they are known."""
    if a.element != b.element or a.shape is None or b.shape is None:
        return a.element == b.element
    pairs = zip(a.shape, b.shape, strict=False)
    return len(a.shape) == len(b.shape) and all(d == e or d is None or e is None for d, e in pairs)


@lowering(Call, StablehloComposite)
def inlined(op: Call | StablehloComposite, t: Tosa) -> list[Value]:
    """The ops of its function."""
    index = op.subgraph if isinstance(op, Call) else op.decomposition_subgraph_index
    _fits(t, index, op.operands, op.results)
    function, location = t.module.functions[index], t.location
    operands = [t.value(v) for v in op.present_operands]
    for argument, operand in zip(function.inputs, operands, strict=True):
        t.set(argument, operand)
    t.lower_ops(function.ops)
    t.location = location
    return [t.value(v) for v in function.outputs]
