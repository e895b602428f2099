"""Laws of data movement, indices, reductions, control flow and variables (TOSA 1.0, sections 2.4, 2.7, 2.9, 2.13,
2.14)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.effects import callees
from tflq.dialects.inference import text
from tflq.dialects.tosa.movement import (
    ArgMax,
    Concat,
    CondIf,
    Gather,
    Pad,
    Reduction,
    Reshape,
    Reverse,
    Scatter,
    Slice,
    Table,
    Tile,
    Transpose,
    Variable,
    VariableRead,
    VariableWrite,
    WhileLoop,
)
from tflq.dialects.traits import Calls
from tflq.ir.core import Function, Value
from tflq.ir.types import TensorType
from tflq.tosa.laws.registry import Context, Violations, axis_of, bounds, dims, law, same


@law(Concat)
def concat(op: Concat, c: Context) -> Violations:
    shapes = [dims(v) for v in op.reads]
    yield from bounds("a number of operands", [len(shapes)], 1, c.limits.list)
    if shapes:
        yield from axis_of(op.axis, len(shapes[0]))


@law(Pad)
def pad(op: Pad, _: Context) -> Violations:
    shape, padding = dims(op.input1), op.padding
    storage = op.input1.type.storage
    if not shape:
        yield "it pads a tensor of rank 0"
    yield from bounds("a padding", padding, 0)
    if storage.is_integer:
        yield from bounds("pad_const", [op.pad_const], storage.minimum, storage.maximum)


@law(Reshape)
def reshape(op: Reshape, _: Context) -> Violations:
    open_dims = dims(op.result).count(None)
    if open_dims > 1:
        yield f"the result {text(dims(op.result))} has {open_dims} dims that are not known; one can be inferred"


@law(Reverse)
def reverse(op: Reverse, _: Context) -> Violations:
    yield from axis_of(op.axis, len(dims(op.input1)))


@law(Slice)
def slice(op: Slice, _: Context) -> Violations:
    shape, start, size = dims(op.input), op.start, op.size
    if not shape:
        yield "a block of a tensor of rank 0"
    yield from bounds("a start", start, 0)
    yield from bounds("a size", [n for n in size if n is not None], 1)
    for d, first, n in zip(shape, start, size, strict=True):
        if d is not None and first + (n or 1) > d:
            yield f"from {first} on there are not {n or 1} of {d}"


@law(Tile)
def tile(op: Tile, _: Context) -> Violations:
    if not op.multiples:
        yield "multiples of a scalar"
    yield from bounds("a multiple", op.multiples, 1)


@law(Transpose)
def transpose(op: Transpose, _: Context) -> Violations:
    if not op.perms or min(op.perms) < 0:
        yield f"perms {text(op.perms)} of a tensor of rank {len(dims(op.input))}"


_ENTRIES = {"i8": 256, "i16": 513}


@law(Table)
def table(op: Table, _: Context) -> Violations:
    entries, shape = _ENTRIES.get(op.input.type.storage.name), dims(op.table)
    if not op.table.is_constant:
        yield "the table is not a constant"
    if len(shape) != 1 or entries not in (None, shape[0]):
        yield f"a table of {text(shape)}, where {op.input.type.storage} needs {entries} entries"


def _indices(value: Value, rows: int | None) -> Violations:
    """Constant indices count rows that there are."""
    if value.is_constant and value.array.size and rows is not None:
        yield from bounds("an index", [int(value.array.min()), int(value.array.max())], 0, rows - 1)


@law(Gather)
def gather(op: Gather, _: Context) -> Violations:
    yield from _indices(op.indices, dims(op.values)[1])


@law(Scatter)
def scatter(op: Scatter, _: Context) -> Violations:
    values, indices = dims(op.values_in), dims(op.indices)
    if values[1] is not None and indices[1] is not None and indices[1] > values[1]:
        yield f"{indices[1]} indices into {values[1]} rows"
    yield from _indices(op.indices, values[1])
    if op.indices.is_constant and (np.diff(np.sort(op.indices.array, axis=1), axis=1) == 0).any():
        yield "an index twice"


@law(ArgMax, Reduction)
def reduce(op: ArgMax | Reduction, _: Context) -> Violations:
    yield from axis_of(op.axis, len(dims(op.input)))


# Control flow: what functions take and give.


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
    called = (index for op in c.module.functions[function].ops_with(Calls) for index in callees(op))
    known = (index for index in called if index < len(c.module.functions))
    return max((1 + nesting(c, index, (*seen, function)) for index in known), default=0)


@law(Variable)
def variable(op: Variable, _: Context) -> Violations:
    if not op.variable:
        yield "a variable without a name"
    if not op.initial_value.is_constant:
        yield f"the initial value of '{op.variable}' is not a constant"


@law(VariableRead, VariableWrite)
def access(op: VariableRead | VariableWrite, c: Context) -> Violations:
    name = op.variable
    value = op.output if isinstance(op, VariableRead) else op.input
    declared = c.variables.get(name)
    if declared is None:
        yield f"no variable is called '{name}'"
    elif not fits(value.type, declared):
        yield f"'{name}' is {declared}, not {value.type}"
