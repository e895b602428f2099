"""`stablehlo.reduce` and `stablehlo.reduce_window` of quantized values: reductions of integers in wide accumulators.

    result = output_conversion(init + sum of input_conversion(x)), or the greatest, or the least

The sum is of steps of the accumulator's scale, in int32, and is clamped nowhere: only sums that cannot leave the bounds
of the accumulator's type are taken, so that no order gives anything else. Conversions are exact (`conversions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tflq.dialects.ext import RescaleF64
from tflq.dialects.stablehlo.conversions import Accumulating, Functions, rescale_region, results_of, single_op
from tflq.dialects.stablehlo.elementwise import Add, Maximum, Minimum, UniformDequantize, UniformQuantize
from tflq.dialects.stablehlo.movement import Reduce, ReduceWindow, SelectAndScatter
from tflq.dialects.tfl.indexing import DynamicUpdateSlice, Gather
from tflq.dialects.tfl.movement import Dilate, PadV2
from tflq.dialects.tfl.movement import Slice as TflSlice
from tflq.dialects.tfl.stablehlo import (
    StablehloBroadcastInDim,
    StablehloDynamicSlice,
    StablehloDynamicUpdateSlice,
    StablehloGather,
    StablehloPad,
    StablehloReduceWindow,
)
from tflq.dialects.tosa.movement import Tile
from tflq.errors import Refused
from tflq.evaluate.stablehlo_elementwise import same_scale
from tflq.evaluate.stablehlo_reduction import apply, leaves_bounds, sums_of
from tflq.ir.core import Op, Region, Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i8, i16, i32, ui8
from tflq.legalize.movement import COPIED, seen_by_kernel, under
from tflq.legalize.pooling import COMBINE, over_windows, reduced
from tflq.legalize.probing import kernel_name
from tflq.legalize.rule import AS_STATED, Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.stablehlo import builtin_name, option
from tflq.numerics.fixed_point import round_float

# STABLEHLO_PAD, GATHER, BROADCAST_IN_DIM, DYNAMIC_SLICE and DYNAMIC_UPDATE_SLICE: stored integers moved.
#
# PAD and GATHER have kernels, which copy the integers as they are. Where parameters must hold, and where no kernel
# is, what is moved takes the result's parameters first. PAD writes `interior` values between elements (DILATE), then
# values around them; edges less than 0 cut off. GATHER copies a slice of constant size from each start index, which
# is clamped: with known indices every element of the result is picked by its place in the operand. Sources:
# kernels/stablehlo_pad.cc, stablehlo_gather.cc; the StableHLO specification.


def _sources(op: Op, b: RuleBuilder, values: list[Value], kernel: bool) -> tuple[list[Value], str] | None:
    """What is moved, and a warning where the kernel disregards parameters; None if they cannot be honoured."""
    result = op.result
    if any(v.type.storage != result.type.storage for v in values):
        return None
    if all(v.type.element == result.type.element and seen_by_kernel(v) != (0.0, 0) for v in values):
        return [b.value(v) for v in values], ""
    if kernel and not b.real:
        return [b.value(v) for v in values], COPIED
    ready = under(b, values, result)
    return None if ready is None else (ready, "")


def _not_copied(reason: str, warning: str) -> NotApplicable:
    """Where the kernel copies integers that come under other parameters, and no rule here does."""
    raise NotApplicable(reason, f"{warning}; {AS_STATED}" if warning else "")


def _refused(op: Op) -> Refused:
    raise Refused(
        f"{kernel_name(op)} has a form on builtins only where parameters are per layer and dims are known",
        "lower it to TFLite's builtins, or dequantize its operands, before converting",
    )


@rule(StablehloPad)
def pad(op: StablehloPad, b: RuleBuilder) -> Answer:
    """result = the operand with stored values between and around its elements."""
    x = op.input
    found = _sources(op, b, [x, op.value], kernel=True)
    if found is None:
        raise NotApplicable(COPIED)
    (plain, fill), warning = found
    if not x.type.is_static:
        raise _not_copied(f"the shape of '{x.name}' is not known", warning)
    low, high, inner = (option(v) for v in (op.edge_padding_low, op.edge_padding_high, op.interior_padding))
    return Rewritten([padded(b, plain, fill, low, high, inner)], warning=warning)


def padded(b: RuleBuilder, plain: Value, fill: Value, low: list[int], high: list[int], inner: list[int]) -> Value:
    """A tensor of known shape with `inner` fills between its elements, and fills around; less than 0 cuts off."""
    fill, shape, storage = b.reshape(fill, []), [d or 0 for d in plain.type.shape or ()], plain.type.storage
    if any(inner):
        shape = [d + max(d - 1, 0) * i for d, i in zip(shape, inner, strict=True)]
        if 0 in shape:  # DILATE reads beyond what is empty
            plain = b.reshape(plain, shape)
        else:
            factors = b.constant(np.asarray(inner) + 1)
            plain = b.emit(Dilate, [plain, factors, fill], TensorType(tuple(shape), storage))
    around = np.maximum(np.stack([low, high], axis=-1).reshape(-1, 2), 0)
    if around.any():
        shape = [d + int(p.sum()) for d, p in zip(shape, around, strict=True)]
        plain = b.emit(PadV2, [plain, b.constant(around), fill], TensorType(tuple(shape), storage))
    start = [max(-v, 0) for v in low]
    if min([*low, *high], default=0) < 0:
        size = [d - s - max(-h, 0) for d, s, h in zip(shape, start, high, strict=True)]
        plain = _cut(b, plain, start, size)
    return plain


def _cut(b: RuleBuilder, x: Value, start: list[int], size: list[int]) -> Value:
    return b.slice(x, tuple(start), tuple(size))


@rule(StablehloGather)
def gather(op: StablehloGather, b: RuleBuilder) -> Answer:
    """result = slices from known start indices."""
    x, indices, result = op.input, op.indices, op.result
    found = _sources(op, b, [x], kernel=True)
    if found is None:
        raise NotApplicable(COPIED)
    (plain,), warning = found
    if not x.type.is_static or not indices.is_constant:
        raise _not_copied(f"the shape of '{x.name}' or the indices '{indices.name}' are not known", warning)
    shape = [d or 0 for d in x.type.shape or ()]
    places = _places(op, indices.array, shape)
    flat = b.reshape(plain, [math.prod(shape)])
    type = TensorType(places.shape, result.type.storage)
    return Rewritten([b.emit(Gather, [flat, b.constant(places)], type, axis=0, batch_dims=0)], warning=warning)


def _places(op: StablehloGather, indices: np.ndarray, shape: list[int]) -> np.ndarray:
    """Which element of the flat operand each of the result is."""
    sizes, mapped = option(op.slice_sizes), option(op.start_index_map)
    collapsed, offsets = option(op.collapsed_slice_dims), option(op.offset_dims)
    at = op.index_vector_dim
    starts = indices[..., None] if at == indices.ndim else np.moveaxis(indices, at, -1)
    start = np.zeros((*starts.shape[:-1], len(shape)), np.int64)
    start[..., mapped] = starts
    start = np.clip(start, 0, np.asarray(shape) - sizes)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    inside = (np.moveaxis(np.indices(sizes), 0, -1) * strides).sum(-1)
    inside = inside.squeeze(tuple(collapsed))
    batch = starts.ndim - 1
    places = (start * strides).sum(-1).reshape(*starts.shape[:-1], *(1,) * inside.ndim) + inside
    return np.moveaxis(places, range(batch, places.ndim), offsets)


@rule(StablehloBroadcastInDim)
def broadcast_in_dim(op: StablehloBroadcastInDim, b: RuleBuilder) -> Answer:
    """result = the operand's dims in the places given, repeated."""
    x, result = op.input, op.result
    found = _sources(op, b, [x], kernel=False)
    if found is None or not x.type.is_static or not result.type.is_static:
        raise _refused(op)
    shape = [d or 0 for d in result.type.shape or ()]
    places = dict(zip(option(op.broadcast_dimensions), x.type.shape or (), strict=True))
    ranked = b.reshape(found[0][0], [places.get(i, 1) for i in range(len(shape))])
    times = tuple(d // (places.get(i) or 1) for i, d in enumerate(shape))
    type = TensorType(tuple(shape), result.type.storage)
    return Rewritten([b.emit(Tile, [ranked], type, multiples=times)])


@rule(StablehloDynamicSlice)
def dynamic_slice(op: StablehloDynamicSlice, b: RuleBuilder) -> Answer:
    """result = a slice of constant size from start indices, which are clamped."""
    x, sizes = op.input, option(op.slice_sizes)
    found = _sources(op, b, [x], kernel=False)
    if found is None or not x.type.is_static:
        raise _refused(op)
    most = np.asarray(x.type.shape) - sizes
    start = _starts(b, op.starts)
    start = b.minimum(b.maximum(start, b.constant(np.zeros_like(most))), b.constant(most))
    type = TensorType(tuple(sizes), op.result.type.storage)
    return Rewritten([b.emit(TflSlice, [found[0][0], start, b.constant(np.asarray(sizes))], type)])


@rule(StablehloDynamicUpdateSlice)
def dynamic_update_slice(op: StablehloDynamicUpdateSlice, b: RuleBuilder) -> Answer:
    """result = the operand with a block replaced."""
    found = _sources(op, b, [op.input, op.update], kernel=False)
    if found is None:
        raise _refused(op)
    operands = [*found[0], _starts(b, op.starts)]
    return Rewritten([b.emit(DynamicUpdateSlice, operands, op.result.type.stripped())])


def _starts(b: RuleBuilder, starts: Sequence[Value | None]) -> Value:
    """The start indices, each an operand, as one vector of int32."""
    scalars = [v for v in starts if v is not None]
    if all(v.is_constant for v in scalars):
        return b.constant(np.asarray([int(v.array.reshape(())) for v in scalars]))
    parts = [b.reshape(b.cast(b.value(v), i32), [1]) for v in scalars]
    return b.concat(parts, 0)


# STABLEHLO_REDUCE_WINDOW: stored integers dilated and padded by the initial value, then reduced over windows.
#
# The kernel asks the function that the operator names for its one operator, and knows no scales. Source:
# kernels/stablehlo_reduce_window.cc.


_RAW = "the kernel reduces the stored integers and ignores scales and zero points"


@rule(StablehloReduceWindow)
def reduce_window_windows(op: StablehloReduceWindow, b: RuleBuilder) -> Answer:
    """result = init combined with each window's elements. `op.info["body"]`: the class of the one operator of its
    function."""
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
    if {x.type.storage, init.type.storage} != {storage} or storage not in (i8, ui8, i16, i32):
        raise Refused(f"no form reduces {x.type.storage} and {init.type.storage} to {storage}")
    rank = x.type.rank or 0
    window, strides, base, dilations = (
        [1] * rank if given is None else [int(v) for v in given]
        for given in (op.window_dimensions, op.window_strides, op.base_dilations, op.window_dilations)
    )
    given = op.padding
    sides = [0] * (2 * rank) if given is None else [int(v) for v in given]
    start = b.reshape(b.value(init), [])
    y = padded(b, b.value(x), start, sides[::2], sides[1::2], [d - 1 for d in base])
    extreme = function.endswith("IMUM")
    wide = storage if extreme else i32
    y = b.cast(y, wide)
    windows = list(zip(window, strides, dilations, strict=True))
    y = reduced(b, y, b.cast(start, wide), windows, COMBINE[function])
    same = extreme and len({v.type.element for v in op.tensors}) == 1
    return Rewritten([b.cast(y, storage)], warning="" if same else _RAW)


# Functions of one quantized value in integers, exactly as the specification computes them in floating point.
#
# Equal scales: another zero point. Else RESCALE in float64, proven to be the same, or one off, at every threshold of
# the result; else a table of the values that it can be. Whatever the function is, it is evaluated once for each of
# them.


_ENTRIES = 1 << 16


class Converted(NamedTuple):
    """Stored integers in int32, and their bounds."""

    value: Value
    bounds: tuple[int, int]


def converted(
    b: RuleBuilder, x: Value, region: Region | None, source: TensorType, bounds: tuple[int, int]
) -> Converted | NotApplicable:
    """A function of stored integers of a type, which are within bounds."""
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
    if monotone and (found := _scaled(b, wide, region, source, target, bounds)) is not None:
        return found
    if monotone:
        bounds = _narrowed(region, source, bounds)
        wide = b.clamp(wide, *bounds)
    if bounds[1] - bounds[0] >= _ENTRIES:
        raise NotApplicable(f"a conversion from {source.storage} to {target.storage} tells apart too many values")
    return _looked_up(b, wide, region, source, bounds)


def _moved(b: RuleBuilder, x: Value, source: TensorType, target: TensorType, bounds: tuple[int, int]) -> Converted:
    """The same scale, another zero point."""
    given: Any = source.element
    made: Any = target.element
    by = made.zero_point - given.zero_point
    low, high = (int(np.clip(end + by, made.storage_min, made.storage_max)) for end in bounds)
    # within the bounds first, so that nothing leaves int32
    x = b.clamp(x, max(low - by, i32.minimum), min(high - by, i32.maximum)) if (low, high) != _both(bounds, by) else x
    return Converted(b.add(x, b.constant(np.asarray(by))) if by else x, (low, high))


def _both(bounds: tuple[int, int], by: int) -> tuple[int, int]:
    return bounds[0] + by, bounds[1] + by


def _values(region: Region, source: TensorType, stored: np.ndarray) -> np.ndarray:
    (made,) = apply(region, [stored.astype(source.storage.dtype)])
    return made.astype(np.int64)


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
    """RESCALE in float64; where it is one off at thresholds, a comparison with these sets it right. None if it is
    further off."""
    given: Any = source.element
    made: Any = target.element
    if target.storage not in (i8, ui8, i16) or not isinstance(given, UniformQuantizedType) or not made.scale:
        return None
    reach = bounds[0] - given.zero_point, bounds[1] - given.zero_point
    if min(reach) < i32.minimum or max(*reach, bounds[1] + 1) > i32.maximum:
        return None
    scale = given.scale / made.scale
    low, high = (int(v) for v in _values(region, source, np.asarray(bounds)))
    at = _thresholds(region, source, bounds, np.arange(low + 1, high + 1))
    probes = np.unique(np.concatenate([at, at - 1, np.asarray(bounds)]).clip(*bounds))
    rounded = round_float((probes - given.zero_point) * scale, "half_away") + made.zero_point
    off = np.abs(rounded.clip(low, high) - _values(region, source, probes)).max()
    if off > 1:
        return None
    steps = b.sub(x, b.constant(np.asarray(given.zero_point))) if given.zero_point else x
    numbers = {"scale": np.asarray([scale]), "output_zp": made.zero_point, "input_range": reach}
    near = b.emit(RescaleF64, [steps], steps.type.with_element(target.storage), **numbers)
    out = b.clamp(b.cast(near, i32), low, high)
    if off:
        firsts = np.concatenate([[bounds[0]], at, [bounds[1] + 1]])
        out = _set_right(b, x, out, firsts.astype(np.int32), low)
    return Converted(out, (low, high))


def _set_right(b: RuleBuilder, x: Value, near: Value, firsts: np.ndarray, low: int) -> Value:
    """Results that are one off at most: one more where x has reached the first value of the next, one less where it has
    not reached that of its own. `firsts`: of each result from `low` up, and of the one after the last."""
    index = b.sub(near, b.constant(np.asarray(low))) if low else near
    one, none = b.constant(np.asarray(1)), b.constant(np.asarray(0))
    own, following = (
        b.emit(Gather, [b.constant(table), index], TensorType(x.type.shape, i32), axis=0, batch_dims=0)
        for table in (firsts[:-1], firsts[1:])
    )
    more = b.select(b.greater_equal(x, following), one, none)
    return b.sub(b.add(near, more), b.select(b.greater(own, x), one, none))


def _looked_up(b: RuleBuilder, x: Value, region: Region, source: TensorType, bounds: tuple[int, int]) -> Converted:
    table = _values(region, source, np.arange(bounds[0], bounds[1] + 1))
    index = b.sub(x, b.constant(np.asarray(bounds[0]))) if bounds[0] else x
    entries = b.constant(table.astype(np.int32))
    out = b.emit(Gather, [entries, index], TensorType(x.type.shape, i32), axis=0, batch_dims=0)
    return Converted(out, (int(table.min()), int(table.max())))


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


# `stablehlo.uniform_quantize` and `uniform_dequantize`, with the specification's rounding.


@rule(UniformQuantize)
def uniform_quantize(op: UniformQuantize, b: RuleBuilder) -> Answer:
    """result = clamp(round half even(real / scale + zero_point))"""
    source, target = op.input.type, op.result.type
    made: Any = target.element
    if not isinstance(made, UniformQuantizedType) or made.expressed != f32:
        raise Refused("only one scale, of f32, is computed in integers")
    if not source.quantized:
        real: Value = b.op(
            "tfl.div",
            [b.value(op.input), b.constant(np.asarray(made.scale, np.float32), f32)],
            [source],
            {"fused_activation_function": "NONE"},
        ).result
        if made.zero_point:
            real = b.add(real, b.constant(np.asarray(made.zero_point, np.float32), f32))
        unit = UniformQuantizedType.of(made.storage, 1.0, 0, storage_min=made.storage_min, storage_max=made.storage_max)
        return b.scast(b.qcast(real, target.with_element(unit), "half_even"), target.stripped())
    given: Any = source.element
    if not isinstance(given, UniformQuantizedType):
        raise Refused("only one scale is computed in integers")
    region = rescale_region([given], [made])
    found = converted(b, b.value(op.input), region, source, (given.storage_min, given.storage_max))
    if isinstance(found, NotApplicable):
        raise Refused(str(found))
    return b.cast(found.value, made.storage)


@rule(UniformDequantize)
def uniform_dequantize(op: UniformDequantize, b: RuleBuilder) -> Answer:
    """result = (stored - zero_point) * scale"""
    if op.result.type.element != f32:
        raise Refused(f"TFLite dequantizes to f32, not to {op.result.type.storage}")
    return b.dcast(b.typed(op.input))
