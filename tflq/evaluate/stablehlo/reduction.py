"""reduce, reduce_window and select_and_scatter: conversions at the leaves and at the root of a schedule.

Source: the specification's `reduce`, `reduce_window` and `select_and_scatter`, and the proposal "StableHLO quantization
for reduction ops", which adds the conversions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from tflq.dialects.stablehlo.conversions import Accumulating
from tflq.dialects.stablehlo.convolution import Window
from tflq.dialects.stablehlo.reduction import Reduce
from tflq.dialects.stablehlo.windows import ReduceWindow, SelectAndScatter
from tflq.evaluate.registry import Run, evaluator, running
from tflq.evaluate.stablehlo.order import note_order
from tflq.evaluate.stablehlo.padding import dilated_and_padded, places
from tflq.evaluate.stablehlo.regions import apply
from tflq.evaluate.stablehlo.schedule import BODY, INIT, Schedule, left_to_right

__all__ = ["accumulate"]


def accumulate(
    op: Accumulating, inputs: Sequence[np.ndarray], inits: Sequence[np.ndarray], schedule: Schedule
) -> list[np.ndarray]:
    """What the functions of an op make of inputs [values, ...], a result for each place of the other dims."""
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
    kept = [i for i in range(inputs[0].ndim) if i not in dims]
    sizes = [inputs[0].shape[i] for i in kept]
    values = int(np.prod([inputs[0].shape[i] for i in dims], dtype=np.int64))
    note_order(op, values)
    return accumulate(op, [x.transpose(*dims, *kept).reshape(values, *sizes) for x in inputs], inits, schedule)


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
    """Which place of the operand, as the number of its element, each window selects; −1 if it holds none."""
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
        (kept,) = apply(op.regions[0], [best, value])
        taken = inside & ((chosen < 0) | ~kept.astype(bool))
        chosen, best = np.where(taken, number, chosen), np.where(taken, value, best)
    return chosen


_FORMS = {Reduce: _reduced, ReduceWindow: _of_windows, SelectAndScatter: _scattered}


@evaluator(Reduce, ReduceWindow, SelectAndScatter)
def _by_default(op: Accumulating, *arrays: np.ndarray) -> list[np.ndarray]:
    return _FORMS[type(op)](op, arrays, left_to_right)  # type: ignore[operator]


@running(Reduce, ReduceWindow, SelectAndScatter)
def _as_scheduled(op: Accumulating, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return _FORMS[type(op)](op, arrays, run.schedule or left_to_right)  # type: ignore[operator]
