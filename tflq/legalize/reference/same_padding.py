"""SAME padding of an input whose height or width is known only when the model runs, computed by the model.

    total = max(ceil(size / stride) * stride + extent - stride - size, 0)    before = total // 2, after = total - before

`extent` is the filter's, dilation included. Source: kernels/padding.h. With a stride of 1 the size has no part in it.

The amounts are lengths of lines: RANGE makes a line of ceil(size / stride) elements, STRIDED_SLICE cuts `size` elements
off another, and SHAPE reads how long the rest is. An interpreter runs these operators (and MUL, CONCATENATION, RESHAPE)
when it allocates, if what they read is known then. So PADV2 knows its result's size, and memory stays static, which
FLOOR_MOD, SUB or MAXIMUM in their place would end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.ir.core import Value
from tflq.ir.types import TensorType, i32
from tflq.legalize.rule import RuleBuilder

__all__ = ["pad_same"]

_LINE = TensorType((None,), i32)
_ONE = TensorType((1,), i32)
_NUMBER = TensorType((), i32)


def pad_same(b: RuleBuilder, x: Value, extents: Sequence[int], strides: Sequence[int], fill: int) -> Value:
    """x [N, H, W, C] with as much of `fill` around it as SAME padding has."""
    batch, *sizes, channels = x.type.shape or (None,) * 4
    shape = b.emit("tfl.shape", [x], TensorType((4,), i32), out_type="INT32")
    none = b.constant(np.zeros(2, np.int32))
    amounts = [none]
    for axis, (extent, stride) in enumerate(zip(extents, strides, strict=True), 1):
        amounts += _amounts(b, shape, axis, extent, stride)
    paddings = b.reshape(b.concat([*amounts, none], 0, (8,)), (4, 2))
    grown = [None if s is None or t > 1 else s + e - 1 for s, e, t in zip(sizes, extents, strides, strict=True)]
    padded = TensorType((batch, *grown, channels), x.type.element)
    return b.emit("tfl.padv2", [x, paddings, b.constant(np.asarray(fill), x.type.storage)], padded)


def _amounts(b: RuleBuilder, shape: Value, axis: int, extent: int, stride: int) -> list[Value]:
    """What comes before and after along an axis, as vectors of one or two elements."""
    if stride == 1:
        return [b.constant(np.asarray([(extent - 1) // 2, extent // 2]))]
    line = _line(b, _number(b, shape, axis), stride)
    whole = b.mul(_length(b, line), b.constant(np.asarray([stride])))
    rest = _line(b, _number(b, whole, 0), 1)
    if extent > stride:
        rest = b.concat([rest, b.constant(np.zeros(extent - stride, np.int32))], 0, (None,))
    elif extent < stride:
        rest = _from(b, rest, b.constant([stride - extent]))
    rest = _from(b, rest, _sliced(b, shape, b.constant([axis]), b.constant([axis + 1]), _ONE))
    return [_length(b, _from(b, rest, b.constant([1]), 2)), _length(b, _from(b, rest, b.constant([0]), 2))]


def _line(b: RuleBuilder, limit: Value, step: int) -> Value:
    """0, step, 2 step ... below a limit."""
    return b.emit("tfl.range", [b.constant(np.asarray(0)), limit, b.constant(np.asarray(step))], _LINE)


def _length(b: RuleBuilder, line: Value) -> Value:
    return b.emit("tfl.shape", [line], _ONE, out_type="INT32")


def _number(b: RuleBuilder, vector: Value, place: int) -> Value:
    """One element of a vector, as a scalar."""
    return _sliced(b, vector, b.constant([place]), b.constant([place + 1]), _NUMBER, shrink=1)


def _from(b: RuleBuilder, line: Value, begin: Value, step: int = 1) -> Value:
    """A line from a place on, every `step`th element; nothing if it is shorter."""
    return _sliced(b, line, begin, b.constant([0]), _LINE, step=step, to_end=1)


def _sliced(
    b: RuleBuilder,
    x: Value,
    begin: Value,
    end: Value,
    type: TensorType,
    *,
    step: int = 1,
    to_end: int = 0,
    shrink: int = 0,
) -> Value:
    masks = {"begin_mask": 0, "end_mask": to_end, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": shrink}
    return b.emit("tfl.strided_slice", [x, begin, end, b.constant([step])], type, **masks, offset=False)
