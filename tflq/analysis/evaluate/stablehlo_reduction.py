"""Evaluators of StableHLO's sums: dot_general, convolution, and the reductions, with conversions at the leaves and at
the root of a schedule.

Source: the specification's `reduce`, `reduce_window` and `select_and_scatter`, and the proposal "StableHLO quantization
for reduction ops", which adds the conversions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.analysis.evaluate.registry import Run, evaluate_block, evaluate_op, evaluator, running
from tflq.analysis.evaluate.stablehlo_elementwise import ELEMENTWISE, in_units, real, rounded_to, stored
from tflq.base.logs import WARNING, log
from tflq.dialects.constraints import integers
from tflq.dialects.stablehlo.convolution import Accumulating, Convolution, DotGeneral, Window, combiners
from tflq.dialects.stablehlo.elementwise import (
    Add,
    And,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Reduce,
    ReduceWindow,
    Return,
    SelectAndScatter,
    UniformQuantize,
    Xor,
)
from tflq.ir.ops import Op, Region, Value
from tflq.ir.types import TensorType

# Whether a reduction gives the same in every order: whether its body and its init values form a monoid.

_LATTICE: Final = (Maximum, Minimum, And, Or)


def note_order(op: Accumulating, count: int) -> None:
    """Warns if the result of an op over so many values depends on the order."""
    reason = order_dependence(op, count)
    if reason is not None:
        log(WARNING, "%s: the result depends on the order: %s", op.location or op.name, reason)


def order_dependence(op: Accumulating, count: int | None) -> str | None:
    """Why a reduction of so many values (None: unknown) depends on the order in which they are combined, or on how
    often an init value is; None if it does not."""
    functions = op.functions
    assert functions is not None
    if count is not None and count < 2:
        return None
    bodies = combiners(functions.body)
    if bodies is None:
        return "its body does more than combine two values by one op"
    reasons = (_of_body(op, index, body, count) for index, body in enumerate(bodies))
    return next((reason for reason in reasons if reason is not None), None)


def _of_body(op: Accumulating, index: int, body: Op, count: int | None) -> str | None:
    if isinstance(body, _LATTICE):
        return None
    kind = body.result.type
    if not kind.quantized:
        if kind.storage.is_float or not isinstance(body, (Add, Multiply, Xor)):
            return f"{body.name} of {kind.storage} is not associative"
        return None
    if not isinstance(body, Add):
        return f"{body.name} rounds and clamps each partial result"
    first = _init_units(op, index)
    if first is not None and first != 0:
        return f"the init value is {first} steps from zero, and may be added more than once"
    return leaves_bounds(op, index, kind, count)


def leaves_bounds(op: Accumulating, index: int, kind: TensorType, count: int | None) -> str | None:
    """Why partial sums of so many values and the init value may be clamped; None if they cannot."""
    element: Any = kind.element
    if units_of(op, index) is None:
        return "what input_conversion makes is not known to stay within the bounds of the accumulator"
    zero = int(in_units(kind, np.asarray(0)).item())
    low, high = (None, None) if count is None else sums_of(op, index, count)
    if low is None or high is None or low < element.storage_min + zero or high > element.storage_max + zero:
        return f"partial sums can leave the bounds <{element.storage_min}:{element.storage_max}> of the accumulator"
    return None


def sums_of(op: Accumulating, index: int, count: int) -> tuple[int, int]:
    """The least and greatest of any partial sum of so many values and the init value once, in steps of its
    scale."""
    least, greatest = units_of(op, index) or (0, 0)
    first = _init_units(op, index)
    start = (least, greatest) if first is None else (min(first, 0), max(first, 0))
    return least * count + start[0], greatest * count + start[1]


def units_of(op: Accumulating, index: int) -> tuple[int, int] | None:
    """The least and greatest that an input can be in the body, in steps of the accumulator's scale; None if unknown."""
    functions = op.functions
    assert functions is not None
    element: Any = op.inputs[index].type.element
    ends = np.array([element.storage_min, element.storage_max], np.int64)
    converted = _converted(functions.input_conversion, index, ends, op.inputs[index].type)
    if converted is None:
        return None
    values, kind = converted
    low, high = sorted(in_units(kind, values).tolist())
    return min(low, 0), max(high, 0)


def _converted(
    region: Region | None, index: int, values: np.ndarray, kind: TensorType
) -> tuple[np.ndarray, TensorType] | None:
    """Values through a conversion that is a rescale or the identity."""
    if region is None:
        return values, kind
    returned = region.block.ops[-1].operands[index]
    argument = region.block.arguments[index]
    if returned is argument:
        return values, kind
    step = None if returned is None else returned.producer
    if not isinstance(step, UniformQuantize) or step.input is not argument:
        return None
    results = evaluate_op(step, [values])
    return None if results is None else (results[0], step.result.type)


def _init_units(op: Accumulating, index: int) -> int | None:
    """An init value in steps of the accumulator's scale; None if it is unknown."""
    functions = op.functions
    assert functions is not None
    init: Value = op.inits[index]
    if not init.is_constant:
        return None
    converted = _converted(functions.input_conversion, index, init.array, init.type)
    return None if converted is None else int(in_units(converted[1], converted[0]).item())


# Windows are taken from elements spread apart, with a margin that may be negative.


def dilated_and_padded(
    x: np.ndarray, padding: Sequence[tuple[int, int]], dilations: Sequence[int], fill: np.ndarray | np.generic
) -> np.ndarray:
    """An array with `dilation - 1` elements `fill` between two elements of x along each dimension, and `padding`
    around.

    Negative padding cuts off.
    """
    spread = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape, dilations, strict=True)]
    sizes = [max(0, n + low + high) for n, (low, high) in zip(spread, padding, strict=True)]
    out = np.empty(sizes, x.dtype)
    out[...] = fill
    source, target = [], []
    for n, dilation, (low, _), size in zip(x.shape, dilations, padding, sizes, strict=True):
        first = max(0, -(low // dilation)) if low < 0 else 0
        last = min(n, -(-(size - low) // dilation)) if size > low else 0
        source.append(slice(first, max(first, last)))
        start = first * dilation + low
        target.append(
            slice(start, start + max(0, (last - first - 1)) * dilation + 1 if last > first else start, dilation)
        )
    out[tuple(target)] = x[tuple(source)]
    return out


def places(offset: Sequence[int], window: Window, counts: Sequence[int]) -> tuple[slice, ...]:
    """Where the elements at an offset in each window are in a padded array, which has `counts` windows along each
    dimension."""
    return tuple(
        slice(o * dilation, o * dilation + (count - 1) * stride + 1 if count else 0, stride)
        for o, dilation, stride, count in zip(offset, window.dilations, window.strides, counts, strict=True)
    )


# dot_general and convolution: sums of products, in the order of the specification's index spaces, each step rounded.
#
# Quantized operands are multiplied as the numbers that they stand for (`dequantize_op_quantize`,
# `hybrid_dequantize_then_op`).


@evaluator(DotGeneral)
def _dot_general(op: DotGeneral, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    numbers = op.numbers
    sides = []
    for right, (value, array) in enumerate(((op.lhs, a), (op.rhs, b))):
        free = numbers.free(array.ndim, right=bool(right))
        batching, contracting = numbers[right], numbers[2 + right]
        ordered = real(value.type, array).transpose(*batching, *contracting, *free)
        cut = len(batching), len(batching) + len(contracting)
        shape = ordered.shape
        batches, free_sizes = shape[: cut[0]], shape[cut[1] :]
        view = ordered.reshape((prod(batches), prod(shape[cut[0] : cut[1]]), prod(free_sizes)))
        sides.append((view, batches, free_sizes))
    (left, batches, rows), (right_side, _, columns) = sides
    kind = op.result.type
    total = np.zeros((left.shape[0], left.shape[2], right_side.shape[2]), _accumulator(left, right_side, op))
    with np.errstate(all="ignore"):
        for k in range(left.shape[1]):
            products = rounded_to(kind, left[:, k, :, None] * right_side[:, k, None, :])
            total = rounded_to(kind, total + products)
    return stored(kind, total.reshape((*batches, *rows, *columns)))


def _accumulator(left: np.ndarray, right: np.ndarray, op: DotGeneral | Convolution) -> np.dtype:
    """The type of the sums: for floats that of the operands, for integers that of the result."""
    if left.dtype.kind == "f" or op.result.type.quantized:
        return np.result_type(left, right)
    return op.result.type.storage.dtype


@evaluator(Convolution)
def _convolution(op: Convolution, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    numbers, spread = op.numbers, op.window
    assert numbers is not None
    assert spread is not None
    rank = len(spread.sizes)
    x = real(op.lhs.type, a).transpose(*numbers.input[:2], *numbers.input[2])
    w = real(op.rhs.type, b).transpose(numbers.kernel[1], numbers.kernel[0], *numbers.kernel[2])
    reversal = integers(op, "window_reversal", (0,) * rank) or ()
    groups, batches = op.feature_group_count, op.batch_group_count
    counts = tuple(int(n or 0) for n in spread.counts(x.shape[2:]))
    x = dilated_and_padded(x, ((0, 0), (0, 0), *spread.padding), (1, 1, *spread.base_dilations), x.dtype.type(0))
    parts = groups * batches
    # [parts, batch, feature, ...] and [parts, output feature, feature, ...]
    if batches > 1:
        x = x.reshape((batches, x.shape[0] // batches, *x.shape[1:]))
    else:
        x = x.reshape((x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])).swapaxes(0, 1)
    w = w.reshape((parts, w.shape[0] // parts, w.shape[1], prod(spread.sizes)))
    kind = op.result.type
    total = np.zeros((parts, x.shape[1], w.shape[1], *counts), _accumulator(x, w, op))
    with np.errstate(all="ignore"):
        for number, offset in enumerate(product(*map(range, spread.sizes))):
            at = [n - 1 - o if flag else o for o, n, flag in zip(offset, spread.sizes, reversal, strict=True)]
            place: tuple[Any, ...] = places(at, spread, counts)
            for feature in range(w.shape[2]):
                inputs = x[:, :, feature][(..., *place)][:, :, None]
                weights = w[:, :, feature, number].reshape(parts, 1, -1, *(1,) * rank)
                total = rounded_to(kind, total + rounded_to(kind, inputs * weights))
    joined = np.moveaxis(total, 0, 1).reshape((total.shape[1], parts * total.shape[2], *counts))
    order = (*numbers.output[:2], *numbers.output[2])
    return stored(kind, joined.transpose(np.argsort(order)))


# Functions that regions hold, on whole arrays: of ops that compute element by element all at once, else one by one.


def apply(region: Region | None, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a region on scalars, for all places of arrays of one shape; without a region the arrays.
    NotImplementedError if an op in it has no evaluator, or it uses what is computed outside."""
    if region is None:
        return list(arrays)
    shape = arrays[0].shape
    if all(type(op) in ELEMENTWISE or isinstance(op, Return) for op in region.block.ops):
        return [np.broadcast_to(result, shape) for result in _once(region, arrays)]
    results = [np.empty(shape, v.type.storage.dtype) for v in region.block.ops[-1].operands if v is not None]
    for place in np.ndindex(*shape):
        for result, element in zip(results, _once(region, [a[place] for a in arrays]), strict=True):
            result[place] = element
    return results


def _once(region: Region, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    def compute(op: Op, operands: list[np.ndarray | None]) -> list[np.ndarray]:
        results = evaluate_op(op, operands)
        if results is None:
            raise NotImplementedError(f"{op.name} has no evaluator")
        return results

    def outside(value: Value) -> np.ndarray:
        if not value.is_constant:
            raise NotImplementedError(f"a region uses {value.label}, which is computed outside of it")
        return value.array

    return evaluate_block(region.block, [np.asarray(a) for a in arrays], compute, outside)


# The order in which a reduction combines its values: a full binary tree whose leaves, from left to right, are the
# values in ascending order of their index, with init values anywhere among them.
#
# A tree is written in postfix order: the number of a value, `INIT`, or `BODY`, which combines the two before it.


Schedule: TypeAlias = Callable[[int], Sequence[int]]
"""The tree for a number of values."""

INIT: Final = -1
BODY: Final = -2


def left_to_right(count: int) -> list[int]:
    """The init value once, then one value after the other: the default."""
    return [INIT, *(step for value in range(count) for step in (value, BODY))]


def accumulate(
    op: Accumulating, inputs: Sequence[np.ndarray], inits: Sequence[np.ndarray], schedule: Schedule
) -> list[np.ndarray]:
    """The results of an op's functions on inputs [values, ...], one for each place of the other dims."""
    functions = op.functions
    assert functions is not None
    count, shape = inputs[0].shape[0], inputs[0].shape[1:]
    first = apply(functions.input_conversion, [np.broadcast_to(init, shape) for init in inits])
    leaves = apply(functions.input_conversion, inputs)
    stack: list[list[np.ndarray]] = []
    for step in schedule(count):
        if step == BODY:
            right, left = stack.pop(), stack.pop()
            stack.append(apply(functions.body, [*left, *right]))
        else:
            stack.append(first if step == INIT else [leaf[step] for leaf in leaves])
    (root,) = stack
    return apply(functions.output_conversion, root)


def _split(op: Reduce | ReduceWindow, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    half = len(arrays) // 2
    return list(arrays[:half]), list(arrays[half:])


def _reduced(op: Reduce, arrays: Sequence[np.ndarray], schedule: Schedule) -> list[np.ndarray]:
    inputs, inits = _split(op, arrays)
    dims = sorted(op.dimensions)
    remaining = [i for i in range(inputs[0].ndim) if i not in dims]
    sizes = [inputs[0].shape[i] for i in remaining]
    values = int(np.prod([inputs[0].shape[i] for i in dims], dtype=np.int64))
    note_order(op, values)
    return accumulate(op, [x.transpose(*dims, *remaining).reshape(values, *sizes) for x in inputs], inits, schedule)


def _of_windows(op: ReduceWindow, arrays: Sequence[np.ndarray], schedule: Schedule) -> list[np.ndarray]:
    inputs, inits = _split(op, arrays)
    spread = op.window
    assert spread is not None
    note_order(op, int(np.prod(spread.sizes, dtype=np.int64)))
    return accumulate(op, [_windows(x, init, spread) for x, init in zip(inputs, inits, strict=True)], inits, schedule)


def _windows(x: np.ndarray, fill: np.ndarray, spread: Window) -> np.ndarray:
    """[values of a window, windows along each dim]"""
    counts = [int(n or 0) for n in spread.counts(x.shape)]
    padded = dilated_and_padded(x, spread.padding, spread.base_dilations, fill)
    return np.stack([padded[places(offset, spread, counts)] for offset in product(*map(range, spread.sizes))])


def _scattered(op: SelectAndScatter, arrays: Sequence[np.ndarray], schedule: Schedule) -> list[np.ndarray]:
    x, source, init = arrays
    spread = op.window
    assert spread is not None
    place = _selected(op, x, source.shape, spread).reshape(-1)
    values = source.reshape(-1)
    hit = np.flatnonzero(place >= 0)
    order = hit[np.argsort(place[hit], kind="stable")]  # by place, then by index
    places, starts, counts = np.unique(place[order], return_index=True, return_counts=True)
    note_order(op, int(counts.max(initial=0)))
    out = np.empty(x.size, op.result.type.storage.dtype)
    out[...] = accumulate(op, [np.empty((0, x.size), x.dtype)], [init], schedule)[0]
    for count in np.unique(counts):
        these = np.flatnonzero(counts == count)
        index = order[starts[these][None, :] + np.arange(count)[:, None]]
        out[places[these]] = accumulate(op, [values[index]], [init], schedule)[0]
    return [out.reshape(x.shape)]


def _selected(op: SelectAndScatter, x: np.ndarray, sources: tuple[int, ...], spread: Window) -> np.ndarray:
    """The number of the operand's element that each window selects; −1 if a window holds none."""
    grids = np.meshgrid(*map(np.arange, sources), indexing="ij") if sources else []
    chosen = np.full(sources, -1, np.int64)
    best = np.zeros(sources, x.dtype)
    strides = [int(np.prod(x.shape[i + 1 :], dtype=np.int64)) for i in range(x.ndim)]
    for offset in product(*map(range, spread.sizes)):
        at = [
            grid * stride - low + o
            for grid, stride, (low, _), o in zip(grids, spread.strides, spread.padding, offset, strict=True)
        ]
        inside = np.ones(sources, bool)
        number = np.zeros(sources, np.int64)
        for index, size, step in zip(at, x.shape, strides, strict=True):
            inside &= (index >= 0) & (index < size)
            number += np.clip(index, 0, max(size - 1, 0)) * step
        if not x.size:
            continue
        value = x.reshape(-1)[number]
        (keeps,) = apply(op.regions[0], [best, value])
        replaces = inside & ((chosen < 0) | ~keeps.astype(bool))
        chosen, best = np.where(replaces, number, chosen), np.where(replaces, value, best)
    return chosen


_FORMS = {Reduce: _reduced, ReduceWindow: _of_windows, SelectAndScatter: _scattered}


@evaluator(Reduce, ReduceWindow, SelectAndScatter)
def _by_default(op: Accumulating, *arrays: np.ndarray) -> list[np.ndarray]:
    return _FORMS[type(op)](op, arrays, left_to_right)  # type: ignore[operator]


@running(Reduce, ReduceWindow, SelectAndScatter)
def _as_scheduled(op: Accumulating, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return _FORMS[type(op)](op, arrays, run.schedule or left_to_right)  # type: ignore[operator]
