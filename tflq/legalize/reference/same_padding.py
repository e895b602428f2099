"""SAME padding of an input whose height or width is known only when the model runs, computed by the model.

    total = max(ceil(size / stride) * stride + extent - stride - size, 0)    before = total // 2, after = total - before

`extent` is the filter's, dilation included. Source: kernels/padding.h. With a stride of 1 the size has no part in it.

What is missing to a multiple of the stride decides: m = ceil(size / stride) * stride - size, from 0 to stride - 1. It
is the length of a line: RANGE makes one of ceil(size / stride) elements, another as long as that times the stride, and
STRIDED_SLICE cuts `size` elements off. SHAPE reads how long the rest is, GATHER takes the amounts for it. An
interpreter runs these operators (and MUL, CONCATENATION) when it allocates, if what they read is known then. So PADV2
knows its result's size, and memory stays static, which FLOOR_MOD, SUB or MAXIMUM in their place would end. No line is
empty, since an empty tensor has no memory either: the rest is longer by one.
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
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def pad_same(b: RuleBuilder, x: Value, extents: Sequence[int], strides: Sequence[int], fill: int) -> Value:
    """x [N, H, W, C] with as much of `fill` around it as SAME padding has."""
    batch, *sizes, channels = x.type.shape or (None,) * 4
    shape = b.emit("tfl.shape", [x], TensorType((4,), i32), out_type="INT32")
    none = b.constant(np.zeros((1, 2), np.int32))
    amounts = [_amounts(b, shape, axis, e, s) for axis, e, s in zip((1, 2), extents, strides, strict=True)]
    paddings = b.concat([none, *amounts, none], 0, (4, 2))
    grown = [None if s is None or t > 1 else s + e - 1 for s, e, t in zip(sizes, extents, strides, strict=True)]
    padded = TensorType((batch, *grown, channels), x.type.element)
    return b.emit("tfl.padv2", [x, paddings, b.constant(np.asarray(fill), x.type.storage)], padded)


def _amounts(b: RuleBuilder, shape: Value, axis: int, extent: int, stride: int) -> Value:
    """What comes before and after along an axis: [1, 2]."""
    totals = np.maximum(np.arange(stride) + extent - stride, 0)
    pairs = np.stack([totals // 2, totals - totals // 2], 1)
    if stride == 1:
        return b.constant(pairs)
    place = b.constant([axis]), b.constant([axis + 1])
    starts = _line(b, _sliced(b, shape, *place, _NUMBER, shrink_axis_mask=1), stride)
    whole = b.mul(_length(b, starts), b.constant([stride]))
    line = _line(b, _sliced(b, whole, b.constant([0]), b.constant([1]), _NUMBER, shrink_axis_mask=1), 1)
    longer = b.concat([line, b.constant([0])], 0, (None,))
    rest = _sliced(b, longer, _sliced(b, shape, *place, _ONE), b.constant([0]), _LINE, end_mask=1)
    rows = b.constant(np.concatenate([pairs[:1], pairs]))
    return b.emit("tfl.gather", [rows, _length(b, rest)], TensorType((1, 2), i32), axis=0, batch_dims=0)


def _line(b: RuleBuilder, limit: Value, step: int) -> Value:
    """0, step, 2 step ... below a limit."""
    return b.emit("tfl.range", [b.constant(np.asarray(0)), limit, b.constant(np.asarray(step))], _LINE)


def _length(b: RuleBuilder, line: Value) -> Value:
    return b.emit("tfl.shape", [line], _ONE, out_type="INT32")


def _sliced(b: RuleBuilder, x: Value, begin: Value, end: Value, type: TensorType, **masks: int) -> Value:
    options = {**dict.fromkeys(_MASKS, 0), **masks, "offset": False}
    return b.emit("tfl.strided_slice", [x, begin, end, b.constant([1])], type, **options)
