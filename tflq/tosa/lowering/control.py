"""IF and WHILE as COND_IF and WHILE_LOOP; CALL and STABLEHLO_COMPOSITE as what the function called does, in place.

Functions that COND_IF and WHILE_LOOP name take and give signed tensors, as the operators around them do, and the
variables that they use. Kernels: if.cc, while.cc, stablehlo_composite.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.analysis.variables import is_handle
from tflq.dialects.tfl.control import Call, If, While
from tflq.dialects.tfl.stablehlo import StablehloComposite
from tflq.dialects.tosa.control import CondIf, WhileLoop
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i64
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.state import held, hold, scope_of

__all__: list[str] = []


@lowering(If)
def cond_if(op: If, t: Tosa) -> list[Value]:
    """One of two functions."""
    t.need("controlflow", "IF")
    then, otherwise = op.then_subgraph_index, op.else_subgraph_index
    inputs = _given(op.operands, t)
    for index in (then, otherwise):
        _fits(t, index, op.inputs, op.results)
    scope = scope_of(t, [then, otherwise], op.inputs)
    if any(is_handle(v) for v in op.results):
        raise Refused("it gives a handle, and a variable has to be known by its name")
    state = [held(t, name, type) for name, type in scope.given]
    graphs = {"then_graph": t.callee(then, scope), "else_graph": t.callee(otherwise, scope)}
    types = dict(scope.given)
    made = [*(t.type(v) for v in op.results), *(types[name] for name in scope.returned)]
    results = t.op(CondIf, [*inputs, *state], made, graphs).results
    for name, value in zip(scope.returned, results[len(op.results) :], strict=True):
        hold(t, name, value)
    return results[: len(op.results)]


@lowering(While)
def while_loop(op: While, t: Tosa) -> list[Value]:
    """One function as long as another says so. Variables that either uses are carried along."""
    t.need("controlflow", "WHILE")
    condition, body = op.cond_subgraph_index, op.body_subgraph_index
    inputs = _given(op.operands, t)
    _fits(t, condition, op.operands, None)
    _fits(t, body, op.operands, op.results)
    test = scope_of(t, [condition], op.operands)
    if test.returned:
        raise Refused(f"its condition writes the variable '{test.returned[0]}'")
    scope = scope_of(t, [condition, body], op.operands)
    names = tuple(name for name, _ in scope.given)
    state = [held(t, name, type) for name, type in scope.given]
    graphs = {
        "cond_graph": t.callee(condition, replace(scope, returned=())),
        "body_graph": t.callee(body, replace(scope, returned=names)),
    }
    plain = [v for v in op.results if not is_handle(v)]
    types = [*(t.type(v) for v in plain), *(type for _, type in scope.given)]
    results = t.op(WhileLoop, [*inputs, *state], types, graphs).results
    for name, value in zip(names, results[len(plain) :], strict=True):
        if name in scope.returned:
            hold(t, name, value)
    made = iter(results)
    return [
        t.value(x) if x is not None and is_handle(v) else next(made)
        for x, v in zip(op.operands, op.results, strict=True)
    ]


def _given(operands: Sequence[Value | None], t: Tosa) -> list[Value]:
    """The operands but for handles. Refused if one is of 64 bits."""
    for value in operands:
        if value is not None and value.type.storage == i64:
            raise Refused(f"'{value.name}', which it takes, is of 64 bits")
    return [t.value(v) for v in operands if v is not None and not is_handle(v)]


def _fits(t: Tosa, index: int, operands: Sequence[Value | None], results: Sequence[Value] | None) -> None:
    """Refused if a function takes or gives other types than the operator that calls it."""
    function = t.module.functions[index]
    given = [v for v in operands if v is not None]
    pairs = [(given, function.inputs), (results or [], function.outputs if results is not None else [])]
    for side, other in pairs:
        for value, inner in zip(side, other, strict=True):
            if not _alike(t.type(value), t.type(inner)) or t.offset(value) != t.offset(inner):
                raise Refused(
                    f"'{value.name}' is {value.type}, and in the function called {inner.type}; TOSA needs equal types"
                )


def _alike(a: TensorType, b: TensorType) -> bool:
    """Whether two types are one, as far as they are known."""
    if a.element != b.element:
        return False
    if a.shape is None or b.shape is None:
        return True
    return len(a.shape) == len(b.shape) and all(
        d == e or d is None or e is None for d, e in zip(a.shape, b.shape, strict=True)
    )


@lowering(Call, StablehloComposite)
def inlined(op: Call | StablehloComposite, t: Tosa) -> list[Value]:
    """What its function does, in place."""
    index = op.subgraph if isinstance(op, Call) else op.decomposition_subgraph_index
    _fits(t, index, op.operands, op.results)
    function, location = t.module.functions[index], t.location
    operands = [t.value(v) for v in op.operands if v is not None]
    for argument, operand in zip(function.inputs, operands, strict=True):
        t.set(argument, operand)
    t.lower_ops(function.ops)
    t.location = location
    return [t.value(v) for v in function.outputs]
