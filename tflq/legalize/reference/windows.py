"""REDUCE_WINDOW: stored integers reduced over windows, dim by dim.

    y = init op x[first] op x[first + dilation] ...

The kernel knows no scales. Sums and products wrap in the type that is stored: the same as in int32, narrowed at the
end. Along each dim the elements of all windows at one place are a strided slice. Source:
kernels/stablehlo_reduce_window.cc (reduce_window::ReduceWindowImpl).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tflq.dialects.tfl.movement import StridedSlice
from tflq.dialects.tfl.pooling import ReduceWindow
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i8, i16, i32, ui8
from tflq.legalize.reference.moved_parameters import seen_by_kernel
from tflq.legalize.reference.movement import COPIED
from tflq.legalize.rule import AS_STATED, Answer, NotApplicable, Rewritten, RuleBuilder

__all__ = ["COMBINE", "over_windows"]

Combine = Callable[[RuleBuilder, Value, Value], Value]

COMBINE: Mapping[str, Combine] = {
    "ADD": lambda b, x, y: b.add(x, y),
    "MUL": lambda b, x, y: b.mul(x, y),
    "MINIMUM": lambda b, x, y: b.minimum(x, y),
    "MAXIMUM": lambda b, x, y: b.maximum(x, y),
}
_EXTREMES = ("MINIMUM", "MAXIMUM")
_RAW = "REDUCE_WINDOW reduces the stored integers, whatever they stand for"


def reduce_window(op: ReduceWindow, b: RuleBuilder) -> Answer:
    """result = the stored integers of each window, reduced."""
    x, init, result = op.input, op.init, op.result
    storage, function = result.type.storage, op.reduce_function
    numbers = [op.operand(i) for i in range(2, 5)]
    if x.type.storage != storage or storage not in (i8, ui8, i16, i32) or function not in COMBINE:
        return NotApplicable(f"no form reduces {x.type.storage} to {storage} by {function}")
    if not x.type.is_static or not all(v.is_constant for v in numbers):
        return NotApplicable(f"the shape of '{x.name}' or of the windows is not known", f"{_RAW}: {AS_STATED}")
    extreme = function in _EXTREMES
    wide = storage if extreme else i32
    y = b.cast(b.value(x), wide)
    for axis, (size, stride, dilation) in enumerate(zip(*(v.array.reshape(-1).tolist() for v in numbers), strict=True)):
        y = over_windows(b, y, axis, size, stride, dilation, COMBINE[function])
    y = COMBINE[function](b, b.reshape(b.cast(b.value(init), wide), []), y)
    same = extreme and len({v.type.element for v in (x, init, result)}) == 1 and seen_by_kernel(x) != (0.0, 0)
    return Rewritten([b.cast(y, storage)], warning="" if same else COPIED if extreme else _RAW)


def over_windows(b: RuleBuilder, x: Value, axis: int, size: int, stride: int, dilation: int, combine: Combine) -> Value:
    """Windows of a size along one axis, reduced."""
    shape = [d or 0 for d in x.type.shape or ()]
    reach = (size - 1) * dilation + 1
    count = max((shape[axis] - reach) // stride + 1, 0)
    if size == stride == 1:
        return x
    total: Value | None = None
    for place in range(size):
        part = _strided(b, x, axis, place * dilation, count, stride)
        total = part if total is None else combine(b, total, part)
    return x if total is None else total


def _strided(b: RuleBuilder, x: Value, axis: int, start: int, count: int, stride: int) -> Value:
    """`count` elements along an axis, from a start on."""
    shape = [d or 0 for d in x.type.shape or ()]
    begin, end, strides = np.zeros(len(shape), np.int32), np.asarray(shape, np.int32), np.ones(len(shape), np.int32)
    begin[axis], end[axis], strides[axis] = start, start + (count - 1) * stride + 1 if count else start, stride
    masks = {f"{mask}_mask": 0 for mask in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    operands = [x, *(b.constant(v) for v in (begin, end, strides))]
    type = TensorType((*shape[:axis], count, *shape[axis + 1 :]), x.type.element)
    return b.emit(StridedSlice, operands, type, **masks, offset=False)
