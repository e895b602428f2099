"""Variables and calls. A variable becomes an argument, with the value that it starts as, and a result: what it holds
after a run, which a caller gives to the next one. Functions are lowered in the place of their call.

A variable starts as what the functions that CALL_ONCE runs assign to it, else as zeros (TFLite fails to read what was
never assigned). Kernels: var_handle.cc, read_variable.cc, assign_variable.cc, call_once.cc, stablehlo_composite.cc.
"""

from __future__ import annotations

import numpy as np

from tflq import sized
from tflq.analysis.known import Accesses, check_starts, constant_behind, variable_name
from tflq.dialects.effects import is_handle
from tflq.dialects.tfl.stablehlo import StablehloComposite
from tflq.dialects.tfl.state import AssignVariable, Call, CallOnce, ReadVariable, VarHandle
from tflq.dialects.tosa.movement import Variable, VariableRead, VariableWrite
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import TensorType
from tflq.onnx.context import Held, Made, Onnx, lowering, static


@lowering(Variable)
def variable(op: Variable, t: Onnx) -> list[Made]:
    t.state.starts[op.variable] = _elements(op.initial_value)
    return []


@lowering(VariableRead)
def read(op: VariableRead, t: Onnx) -> Held:
    return held(t, op.variable, op.result)


@lowering(VariableWrite)
def write(op: VariableWrite, t: Onnx) -> list[Made]:
    _declare(t, op.variable, op.input)
    t.state.held[op.variable] = t.held(op.input)
    return []


@lowering(VarHandle)
def var_handle(op: VarHandle, t: Onnx) -> Value:
    """No operator: a variable is known by its name."""
    handle = Value(op.result.type)
    t.state.handles[handle] = variable_name(op)
    return handle


@lowering(CallOnce)
def call_once(op: CallOnce, t: Onnx) -> list[Made]:
    """No operator: the function assigns initial values."""
    check_starts(t.module, op.init_subgraph_index, t.state.held)
    return []


@lowering(ReadVariable)
def read_variable(op: ReadVariable, t: Onnx) -> Held:
    return held(t, _name(op, t), op.result)


@lowering(AssignVariable)
def assign_variable(op: AssignVariable, t: Onnx) -> list[Made]:
    name = _name(op, t)
    _declare(t, name, op.value)
    t.state.held[name] = t.held(op.value)
    return []


def held(t: Onnx, name: str, like: Value) -> Held:
    """What a variable holds at this place."""
    _declare(t, name, like)
    return t.state.held[name]


def _declare(t: Onnx, name: str, like: Value) -> None:
    """Gives the function an argument for a variable that holds such values. Refused if it holds others, too."""
    type = TensorType(static(like.type.shape), like.type.storage)
    argument = t.state.arguments.get(name)
    if argument is None:
        argument = t.state.arguments[name] = Value(type, name, info={"start": _start(t, name, type)})
        t.state.held.setdefault(name, t.made(argument, like))
    if argument.type != type:
        raise Refused(f"the variable '{name}' holds values of more than one type: {argument.type} and {type}")


def _name(op: ReadVariable | AssignVariable, t: Onnx) -> str:
    """The name of the variable that an operator reads or writes."""
    handle = next(iter(t.held(op.resource).forms.values()))
    if handle not in t.state.handles:
        raise Refused("the variable is not named by a VAR_HANDLE")
    return t.state.handles[handle]


def _start(t: Onnx, name: str, type: TensorType) -> np.ndarray:
    """The value that a variable starts as. Refused if two functions that CALL_ONCE runs assign different ones: which
    of them holds depends on what a caller runs first."""
    found = t.state.starts.get(name)
    accesses = t.module.main.once("accesses", lambda: Accesses(t.module))
    for access in accesses.named(name):
        source = None if access.once is None else constant_behind(access.value)
        if source is None:
            continue
        array = _elements(source)
        if found is not None and not np.array_equal(found, array):
            raise Refused(f"the variable '{name}' starts as different values in two functions")
        found = array
    if found is None:
        return sized.zeros(static(type.shape), type.storage.dtype)
    if found.shape != type.shape or found.dtype != type.storage.dtype:
        raise Refused(f"the variable '{name}' starts as {found.dtype} {found.shape}, and holds {type}")
    return found


def _elements(value: Value) -> np.ndarray:
    return np.ascontiguousarray(value.array)


@lowering(Call, StablehloComposite)
def inlined(op: Call | StablehloComposite, t: Onnx) -> list[Made]:
    """The ops of its function."""
    index = op.subgraph if isinstance(op, Call) else op.decomposition_subgraph_index
    function, location = t.module.functions[index], t.location
    for argument, operand in zip(function.inputs, op.reads, strict=True):
        if is_handle(argument) or argument.type.storage != operand.type.storage:
            raise Refused(f"'{operand.name}' is {operand.type}, and in the function called {argument.type}")
        t.record(argument, t.held(operand))
    t.lower_ops(function.ops)
    t.location = location
    return [t.held(v) for v in function.outputs]
