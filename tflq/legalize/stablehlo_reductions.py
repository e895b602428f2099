"""Reductions of quantized values: STABLEHLO_REDUCE_WINDOW of files; `stablehlo.reduce`, `reduce_window`,
`uniform_quantize` and `uniform_dequantize` of text.

    result = output_conversion(init + sum of input_conversion(x)), or the greatest, or the least

Of text the sum is of steps of the accumulator's scale, in int32, and is not clamped: only sums that cannot leave the
bounds of the accumulator's type are taken, so that the order does not matter. Conversions are exact, as the
specification computes them in floating point: of equal scales another zero point; else RESCALE in float64, proven to be
the same, or one off, at every threshold of the result; else a table of the values that can occur.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tflq.analysis.evaluate.stablehlo_elementwise import same_scale
from tflq.analysis.evaluate.stablehlo_reduction import apply, leaves_bounds, sums_of
from tflq.base.errors import Refused
from tflq.dialects.quant import RescaleF64
from tflq.dialects.stablehlo.convolution import Accumulating, Functions, rescale_region, results_of, single_op
from tflq.dialects.stablehlo.elementwise import (
    Add,
    Maximum,
    Minimum,
    Reduce,
    ReduceWindow,
    SelectAndScatter,
    UniformDequantize,
    UniformQuantize,
)
from tflq.dialects.tfl.arithmetic import Div
from tflq.dialects.tfl.stablehlo import StablehloReduceWindow
from tflq.ir.ops import Op, Region, Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i8, i16, i32, ui8
from tflq.legalize.pooling import COMBINE, over_windows, reduced
from tflq.legalize.probing import gather_along
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.stablehlo import builtin_name, padded
from tflq.numerics.fixed_point import round_float

_STORAGE = (i8, ui8, i16, i32)
_ENTRIES = 1 << 16
_RAW = "the kernel reduces the stored integers and ignores scales and zero points"
_BY_ONE_OP = (
    "only a body of one stablehlo.add, maximum or minimum is lowered to integers; another one is evaluated "
    "(tflq opt -p fold, on constants)"
)


@rule(StablehloReduceWindow)
def stored_windows(op: StablehloReduceWindow, b: RuleBuilder) -> Answer:
    """result = init combined with each window's elements, as stored, dilated and padded by init.

    The kernel asks the operator's function for its one operator (`op.info["body"]`: its class), and knows no scales.
    Source: kernels/stablehlo_reduce_window.cc.
    """
    function = builtin_name(op.info.get("body") or Op)
    storage = op.result.type.storage
    operands = [v for v in op.inputs if v is not None]
    if function not in COMBINE or len(operands) != 2 or b.real or not operands[0].type.is_static:
        raise Refused(
            "STABLEHLO_REDUCE_WINDOW on quantized tensors has a form for one tensor of known shape, reduced by one "
            "ADD, MUL, MINIMUM or MAXIMUM of stored integers",
            "lower it to TFLite's builtins, or dequantize its operands",
        )
    x, init = operands
    if {x.type.storage, init.type.storage} != {storage} or storage not in _STORAGE:
        raise Refused(f"no form reduces {x.type.storage} and {init.type.storage} to {storage}")
    window, strides, base, dilations, sides = op.windows(len(x.type.sizes))
    start = b.reshape(b.value(init), [])
    y = padded(b, b.value(x), start, sides[::2], sides[1::2], [d - 1 for d in base])
    extreme = function.endswith("IMUM")
    wide = storage if extreme else i32
    windows = list(zip(window, strides, dilations, strict=True))
    y = reduced(b, b.cast(y, wide), b.cast(start, wide), windows, COMBINE[function])
    same = extreme and len({v.type.element for v in op.tensors}) == 1
    return Rewritten([b.cast(y, storage)], warning="" if same else _RAW)


# Conversions: functions of one quantized value in integers.


class Converted(NamedTuple):
    """Stored integers in int32, and their bounds."""

    value: Value
    bounds: tuple[int, int]


def converted(
    b: RuleBuilder, x: Value, region: Region | None, source: TensorType, bounds: tuple[int, int]
) -> Converted:
    """A function of stored integers of a type, which are within bounds. NotApplicable if it needs too large a table."""
    wide = b.cast(x, i32)
    if region is None:
        return Converted(wide, bounds)
    (returned,) = results_of(region) or [None]
    assert returned is not None
    if returned is region.block.arguments[0]:
        return Converted(wide, bounds)
    target = returned.type
    step = returned.producer
    monotone = isinstance(step, UniformQuantize) and step.input is region.block.arguments[0]
    if monotone and same_scale(source, target):
        return _moved(b, wide, source, target, bounds)
    if monotone:
        if (scaled := _scaled(b, wide, region, source, target, bounds)) is not None:
            return scaled
        bounds = _narrowed(region, source, bounds)
        wide = b.clamp(wide, *bounds)
    if bounds[1] - bounds[0] >= _ENTRIES:
        raise NotApplicable(f"a conversion from {source.storage} to {target.storage} tells apart too many values")
    return _looked_up(b, wide, region, source, bounds)


def _moved(b: RuleBuilder, x: Value, source: TensorType, target: TensorType, bounds: tuple[int, int]) -> Converted:
    """Conversion to the same scale and another zero point."""
    before: Any = source.element
    after: Any = target.element
    by = after.zero_point - before.zero_point
    low, high = (int(np.clip(end + by, after.storage_min, after.storage_max)) for end in bounds)
    if (low, high) != (bounds[0] + by, bounds[1] + by):  # clamped first, so that nothing leaves int32
        x = b.clamp(x, max(low - by, i32.minimum), min(high - by, i32.maximum))
    return Converted(b.add(x, by) if by else x, (low, high))


def _values(region: Region, source: TensorType, stored: np.ndarray) -> np.ndarray:
    (results,) = apply(region, [stored.astype(source.storage.dtype)])
    return results.astype(np.int64)


def _thresholds(region: Region, source: TensorType, bounds: tuple[int, int], results: np.ndarray) -> np.ndarray:
    """The first value within bounds whose result is at least that, of a function that does not fall."""
    low = np.full(results.shape, bounds[0], np.int64)
    high = np.full(results.shape, bounds[1], np.int64)
    while (open_ := low < high).any():
        middle = (low + high) >> 1
        reached = _values(region, source, middle) >= results
        high = np.where(open_ & reached, middle, high)
        low = np.where(open_ & ~reached, middle + 1, low)
    return low


def _narrowed(region: Region, source: TensorType, bounds: tuple[int, int]) -> tuple[int, int]:
    """Bounds beyond which the result stays the same."""
    ends = _values(region, source, np.asarray(bounds))
    first, last = _thresholds(region, source, bounds, np.asarray([ends[0] + 1, ends[1]]))
    return max(bounds[0], int(first) - 1), int(last)


def _scaled(
    b: RuleBuilder, x: Value, region: Region, source: TensorType, target: TensorType, bounds: tuple[int, int]
) -> Converted | None:
    """RESCALE in float64; where it is one off at thresholds, a comparison with these corrects it. None if it is
    further off."""
    before: Any = source.element
    after: Any = target.element
    if target.storage not in (i8, ui8, i16) or not isinstance(before, UniformQuantizedType) or not after.scale:
        return None
    reach = bounds[0] - before.zero_point, bounds[1] - before.zero_point
    if min(reach) < i32.minimum or max(*reach, bounds[1] + 1) > i32.maximum:
        return None
    scale = before.scale / after.scale
    low, high = (int(v) for v in _values(region, source, np.asarray(bounds)))
    at = _thresholds(region, source, bounds, np.arange(low + 1, high + 1))
    probes = np.unique(np.concatenate([at, at - 1, np.asarray(bounds)]).clip(*bounds))
    rounded = round_float((probes - before.zero_point) * scale, "half_away") + after.zero_point
    off = np.abs(rounded.clip(low, high) - _values(region, source, probes)).max()
    if off > 1:
        return None
    steps = b.sub(x, before.zero_point) if before.zero_point else x
    numbers = {"scale": np.asarray([scale]), "output_zp": after.zero_point, "input_range": reach}
    near = b.emit(RescaleF64, [steps], steps.type.with_element(target.storage), **numbers)
    out = b.clamp(b.cast(near, i32), low, high)
    if off:
        firsts = np.concatenate([[bounds[0]], at, [bounds[1] + 1]])
        out = _corrected(b, x, out, firsts.astype(np.int32), low)
    return Converted(out, (low, high))


def _corrected(b: RuleBuilder, x: Value, near: Value, firsts: np.ndarray, low: int) -> Value:
    """Results that are at most one off: one more where x has reached the first value of the next result, one less where
    it has not reached the first of its own. `firsts`: of each result from `low` up, and of the one after the last."""
    index = b.sub(near, low) if low else near
    first, following = (gather_along(b, b.constant(table), index) for table in (firsts[:-1], firsts[1:]))
    more = b.select(b.greater_equal(x, following), 1, 0)
    return b.sub(b.add(near, more), b.select(b.greater(first, x), 1, 0))


def _looked_up(b: RuleBuilder, x: Value, region: Region, source: TensorType, bounds: tuple[int, int]) -> Converted:
    table = _values(region, source, np.arange(bounds[0], bounds[1] + 1))
    index = b.sub(x, bounds[0]) if bounds[0] else x
    out = gather_along(b, b.constant(table), index)
    return Converted(out, (int(table.min()), int(table.max())))


# Reductions of text.


_Over: TypeAlias = Callable[[Value | None, str], Value | None]


class _Plan(NamedTuple):
    """The operand of a reduction, its function, and the conversions before and after."""

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
    result = tuple(spread.counts(tuple(x.type.dims)))

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
    shape = list(x.type.sizes)
    if dilation == 1 or shape[axis] < 2:
        return x
    between = [*shape[: axis + 1], dilation - 1, *shape[axis + 1 :]]
    fills = b.add(np.zeros(between, np.int32), fill)
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
    over: _Over,
    shape: Sequence[int | None],
    count: int,
) -> Answer:
    """Conversions around `over`, which accumulates int32 values; it gives None if there are none."""
    element: Any = plan.source.element
    bounds = element.storage_min, element.storage_max
    conversion = plan.functions.input_conversion
    elements = converted(b, x, conversion, plan.source, bounds)
    init = converted(b, b.reshape(b.value(op.inits[0]), ()), conversion, plan.source, bounds)
    total, bounds = _combined(op, b, plan, elements, init, over, count)
    if total.type.shape != tuple(shape):
        total = b.add(total, np.zeros([d or 0 for d in shape], np.int32))
    out = converted(b, total, plan.functions.output_conversion, plan.accumulator, bounds)
    return b.cast(out.value, plan.target.storage)


def _combined(
    op: Accumulating,
    b: RuleBuilder,
    plan: _Plan,
    elements: Converted,
    init: Converted,
    over: _Over,
    count: int,
) -> Converted:
    """The accumulator's stored integers, in int32, and their bounds."""
    if not isinstance(plan.body, Add):
        greatest = isinstance(plan.body, Maximum)
        extreme = over(elements.value, "max" if greatest else "min")
        if extreme is None:
            return init
        return Converted((b.maximum if greatest else b.minimum)(extreme, init.value), elements.bounds)
    element: Any = plan.accumulator.element
    zero = element.zero_point
    total = over(b.sub(elements.value, zero) if zero else elements.value, "sum")
    if total is None:
        return init
    low, high = sums_of(op, 0, count)
    return Converted(b.add(total, init.value), (low + zero, high + zero))


# `stablehlo.uniform_quantize` and `uniform_dequantize`, with the specification's rounding.


@rule(UniformQuantize)
def uniform_quantize(op: UniformQuantize, b: RuleBuilder) -> Answer:
    """result = clamp(round half even(real / scale + zero_point))"""
    source, target = op.input.type, op.result.type
    element: Any = target.element
    if not isinstance(element, UniformQuantizedType) or element.expressed != f32:
        raise Refused("only one scale, of f32, is computed in integers")
    if not source.quantized:
        scale = b.constant(element.scale, f32)
        real = b.emit(Div, [b.value(op.input), scale], source, fused_activation_function="NONE")
        if element.zero_point:
            real = b.add(real, element.zero_point)
        unit = UniformQuantizedType.of(
            element.storage, 1.0, 0, storage_min=element.storage_min, storage_max=element.storage_max
        )
        return b.scast(b.qcast(real, target.with_element(unit), "half_even"), target.stripped())
    before = source.element
    if not isinstance(before, UniformQuantizedType):
        raise Refused("only one scale is computed in integers")
    bounds = before.storage_min, before.storage_max
    out = converted(b, b.value(op.input), rescale_region([before], [element]), source, bounds)
    return b.cast(out.value, element.storage)


@rule(UniformDequantize)
def uniform_dequantize(op: UniformDequantize, b: RuleBuilder) -> Answer:
    """result = (stored - zero_point) * scale"""
    if op.result.type.element != f32:
        raise Refused(f"TFLite dequantizes to f32, not to {op.result.type.storage}")
    return b.dcast(b.typed(op.input))
