"""How networks end: vectors of images, with sizes that are computed."""

from __future__ import annotations

import math

import numpy as np
from support.harness import const

from resizing.layers import activation
from resizing.sketch import NONE, Sketch
from tflq.ir.ops import Value
from tflq.ir.types import i32


def _dense(g: Sketch, x: Value, width: int) -> Value:
    weights = g.weights(3, width)
    options = {"weights_format": "DEFAULT", "keep_num_dims": g.draw.chance(0.3), "asymmetric_quantize_inputs": False}
    y = g.element(0.5)
    return g.emit("fully_connected", [x, weights, g.bias(x, weights, 3)], y, **options, **NONE, version=4)


def flattened(g: Sketch, x: Value) -> Value:
    """SHAPE → STRIDED_SLICE → PACK → RESHAPE, or a constant with -1."""
    count = math.prod(g.shape(x)[1:])
    shape = g.draw.one(g.pack(g.dim(x, 0), -1), g.pack(g.dim(x, 0), count), g.ints(-1, count))
    flat = g.emit("reshape", [x, shape], x.type.element, new_shape=None)
    return activation(g, _dense(g, flat, count))


def pooled(g: Sketch, x: Value) -> Value:
    """The mean over the image, then dense."""
    keep = g.draw.chance(0.4)
    mean = g.emit("mean", [x, g.ints(1, 2)], g.element(0.1), keep_dims=keep, version=2)
    if keep:
        squeezed = g.emit("squeeze", [mean], mean.type.element, squeeze_dims=np.asarray([1, 2], np.int32))
        mean = g.draw.one(squeezed, mean)
    return activation(g, _dense(g, mean, g.shape(x)[3]))


def tokens(g: Sketch, x: Value) -> Value:
    """[n, h·w, c] through a dense layer, as a transformer has it."""
    c = g.shape(x)[3]
    rows = g.emit("reshape", [x, g.pack(g.dim(x, 0), -1, c)], x.type.element, new_shape=None)
    weights = g.weights(3, c)
    options = {"weights_format": "DEFAULT", "keep_num_dims": True, "asymmetric_quantize_inputs": False}
    return g.emit("fully_connected", [rows, weights, None], g.element(0.5), **options, **NONE, version=4)


def indices(g: Sketch, x: Value) -> Value:
    axis = const(np.asarray(g.draw.one(1, 3, -1)), i32, "axis")
    return g.emit(g.draw.one("arg_max", "arg_min"), [x, axis], i32, output_type="INT32", version=2)


def first(g: Sketch, x: Value) -> Value:
    """The first of the batch, or the last column, without its dim."""
    masks = dict.fromkeys(("ellipsis_mask", "new_axis_mask"), 0)
    axis = g.draw.one(0, 1, 2)
    at = g.draw.one(0, -1)
    begin = g.ints(*(at if i == axis else 0 for i in range(4)))
    end = g.ints(*((at + 1 if at == 0 else 0) if i == axis else 0 for i in range(4)))
    masks |= {"begin_mask": 15 - (1 << axis), "end_mask": 15, "shrink_axis_mask": 1 << axis}
    return g.emit("strided_slice", [x, begin, end, g.ints(1, 1, 1, 1)], x.type.element, **masks, version=2)


def plain(g: Sketch, x: Value) -> Value:
    return x


HEADS = (flattened, pooled, pooled, tokens, indices, first, plain, plain, plain)
