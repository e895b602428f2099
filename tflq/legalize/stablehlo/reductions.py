"""`stablehlo.reduce` and `stablehlo.reduce_window` of quantized values: reductions of integers in wide accumulators.

    result = output_conversion(init + sum of input_conversion(x)), or the greatest, or the least

The sum is of steps of the accumulator's scale, in int32, and is clamped nowhere: only sums that cannot leave the bounds
of the accumulator's type are taken, so that no order gives anything else. Conversions are exact (`conversions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tflq.dialects.stablehlo.arithmetic import Add, Maximum, Minimum
from tflq.dialects.stablehlo.conversions import Accumulating, Functions, single_op
from tflq.dialects.stablehlo.reduction import Reduce
from tflq.dialects.stablehlo.windows import ReduceWindow, SelectAndScatter
from tflq.errors import Refused
from tflq.evaluate.stablehlo.order import leaves_bounds, sums_of
from tflq.ir.core import Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.reference.pooling import over_windows
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.legalize.stablehlo.conversions import Converted, converted
from tflq.legalize.stablehlo.movement import padded

__all__ = ["reduce", "reduce_window", "select_and_scatter"]

_BY_ONE_OP = (
    "only a body of one stablehlo.add, maximum or minimum is lowered to integers; another one is evaluated "
    "(tflq opt -p fold, on constants)"
)
_STORAGE = (i8, ui8, i16, i32)


class _Plan(NamedTuple):
    """What is reduced, by what, and between which conversions."""

    functions: Functions
    body: Add | Maximum | Minimum
    source: TensorType
    """A scalar of the input's type."""
    accumulator: TensorType
    target: TensorType


@rule(Reduce)
def reduce(op: Reduce, b: RuleBuilder) -> Answer:
    """result = input accumulated along dimensions."""
    shape = op.inputs[0].type.shape
    if shape is None or any(shape[d] is None for d in op.dimensions):
        raise Refused("the sizes of the dimensions that are reduced are not known")
    count = prod(shape[d] or 0 for d in op.dimensions)
    plan = _plan(op, count)
    result = tuple(size for axis, size in enumerate(shape) if axis not in op.dimensions)
    if not count and None in result:
        raise Refused("nothing is reduced, and the shape of the result is not known")

    def over(x: Value | None, kind: str) -> Value | None:
        if x is None or not count:
            return None
        for axis in op.dimensions:
            x = b.reduce(kind, x, axis)  # type: ignore[arg-type]
        return b.reshape(x, result)

    return _accumulated(op, b, plan, b.value(op.inputs[0]), over, result, count)


@rule(ReduceWindow)
def reduce_window(op: ReduceWindow, b: RuleBuilder) -> Answer:
    """result = windows of the input, accumulated."""
    x, spread = op.inputs[0], op.window
    if spread is None or not x.type.is_static:
        raise Refused("the shape of the input is not known")
    count = prod(spread.sizes)
    plan = _plan(op, count)
    low, high = zip(*spread.padding, strict=True) if spread.padding else ((), ())
    filled, fill = b.cast(b.value(x), i32), b.cast(b.reshape(b.value(op.inits[0]), ()), i32)
    for axis, dilation in enumerate(spread.base_dilations):
        filled = _spread(b, filled, fill, axis, dilation)
    filled = padded(b, filled, fill, list(low), list(high), [0] * len(low))
    result = tuple(spread.counts(tuple(x.type.shape or ())))

    def over(y: Value | None, kind: str) -> Value | None:
        assert y is not None
        combine = {"sum": RuleBuilder.add, "max": RuleBuilder.maximum, "min": RuleBuilder.minimum}[kind]
        for axis, numbers in enumerate(zip(spread.sizes, spread.strides, spread.dilations, strict=True)):
            y = over_windows(b, y, axis, *numbers, combine)
        return y

    if 0 in result:
        raise Refused("there are no windows")
    return _accumulated(op, b, plan, filled, over, result, count)


def _spread(b: RuleBuilder, x: Value, fill: Value, axis: int, dilation: int) -> Value:
    """A tensor with `dilation - 1` fills between two of its elements along an axis."""
    shape = [d or 0 for d in x.type.shape or ()]
    if dilation == 1 or shape[axis] < 2:
        return x
    beside = [*shape[: axis + 1], dilation - 1, *shape[axis + 1 :]]
    fills = b.add(b.constant(np.zeros(beside, np.int32)), fill)
    rows = b.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    both = b.concat([rows, fills], axis + 1)
    shape[axis] *= dilation
    cut = [-(dilation - 1) if i == axis else 0 for i in range(len(shape))]
    return padded(b, b.reshape(both, shape), fill, [0] * len(shape), cut, [0] * len(shape))


@rule(SelectAndScatter)
def select_and_scatter(op: SelectAndScatter, b: RuleBuilder) -> Answer:
    """Never: which place a window selects depends on the values."""
    raise Refused(
        "stablehlo.select_and_scatter scatters to places that its values decide, which no integer form has",
        "give it constants, and fold it (tflq opt -p fold)",
    )


def _plan(op: Reduce | ReduceWindow, count: int) -> _Plan:
    functions = op.functions
    assert functions is not None
    if len(op.inputs) != 1:
        raise Refused("only a reduction of one input is lowered to integers")
    body = single_op(functions.body)
    if not isinstance(body, (Add, Maximum, Minimum)):
        raise Refused(_BY_ONE_OP)
    source, target = (TensorType((), v.type.element) for v in (op.inputs[0], op.result))
    kinds = (source, body.result.type, target)
    if not all(isinstance(kind.element, UniformQuantizedType) and kind.storage in _STORAGE for kind in kinds):
        raise Refused("only values of one scale, stored in i8, u8, i16 or i32, are reduced in integers")
    if isinstance(body, Add) and (reason := leaves_bounds(op, 0, body.result.type, count)) is not None:
        raise Refused(f"{reason}: the result would depend on the order", "accumulate in i32, by input_conversion")
    return _Plan(functions, body, source, body.result.type, target)


def _accumulated(
    op: Accumulating,
    b: RuleBuilder,
    plan: _Plan,
    x: Value,
    over: Callable[[Value | None, str], Value | None],
    shape: Sequence[int | None],
    count: int,
) -> Answer:
    """Conversions around what `over` makes of int32 values; None if there are none."""
    element: Any = plan.source.element
    given = converted(b, x, plan.functions.input_conversion, plan.source, (element.storage_min, element.storage_max))
    first = converted(
        b,
        b.reshape(b.value(op.inits[0]), ()),
        plan.functions.input_conversion,
        plan.source,
        (element.storage_min, element.storage_max),
    )
    if isinstance(given, NotApplicable) or isinstance(first, NotApplicable):
        raise Refused(str(given) if isinstance(given, NotApplicable) else _BY_ONE_OP)
    total, bounds = _combined(op, b, plan, given, first, over, count)
    if total.type.shape != tuple(shape):
        zeros = b.constant(np.zeros([d or 0 for d in shape], np.int32))
        total = b.add(total, zeros)
    out = converted(b, total, plan.functions.output_conversion, plan.accumulator, bounds)
    if isinstance(out, NotApplicable):
        raise Refused(str(out))
    return b.cast(out.value, plan.target.storage)


def _combined(
    op: Accumulating,
    b: RuleBuilder,
    plan: _Plan,
    given: Converted,
    first: Converted,
    over: Callable[[Value | None, str], Value | None],
    count: int,
) -> tuple[Value, tuple[int, int]]:
    """The accumulator's stored integers, in int32, and their bounds."""
    if not isinstance(plan.body, Add):
        greatest = isinstance(plan.body, Maximum)
        found = over(given.value, "max" if greatest else "min")
        if found is None:
            return first.value, first.bounds
        return (b.maximum if greatest else b.minimum)(found, first.value), given.bounds
    element: Any = plan.accumulator.element
    zero = element.zero_point
    steps = b.sub(given.value, b.constant(np.asarray(zero))) if zero else given.value
    found = over(steps, "sum")
    low, high = sums_of(op, 0, count)
    if found is None:
        return first.value, first.bounds
    return b.add(found, first.value), (low + zero, high + zero)
