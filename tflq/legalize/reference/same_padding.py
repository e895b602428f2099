"""SAME padding of an input whose height or width is known only when the model runs, computed by the model.

    total = max(extent - stride + (-size mod stride), 0)        before = total // 2, after = total - before

which is what ceil(size / stride) outputs need. `extent` is the filter's, dilation included. Source: kernels/padding.h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.ir.core import Value
from tflq.ir.types import TensorType, i32
from tflq.legalize.rule import RuleBuilder

__all__ = ["pad_same"]


def pad_same(b: RuleBuilder, x: Value, extents: Sequence[int], strides: Sequence[int], fill: int) -> Value:
    """x [N, H, W, C] with as much of `fill` around it as SAME padding has."""
    pair = TensorType((2,), i32)
    shape = b.emit("tfl.shape", [x], TensorType((4,), i32), out_type="INT32")
    size = b.emit("tosa.slice", [shape], pair, start=(1,), size=(2,))
    stride = b.constant(np.asarray(strides))
    missing = b.emit("tfl.floor_mod", [b.sub(b.constant(np.asarray([0, 0])), size), stride], pair)
    excess = b.constant(np.asarray(extents) - np.asarray(strides))
    total = b.maximum(b.add(missing, excess), b.constant(np.asarray([0, 0])))
    before = b.emit("tfl.floor_div", [total, b.constant(np.asarray([2, 2]))], pair)
    columns = [b.reshape(side, (2, 1)) for side in (before, b.sub(total, before))]
    none = b.constant(np.zeros((1, 2), np.int32))
    paddings = b.concat([none, b.concat(columns, 1, (2, 2)), none], 0, (4, 2))
    batch, _, _, channels = x.type.shape or (None,) * 4
    padded = TensorType((batch, None, None, channels), x.type.element)
    return b.emit("tfl.padv2", [x, paddings, b.constant(np.asarray(fill), x.type.storage)], padded)
