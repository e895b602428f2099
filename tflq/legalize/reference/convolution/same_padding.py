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

from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tfl.movement import PadV2
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i32
from tflq.legalize.reference.generic.allocated import element, line, shape_of, sliced
from tflq.legalize.rule import RuleBuilder

__all__ = ["pad_same"]

_LINE = TensorType((None,), i32)
_ONE = TensorType((1,), i32)


def pad_same(b: RuleBuilder, x: Value, extents: Sequence[int], strides: Sequence[int], fill: int) -> Value:
    """x [N, H, W, C] with as much of `fill` around it as SAME padding has."""
    batch, *sizes, channels = x.type.shape or (None,) * 4
    shape = shape_of(b, x, 4)
    none = b.constant(np.zeros((1, 2), np.int32))
    amounts = [_amounts(b, shape, axis, e, s) for axis, e, s in zip((1, 2), extents, strides, strict=True)]
    paddings = b.concat([none, *amounts, none], 0)
    grown = [None if s is None or t > 1 else s + e - 1 for s, e, t in zip(sizes, extents, strides, strict=True)]
    padded = TensorType((batch, *grown, channels), x.type.element)
    return b.emit(PadV2, [x, paddings, b.constant(np.asarray(fill), x.type.storage)], padded)


def _amounts(b: RuleBuilder, shape: Value, axis: int, extent: int, stride: int) -> Value:
    """What comes before and after along an axis: [1, 2]."""
    totals = np.maximum(np.arange(stride) + extent - stride, 0)
    pairs = np.stack([totals // 2, totals - totals // 2], 1)
    if stride == 1:
        return b.constant(pairs)
    starts = line(b, element(b, shape, axis), stride)
    whole = b.mul(shape_of(b, starts, 1), b.constant([stride]))
    longer = b.concat([line(b, element(b, whole, 0)), b.constant([0])], 0)
    size = sliced(b, shape, b.constant([axis]), b.constant([axis + 1]), _ONE)
    rest = sliced(b, longer, size, b.constant([0]), _LINE, end_mask=1)
    rows = b.constant(np.concatenate([pairs[:1], pairs]))
    return b.emit(Gather, [rows, shape_of(b, rest, 1)], TensorType((1, 2), i32), axis=0, batch_dims=0)
