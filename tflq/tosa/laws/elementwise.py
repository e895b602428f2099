"""Laws of elementwise operators (TOSA 1.0, sections 2.3 to 2.8): equal ranks, broadcasting, tables, clamps, shifts."""

from __future__ import annotations

from math import isnan

from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.arithmetic import Mul, Negate
from tflq.dialects.tosa.indexing import Table
from tflq.dialects.tosa.reduction import ArgMax
from tflq.ir.core import Op
from tflq.tosa.laws.registry import Context, Dims, Violations, bounds, dims, law, of_rank, result_is, show, zero_point

__all__: list[str] = []


@law(
    *("tosa.abs", "tosa.bitwise_not", "tosa.cast", "tosa.ceil", "tosa.clz", "tosa.cos", "tosa.erf", "tosa.exp"),
    *("tosa.floor", "tosa.identity", "tosa.log", "tosa.logical_not", "tosa.reciprocal", "tosa.rsqrt"),
    *("tosa.sigmoid", "tosa.sin", "tosa.tanh"),
)
def unary(op: Op, _: Context) -> Violations:
    yield from result_is(op, dims(op.operand(0)))


@law(
    *("tosa.add", "tosa.arithmetic_right_shift", "tosa.bitwise_and", "tosa.bitwise_or", "tosa.bitwise_xor"),
    *("tosa.equal", "tosa.greater", "tosa.greater_equal", "tosa.intdiv", "tosa.logical_and"),
    *("tosa.logical_left_shift", "tosa.logical_or", "tosa.logical_right_shift", "tosa.logical_xor", "tosa.maximum"),
    *("tosa.minimum", "tosa.pow", "tosa.select", "tosa.sub"),
)
def broadcasting(op: Op, _: Context) -> Violations:
    shapes = [dims(v) for v in op.operands if v is not None]
    listed = " and ".join(map(show, shapes))
    if len(set(map(len, shapes))) > 1:
        yield f"operands of unequal ranks: {listed}"
        return
    out: list[int | None] = []
    for column in zip(*shapes, strict=True):
        sizes = set(column) - {1, None}
        if len(sizes) > 1:
            yield f"operands {listed} do not broadcast"
            return
        out.append(sizes.pop() if sizes else None if None in column else 1)
    yield from result_is(op, tuple(out))


@law(Mul)
def mul(op: Mul, c: Context) -> Violations:
    yield from broadcasting(op, c)
    yield from bounds("shift", [op.shift], 0, 63 if op.input1.type.storage.name == "i32" else 0)


@law(Negate)
def negate(op: Negate, c: Context) -> Violations:
    yield from unary(op, c)
    yield from zero_point(op, "input1_zp", op.input1)
    yield from zero_point(op, "output_zp", op.result)


@law(Clamp)
def clamp(op: Clamp, c: Context) -> Violations:
    yield from unary(op, c)
    low, high, storage = op.min_val, op.max_val, op.input.type.storage
    if isnan(low) or isnan(high):
        yield "a bound is NaN"
    elif low > high:
        yield f"min_val {low} is greater than max_val {high}"
    elif storage.is_integer:
        yield from bounds("bounds", [low, high], storage.minimum, storage.maximum)


_ENTRIES = {"i8": 256, "i16": 513}


@law(Table)
def table(op: Table, _: Context) -> Violations:
    yield from result_is(op, dims(op.input))
    yield from of_rank(op, None, 1)
    entries, found = _ENTRIES.get(op.input.type.storage.name), dims(op.table)
    if not op.table.is_constant:
        yield "the table is not a constant"
    if entries is not None and found != (entries,):
        yield f"a table of {show(found)}, where {op.input.type.storage} needs {entries} entries"


def without(shape: Dims, axis: int) -> Dims:
    """A shape less one dim."""
    return shape[:axis] + shape[axis + 1 :]


def axis_of(op: Op, rank: int) -> Violations:
    """An axis among the dims."""
    if not 0 <= op.attributes["axis"] < rank:
        yield f"axis {op.attributes['axis']} of a tensor of rank {rank}"


@law(ArgMax)
def argmax(op: ArgMax, _: Context) -> Violations:
    shape = dims(op.input)
    if faults := list(axis_of(op, len(shape))):
        yield from faults
    else:
        yield from result_is(op, without(shape, op.axis))


@law(
    *("tosa.reduce_all", "tosa.reduce_any", "tosa.reduce_max", "tosa.reduce_min", "tosa.reduce_product"),
    "tosa.reduce_sum",
)
def reduce(op: Op, _: Context) -> Violations:
    shape, axis = dims(op.operand(0)), op.attributes["axis"]
    if faults := list(axis_of(op, len(shape))):
        yield from faults
    else:
        yield from result_is(op, (*shape[:axis], 1, *shape[axis + 1 :]))
