"""SLICE and STRIDED_SLICE.

TOSA's SLICE has no strides. A stride of k along a dim: the window of n k elements around those that are wanted (padded
where it reaches past the end), as n rows of k, and one column of them. A negative stride is that of the reversed dim.
An element at an index that the model computes is gathered.
Kernels: slice.cc, strided_slice.cc (BuildStridedSliceParams), internal/strided_slice_logic.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.dialects.tfl.movement import Slice as TflSlice
from tflq.dialects.tfl.movement import StridedSlice
from tflq.dialects.tosa.movement import Reverse, Slice
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.tosa.lowering.indexing.gathering import as_index, gathered
from tflq.tosa.lowering.known import constant_of, dims_of, known_array, product
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import part, reshaped
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []


@lowering(Slice)
def slice_by_attributes(op: Slice, t: Tosa) -> Value:
    return t.slice(narrow(op.input, t), op.start, op.size)


@lowering(TflSlice)
def slice_(op: TflSlice, t: Tosa) -> Value:
    """A size of -1 is the rest."""
    x = narrow(op.input, t)
    begin = [int(b) for b in constant_of(op.begin, "begin").reshape(-1)]
    stated = [int(s) for s in constant_of(op.size, "size").reshape(-1)]
    size = [s if s >= 0 else None if d is None else d - b for d, b, s in zip(dims_of(x), begin, stated, strict=True)]
    return t.slice(x, begin, size)


@dataclass(frozen=True, slots=True)
class _Dim:
    """What is taken of one dim: `count` elements from `start`, `step` apart; None: all from `start` on."""

    start: int
    count: int | None
    step: int = 1


@lowering(StridedSlice)
def strided_slice(op: StridedSlice, t: Tosa) -> Value:
    """Each dim sliced, then those of stride, then dims dropped and added."""
    x = narrow(op.input, t)
    if known_array(op.begin) is None and _picks(op, dims_of(x)):
        return _picked(op, t, x)
    taken, shape = _interpret(op, dims_of(x))
    for axis, dim in enumerate(taken):
        if dim.step < 0:
            x = t.emit(Reverse, [x], axis=axis)
    taken = [_reversed(dim, size) for dim, size in zip(taken, dims_of(x), strict=True)]
    straight = [(d.start, d.count) if d.step == 1 else (0, size) for d, size in zip(taken, dims_of(x), strict=True)]
    x = t.slice(x, [start for start, _ in straight], [count for _, count in straight])
    for axis, dim in enumerate(taken):
        if dim.step != 1 and dim.count is not None:
            x = _strided(t, x, axis, dim.start, dim.count, dim.step)
    kept = iter(dims_of(x))
    dims = [1 if kind == "new" else (next(kept), kind)[0] for kind in shape]
    return reshaped(t, x, tuple(d for d, kind in zip(dims, shape, strict=True) if kind != "drop"))


def _picks(op: StridedSlice, shape: tuple[int | None, ...]) -> bool:
    """Whether of each dim all is taken, or one element of a known number, which is dropped."""
    strides = known_array(op.strides)
    if op.ellipsis_mask or op.new_axis_mask or strides is None:
        return False
    dropped, whole = op.shrink_axis_mask, op.begin_mask & op.end_mask
    return all(
        shape[row] is not None if dropped >> row & 1 else whole >> row & 1 and step == 1
        for row, step in enumerate(strides.reshape(-1).tolist())
    )


def _picked(op: StridedSlice, t: Tosa, x: Value) -> Value:
    """One element of each dropped dim, at an index of the run; a negative one counts from the end."""
    begin = as_index(t, op.begin)
    for row in reversed(range(dims_of(begin)[0] or 0)):
        if not op.shrink_axis_mask >> row & 1:
            continue
        last = (dims_of(x)[row] or 1) - 1
        zero = t.constant(np.zeros(1))
        index = zero if op.begin_mask >> row & 1 else t.slice(begin, [row], [1])
        index = t.select(t.greater_equal(index, zero), index, t.add(index, t.constant([last + 1])))
        inside = t.minimum(t.maximum(index, zero), t.constant([last]))
        x = gathered(t, x, t.reshape(inside, ()), row, 0)
    return x


def _reversed(dim: _Dim, size: int | None) -> _Dim:
    """The same elements of the reversed dim, if the step is negative."""
    if dim.step > 0 or size is None:
        return dim
    return _Dim(size - 1 - dim.start, dim.count, -dim.step)


def _interpret(op: StridedSlice, shape: tuple[int | None, ...]) -> tuple[list[_Dim], list[str]]:
    """What is taken of each dim of the operand, and the result's dims, dropped ones among them: "keep", "drop", "new".

    An ellipsis stands for one dim at least; what then exceeds the rank is disregarded (BuildStridedSliceParams).
    """
    stated = ((op.begin, "begin"), (op.end, "end"), (op.strides, "strides"))
    begin, end, strides = ([int(v) for v in constant_of(value, what).reshape(-1)] for value, what in stated)
    rows = len(begin)
    added = (op.new_axis_mask & ~op.ellipsis_mask & ((1 << rows) - 1)).bit_count()
    kinds: list[str] = []
    taken: list[_Dim] = []
    for row in range(rows):
        bit = 1 << row
        if op.ellipsis_mask & bit:
            for _ in range(max(1, len(shape) + added - rows + 1)):
                kinds.append("keep")
                taken.append(_Dim(0, None))
        elif op.new_axis_mask & bit:
            kinds.append("new")
        elif len(taken) < len(shape):
            last = begin[row] + end[row] if op.offset else end[row]
            first_open, last_open = bool(op.begin_mask & bit), bool(op.end_mask & bit)
            size = shape[len(taken)]
            if op.shrink_axis_mask & bit:
                kinds.append("drop")
                taken.append(_one(0 if first_open else begin[row], size))
            else:
                kinds.append("keep")
                bounds = slice(None if first_open else begin[row], None if last_open else last, strides[row])
                taken.append(_range(bounds, size))
    missing = len(shape) - len(taken)
    taken = [*taken, *[_Dim(0, None)] * max(missing, 0)][: len(shape)]
    kinds = [*kinds, *["keep"] * max(missing, 0)][: len(shape) + added]
    closed = [
        _Dim(d.start, None if s is None else s - d.start) if d.count is None else d
        for d, s in zip(taken, shape, strict=True)
    ]
    return closed, kinds


def _one(at: int, size: int | None) -> _Dim:
    """One index; a negative one counts from the end."""
    if at < 0 and size is None:
        raise Refused("an index from the end of a dim that is not known has no form in TOSA")
    return _Dim(at if at >= 0 else at + (size or 0), 1)


def _range(bounds: slice, size: int | None) -> _Dim:
    """A range of a dim, clipped to it."""
    if size is None:
        if bounds.step == 1 and bounds.stop is None and (bounds.start or 0) >= 0:
            return _Dim(bounds.start or 0, None)
        raise Refused("a range of a dim that is not known has no form in TOSA, unless it is the rest of it")
    taken = range(*bounds.indices(size))
    if not taken:
        raise Refused("a result without elements has no form in TOSA")
    return _Dim(taken.start, len(taken), taken.step)


def _strided(t: Tosa, x: Value, axis: int, start: int, count: int, step: int) -> Value:
    """`count` elements of a dim from `start`, `step` apart."""
    shape = dims_of(x)
    size = shape[axis] or 0
    if count == 1:
        return part(t, x, axis, start, 1)
    before, after = shape[:axis], shape[axis + 1 :]
    outer, inner = product(before), product(after)
    x = reshaped(t, x, (outer, size, inner))
    column = max(0, start + count * step - size)
    if column > min(start, step - 1):
        x, column = t.pad(x, [(0, 0), (0, column), (0, 0)]), 0
    x = part(t, x, 1, start - column, count * step)
    x = part(t, reshaped(t, x, (outer, count, step, inner)), 2, column, 1)
    return reshaped(t, x, (*before, count, *after))
