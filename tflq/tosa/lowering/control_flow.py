"""IF and WHILE as COND_IF and WHILE_LOOP; CALL and STABLEHLO_COMPOSITE as what the function called does, in place.

Functions that COND_IF and WHILE_LOOP name take and give signed tensors, as the operators around them do. Kernels:
if.cc, while.cc, stablehlo_composite.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, i64
from tflq.tosa.lowering.registry import Refused, Tosa, lowering

__all__: list[str] = []


@lowering("tfl.if")
def cond_if(op: Op, t: Tosa) -> list[Value]:
    """One of two functions."""
    t.need("controlflow", "IF")
    then, otherwise = op.attributes["then_subgraph_index"], op.attributes["else_subgraph_index"]
    inputs = _given(op, t)
    for index in (then, otherwise):
        _fits(t, index, op.operands[1:], op.results)
    t.forget_variables()
    graphs = {"then_graph": t.callee(then), "else_graph": t.callee(otherwise)}
    return t.op("tosa.cond_if", inputs, [t.type(v) for v in op.results], graphs).results


@lowering("tfl.while")
def while_loop(op: Op, t: Tosa) -> list[Value]:
    """One function as long as another says so."""
    t.need("controlflow", "WHILE")
    condition, body = op.attributes["cond_subgraph_index"], op.attributes["body_subgraph_index"]
    inputs = _given(op, t)
    _fits(t, condition, op.operands, None)
    _fits(t, body, op.operands, op.results)
    t.forget_variables()
    graphs = {"cond_graph": t.callee(condition), "body_graph": t.callee(body)}
    return t.op("tosa.while_loop", inputs, [t.type(v) for v in op.results], graphs).results


def _given(op: Op, t: Tosa) -> list[Value]:
    """The operands. Refused if one is of 64 bits."""
    for value in op.operands:
        if value is not None and value.type.storage == i64:
            raise Refused(f"'{value.name}', which it takes, is of 64 bits")
    return t.values(op.operands)


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


@lowering("tfl.call")
def call(op: Op, t: Tosa) -> list[Value]:
    return _inlined(op, t, op.attributes["subgraph"])


@lowering("tfl.stablehlo_composite")
def composite(op: Op, t: Tosa) -> list[Value]:
    return _inlined(op, t, op.attributes["decomposition_subgraph_index"])


def _inlined(op: Op, t: Tosa, index: int) -> list[Value]:
    """The results of a function on the operands."""
    _fits(t, index, op.operands, op.results)
    function, location = t.module.functions[index], t.location
    for argument, operand in zip(function.inputs, t.values(op.operands), strict=True):
        t.set(argument, operand)
    t.lower_ops(function.ops)
    t.location = location
    return [t.value(v) for v in function.outputs]
