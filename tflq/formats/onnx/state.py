"""Variables, calls and control flow. A variable becomes an argument, with the value that it starts as, and a result:
what it holds after a run, which a caller gives to the next one. Functions are lowered in the place of their call.

A variable starts as what the functions that CALL_ONCE runs assign to it, else as zeros (TFLite fails to read what was
never assigned).

    IF       IF: a graph for each function, which reads what is outside of it; variables that one of them writes are
             further results
    WHILE    the condition on the operands; LOOP: the body, and the condition on what it gives; variables are carried

Kernels: var_handle.cc, read_variable.cc, assign_variable.cc, call_once.cc, if.cc, while.cc, stablehlo_composite.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.analysis.known import Accesses, check_starts, constant_behind, variable_name
from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.declare import Operator
from tflq.dialects.effects import is_handle
from tflq.dialects.tfl.stablehlo import StablehloComposite
from tflq.dialects.tfl.state import AssignVariable, Call, CallOnce, If, ReadVariable, VarHandle, While
from tflq.dialects.tosa.movement import Variable, VariableRead, VariableWrite
from tflq.formats.lowering import needed
from tflq.formats.onnx import dialect as onnx
from tflq.formats.onnx.context import Onnx, OnnxTensor, Result, Scope, TensorForm, lowering, static
from tflq.ir.module import Function
from tflq.ir.ops import Block, Op, Region, Value
from tflq.ir.types import TensorType, i1, i64


@lowering(Variable)
def variable(op: Variable, t: Onnx) -> list[Result]:
    t.state.starts[op.variable] = op.initial_value.array
    return []


@lowering(VariableRead)
def read(op: VariableRead, t: Onnx) -> OnnxTensor:
    return variable_tensor(t, op.variable, op.result)


@lowering(VariableWrite)
def write(op: VariableWrite, t: Onnx) -> list[Result]:
    _declare(t, op.variable, op.input)
    t.hold(op.variable, t.tensor(op.input))
    return []


@lowering(VarHandle)
def var_handle(op: VarHandle, t: Onnx) -> Value:
    """No operator: a variable is known by its name."""
    handle = Value(op.result.type)
    t.state.handles[handle] = variable_name(op)
    return handle


@lowering(CallOnce)
def call_once(op: CallOnce, t: Onnx) -> list[Result]:
    """No operator: the function assigns initial values."""
    if t.scope.outer is not None:
        raise Refused("a branch or a loop runs it, and variables have their first values from the start")
    check_starts(t.module, op.init_subgraph_index, t.state.arguments)
    return []


@lowering(ReadVariable)
def read_variable(op: ReadVariable, t: Onnx) -> OnnxTensor:
    return variable_tensor(t, _name(op, t), op.result)


@lowering(AssignVariable)
def assign_variable(op: AssignVariable, t: Onnx) -> list[Result]:
    name = _name(op, t)
    _declare(t, name, op.value)
    t.hold(name, t.tensor(op.value))
    return []


def variable_tensor(t: Onnx, name: str, like: Value) -> OnnxTensor:
    """The tensor that a variable holds at this place."""
    _declare(t, name, like)
    return t.variable(name)


def _declare(t: Onnx, name: str, like: Value) -> None:
    """Gives the function an argument for a variable that holds such values. Refused if it holds others, too."""
    type = TensorType(static(like.type.shape), like.type.storage)
    argument = t.state.arguments.get(name)
    if argument is None:
        argument = t.state.arguments[name] = Value(type, name, info={"start": _start(t, name, type)})
    if argument.type != type:
        raise Refused(f"the variable '{name}' holds values of more than one type: {argument.type} and {type}")


def _name(op: ReadVariable | AssignVariable, t: Onnx) -> str:
    """The name of the variable that an operator reads or writes."""
    handle = next(iter(t.tensor(op.resource).forms.values()))
    if handle not in t.state.handles:
        raise Refused("the variable is not named by a VAR_HANDLE")
    return t.state.handles[handle]


def _start(t: Onnx, name: str, type: TensorType) -> np.ndarray:
    """The value that a variable starts as. Refused if two functions that CALL_ONCE runs assign different ones: which
    of them holds depends on what a caller runs first."""
    start = t.state.starts.get(name)
    accesses = t.module.main.once("accesses", lambda: Accesses(t.module))
    for access in accesses.named(name):
        source = None if access.once is None else constant_behind(access.value)
        if source is None:
            continue
        array = source.array
        if start is not None and not np.array_equal(start, array):
            raise Refused(f"the variable '{name}' starts as different values in two functions")
        start = array
    if start is None:
        return sized.zeros(static(type.shape), type.storage.dtype)
    if start.shape != type.shape or start.dtype != type.storage.dtype:
        raise Refused(f"the variable '{name}' starts as {start.dtype} {start.shape}, and holds {type}")
    return start


# Calls and control flow.


@lowering(Call, StablehloComposite)
def inlined(op: Call | StablehloComposite, t: Onnx) -> list[Result]:
    """The ops of its function."""
    index = op.subgraph if isinstance(op, Call) else op.decomposition_subgraph_index
    return [*_run(t, t.module.functions[index], op.present_operands, [t.tensor(v) for v in op.present_operands])]


@lowering(If)
def branch(op: If, t: Onnx) -> list[Result]:
    operands = [v for v in op.inputs if v is not None]
    functions = [t.module.functions[index] for index in (op.then_subgraph_index, op.else_subgraph_index)]
    condition = _truth(t, op.condition, t.tensor(op.condition))
    scopes, sides = [], []
    for function in functions:
        _need_types(op.outputs, function.outputs)
        with t.inside(Scope([], t.scope)):
            scopes.append(t.scope)
            sides.append(_run(t, function, operands, [t.tensor(v) for v in operands]))
    if any(map(is_handle, op.outputs)):
        raise Refused("it gives a handle, and a variable must be known by its name")
    names = list(dict.fromkeys(name for scope in scopes for name in scope.written))
    regions = [_graph(t, scope, [], side, op.outputs, names) for scope, side in zip(scopes, sides, strict=True)]
    return _emitted(t, onnx.If, [condition], regions, op.outputs, names)


@lowering(While)
def loop(op: While, t: Onnx) -> list[Result]:
    """Handles are not carried."""
    operands, tensors = op.present_operands, [t.tensor(v) for v in op.present_operands]
    test, body = (t.module.functions[i] for i in (op.cond_subgraph_index, op.body_subgraph_index))
    _need_types(op.outputs, body.outputs)
    first = _truth(t, test.outputs[0], *_run(t, test, operands, tensors))
    places = [i for i, value in enumerate(operands) if not is_handle(value)]
    arguments = {i: Value(body.inputs[i].type.stripped(), body.inputs[i].name) for i in places}
    with t.inside(Scope([], t.scope, repeats=True)):
        scope = t.scope
        carried = [t.bind(arguments[i], arguments[i]) if i in arguments else tensor for i, tensor in enumerate(tensors)]
        outputs = _run(t, body, operands, carried)
        again = _truth(t, test.outputs[0], *_run(t, test, body.outputs, outputs))
    names, results = list(scope.arguments), [op.outputs[i] for i in places]
    number, entered = Value(TensorType((), i64)), Value(TensorType((), i1))
    inside = [number, entered, *arguments.values(), *scope.arguments.values()]
    region = _graph(
        t, scope, inside, [t.bind(again, entered), *(outputs[i] for i in places)], [entered, *results], names
    )
    starts = [*(t.value(operands[i]) for i in places), *_states(t, names)]
    following = iter(_emitted(t, onnx.Loop, [None, first, *starts], [region], results, names))
    return [next(following) if i in arguments else tensor for i, tensor in enumerate(tensors)]


def _run(t: Onnx, function: Function, operands: Sequence[Value], tensors: Sequence[OnnxTensor]) -> list[OnnxTensor]:
    """The results of a function on the tensors of its operands."""
    location = t.location
    _need_types(operands, function.inputs)
    t.scope.tensors.update(zip(function.inputs, tensors, strict=True))
    t.lower_ops(function.ops)
    t.location = location
    return [t.tensor(v) for v in function.outputs]


def _need_types(outer: Sequence[Value], inner: Sequence[Value]) -> None:
    """Refused unless an operator that runs a function has as many tensors, of the types that the function has."""
    if len(outer) != len(inner):
        raise Refused(f"it has {len(outer)} tensors where the function that it calls has {len(inner)}")
    for value, other in zip(outer, inner, strict=True):
        if value.type.storage != other.type.storage:
            raise Refused(f"'{value.name}' is {value.type}, and in the function called {other.type}")


def _truth(t: Onnx, condition: Value, tensor: OnnxTensor) -> Value:
    """A condition, without dims. Refused if it is not a truth value."""
    if condition.type.storage != i1:
        raise Refused(f"its condition '{condition.name}' is {condition.type}, not i1")
    return t.reshape(tensor.get(t, TensorForm(i1)), ())


def _states(t: Onnx, names: Sequence[str]) -> list[Value]:
    """The values that variables hold at this place."""
    return [t.variable(name).get(t, TensorForm(t.state.arguments[name].type.storage)) for name in names]


def _graph(
    t: Onnx,
    scope: Scope,
    arguments: list[Value],
    tensors: Sequence[OnnxTensor],
    likes: Sequence[Value],
    names: Sequence[str],
) -> Region:
    """A scope as a graph, which gives values in their storage types, and what variables hold at its end."""
    with t.inside(scope):
        values = [tensor.get(t, TensorForm(like.type.storage)) for tensor, like in zip(tensors, likes, strict=True)]
        values += _states(t, names)
        end = Op(onnx.Yield.op_name, [*values], [], location=t.location)
    return Region([Block(arguments, [*needed(scope.ops, values), end])])


def _emitted(
    t: Onnx,
    kind: type[Operator],
    operands: Sequence[Value | None],
    regions: Sequence[Region],
    results: Sequence[Value],
    names: Sequence[str],
) -> list[Result]:
    """The results of an operator with graphs; behind them it gives what variables hold then."""
    types = [*(v.type.stripped() for v in results), *(t.state.arguments[name].type for name in names)]
    op = t.op(kind, operands, types)
    op.regions = regions
    for name, value in zip(names, op.results[len(results) :], strict=True):
        t.hold(name, t.bind(value, value))
    return [t.bind(value, like) for value, like in zip(op.results, results, strict=False)]
