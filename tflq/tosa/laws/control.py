"""Laws of control flow (TOSA 1.0, section 2.13): what functions take and give."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.calls import callees
from tflq.dialects.tosa.control import CondIf, WhileLoop
from tflq.ir.core import Function, Value
from tflq.ir.types import TensorType
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, same

__all__ = ["fits", "nesting"]


def _agree(what: str, found: Sequence[Value], expected: Sequence[Value]) -> Violations:
    if len(found) != len(expected):
        yield f"{what}: {len(found)}, where there are {len(expected)}"
        return
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if not fits(a.type, b.type):
            yield f"{what}: number {i} is {a.type}, not {b.type}"


def fits(a: TensorType, b: TensorType) -> bool:
    shapes = a.shape or (), b.shape or ()
    return a.storage == b.storage and len(shapes[0]) == len(shapes[1]) and all(map(same, *shapes))


def _condition(what: str, value: Value) -> Violations:
    if value.type.storage.name != "i1" or any(d not in (1, None) for d in dims(value)):
        yield f"{what} is {value.type}, not one i1"


def _function(index: int, c: Context) -> Function | None:
    return c.module.functions[index] if 0 <= index < len(c.module.functions) else None


@law(CondIf)
def cond_if(op: CondIf, c: Context) -> Violations:
    given = [v for v in op.inputs if v is not None]
    yield from _condition("the condition", op.condition)
    yield from bounds("a number of operands or results", [len(given), len(op.results)], 0, c.limits.list)
    for name, index in (("then_graph", op.then_graph), ("else_graph", op.else_graph)):
        if (function := _function(index, c)) is None:
            yield f"{name} names no function"
            continue
        yield from _agree(f"inputs of {name}", function.inputs, given)
        yield from _agree(f"outputs of {name}", function.outputs, op.results)


@law(WhileLoop)
def while_loop(op: WhileLoop, c: Context) -> Violations:
    given = [v for v in op.inputs if v is not None]
    yield from bounds("a number of operands or results", [len(given), len(op.results)], 0, c.limits.list)
    yield from _agree("results", op.results, given)
    for name, index in (("cond_graph", op.cond_graph), ("body_graph", op.body_graph)):
        if (function := _function(index, c)) is None:
            yield f"{name} names no function"
            continue
        yield from _agree(f"inputs of {name}", function.inputs, given)
        if name == "body_graph":
            yield from _agree(f"outputs of {name}", function.outputs, given)
        elif len(function.outputs) != 1:
            yield f"{name} has {len(function.outputs)} outputs, not one i1"
        else:
            yield from _condition(f"the output of {name}", function.outputs[0])


def nesting(c: Context, function: int, seen: tuple[int, ...] = ()) -> int:
    """How deep control flow nests in a function; more than any level takes if it calls itself."""
    if function in seen:
        return c.limits.nesting + 1
    called = (index for op in c.module.functions[function].ops for index in callees(op))
    known = (index for index in called if index < len(c.module.functions))
    return max((1 + nesting(c, index, (*seen, function)) for index in known), default=0)
