"""What converters make of `tf.shape`: sizes computed from SHAPE, and operators that go by them."""

from __future__ import annotations

import math

import numpy as np
from support.harness import const

from resizing.layers import activation
from resizing.sketch import NONE, Size, Sketch
from tflq.ir.ops import Value
from tflq.ir.types import i1, i32


def _batch(g: Sketch, x: Value) -> Size:
    return g.dim(x, 0)


def folded(g: Sketch, x: Value) -> Value:
    """[n, h, w, c] → [n, h·w, c], transposed or multiplied, and back."""
    _n, _h, _w, c = g.shape(x)
    batch, height, width = (g.dim(x, i) for i in range(3))
    area: Size = g.compute("mul", height, width) if g.draw.chance(0.5) else -1
    rows = g.emit("reshape", [x, g.pack(batch, area, c)], x.type.element, new_shape=None)
    kind = g.draw.one("product", "softmax", "none")
    if kind == "product":
        rows = g.emit("batch_matmul", [rows, g.weights(c, c)], g.element(0.2), adj_x=False, adj_y=False)
    elif kind == "softmax":
        rows = activation(g, rows)
    sizes: list[Size] = [batch, height, width, c]
    if g.draw.chance(0.6):
        sizes[g.draw.one(0, 3)] = -1
    back = g.pack(*sizes)
    return g.emit("reshape", [rows, back], rows.type.element, new_shape=None)


def attention(g: Sketch, x: Value) -> Value:
    """The product of the rows of an image with themselves."""
    c = g.shape(x)[3]
    batch, height, width = (g.dim(x, i) for i in range(3))
    rows = g.emit("reshape", [x, g.pack(batch, -1, c)], x.type.element, new_shape=None)
    scores = g.emit("batch_matmul", [rows, rows], g.element(0.2), adj_x=False, adj_y=True)
    mixed = g.emit("batch_matmul", [activation(g, scores), rows], g.element(0.2), adj_x=False, adj_y=False)
    return g.emit("reshape", [mixed, g.pack(batch, height, width, c)], mixed.type.element, new_shape=None)


def stated(g: Sketch, x: Value) -> Value:
    """RESHAPE by constants: the sizes that are stated, or -1 in the place of one."""
    sizes = list(g.shape(x))
    sizes[g.draw.one(0, 0, 1, 2)] = -1
    if g.draw.chance(0.4):
        sizes = [-1, 1, math.prod(g.shape(x)[1:3]), sizes[3]]
    shape = np.asarray(sizes, np.int32)
    return g.emit("reshape", [x, g.ints(*sizes)], x.type.element, new_shape=shape)


def resized(g: Sketch, x: Value) -> Value:
    """RESIZE to twice the size, to half of it, or to that of an input."""
    name = g.draw.one("resize_bilinear", "resize_nearest_neighbor")
    others = [v for v in g.inputs if g.image(v)]
    kind = g.draw.one("twice", "half", "input")
    if kind == "input" and others:
        size = g.dims(g.draw.one(*others), 1, 3)
    elif kind == "twice":
        size = g.emit("mul", [g.dims(x, 1, 3), g.ints(2, 2)], i32, **NONE)
    else:
        more = g.emit("add", [g.dims(x, 1, 3), g.ints(1, 1)], i32, **NONE, pot_scale_int16=False)
        size = g.emit("floor_div", [more, g.ints(2, 2)], i32)
    half = g.draw.chance(0.5)
    options = {"align_corners": not half and g.draw.chance(0.3), "half_pixel_centers": half}
    return g.emit(name, [x, size], x.type.element, **options, version=3)


def padded(g: Sketch, x: Value) -> Value:
    """PAD to a multiple of 4, as computed."""
    rows = []
    for axis in (1, 2):
        rest = g.compute("floor_mod", g.dim(x, axis), 4)
        rows.append(g.pack(*g.draw.one((0, 1), (1, 0)) if g.draw.chance(0.2) else (0, g.compute("sub", 4, rest))))
    none = g.ints(0, 0)
    pads = g.emit("pack", [none, *rows, none], i32, values_count=4, axis=0)
    return g.emit("pad", [x, pads], x.type.element, version=2)


def cut(g: Sketch, x: Value) -> Value:
    """x[:, : h - 1], by STRIDED_SLICE, or by SLICE with PACK."""
    _n, h, _w, c = g.shape(x)
    height = g.dim(x, 1)
    less = g.compute("sub", height, 1) if h > 1 else height
    if g.draw.chance(0.5):
        begin, size = g.ints(0, 0, 0, 0), g.pack(g.dim(x, 0), less, g.dim(x, 2), c)
        return g.emit("slice", [x, begin, size], x.type.element, version=2)
    masks = dict.fromkeys(("ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    bounds = g.ints(0, 0, 0, 0), g.pack(0, less, 0, 0), g.ints(1, 1, 1, 1)
    return g.emit("strided_slice", [x, *bounds], x.type.element, begin_mask=15, end_mask=13, **masks, version=2)


def deconvolved(g: Sketch, x: Value) -> Value:
    """TRANSPOSE_CONV to twice the size."""
    c, out, k = g.shape(x)[3], g.draw.one(2, 3), g.draw.one(2, 3)
    sizes = [g.compute("mul", g.dim(x, axis), 2) for axis in (1, 2)]
    shape = g.pack(g.dim(x, 0), *sizes, out)
    window = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    weights = g.weights(out, k, k, c)
    bias = g.bias(x, weights, out) if g.draw.chance(0.5) else None
    return g.emit("transpose_conv", [shape, weights, x, bias], g.element(0.2), **window, **NONE, version=3)


def spread(g: Sketch, x: Value) -> Value:
    """A constant, broadcast to the shape of x, filled, or repeated for the batch, and added."""
    _n, _h, _w, c = g.shape(x)
    kind = g.draw.one("broadcast", "fill", "tile", "expand", "args")
    if kind == "broadcast":
        other = g.emit("broadcast_to", [k := g.constant(1, 1, 1, c), g.size_of(x)], k.type.element, version=3)
    elif kind == "fill":
        value = const(np.asarray(3), x.type.element, "value")
        other = g.emit("fill", [g.size_of(x), value], x.type.element, version=3)
    elif kind == "tile":
        k = g.constant(1, 1, 1, c)
        other = g.emit("tile", [k, g.pack(g.dim(x, 0), g.dim(x, 1), 1, 1)], k.type.element, version=2)
    elif kind == "expand":
        k = g.constant(1, c)
        rows = g.emit("tile", [k, g.pack(g.dim(x, 0), 1)], k.type.element, version=2)
        other = g.emit("expand_dims", [rows, g.ints(1)], k.type.element)
        other = g.emit("expand_dims", [other, g.ints(1)], k.type.element)
    else:
        k = g.constant(1, 1, c)
        both = g.emit("broadcast_args", [g.size_of(x), g.ints(1, 1, c)], i32)
        other = g.emit("broadcast_to", [k, both], k.type.element, version=3)
    if kind == "fill" and g.draw.chance(0.3):
        return g.emit("concatenation", [x, other], x.type.element, axis=3, **NONE, version=2)
    operands = [x, other] if g.draw.chance(0.7) else [other, x]
    return g.emit("add", operands, g.element(0.1), **NONE, pot_scale_int16=False, version=2)


def gathered(g: Sketch, x: Value) -> Value:
    """GATHER by RANGE of a size, of the batch, the height or the width; sometimes backwards."""
    axis = g.draw.one(0, 1, 2)
    size = g.dim(x, axis)
    if g.draw.chance(0.4):
        last = g.compute("sub", size, 1)
        indices = g.emit("range", [last, g.number(-1), g.number(-1)], i32)
    elif g.draw.chance(0.4):
        indices = g.emit("range", [g.number(0), size, g.number(2)], i32)
    else:
        indices = g.emit("range", [g.number(0), size, g.number(1)], i32)
        half = g.emit("floor_div", [indices, g.number(2)], i32)
        indices = g.draw.one(half, indices)
    return g.emit("gather", [x, indices], x.type.element, axis=axis, batch_dims=0, version=2)


def picked(g: Sketch, x: Value) -> Value:
    """GATHER of constants, GATHER_ND, or of the last of a size that is computed."""
    axis = g.draw.one(0, 1, 2, 3)
    if g.draw.chance(0.4):
        last = g.compute("sub", g.dim(x, axis), 1)
        indices = g.emit("reshape", [last, g.ints(1)], i32, new_shape=None)
    else:
        indices = g.ints(*(g.draw.one(0, g.shape(x)[axis] - 1) for _ in range(g.draw.one(1, 2))))
    return g.emit("gather", [x, indices], x.type.element, axis=axis, batch_dims=0, version=2)


def chosen(g: Sketch, x: Value) -> Value:
    """SELECT of a size, or of a tensor, by a comparison of sizes."""
    n = g.dim(x, g.draw.one(0, 0, 1))
    which = g.emit(g.draw.one("equal", "greater", "less"), [n, g.number(g.draw.one(1, 2))], i1)
    if g.draw.chance(0.4):
        name = g.draw.one("select_v2", "select")
        size = g.emit(name, [which, n, g.number(g.shape(x)[0])], i32)
        row = g.emit("reshape", [g.compute("sub", size, size), g.ints(1)], i32, new_shape=None)
        return g.emit("gather", [x, row], x.type.element, axis=0, batch_dims=0, version=2)
    other = g.emit("quantize", [activation(g, x)], x.type.element, version=2)
    return g.emit("select_v2", [which, x, other], x.type.element)


def masked(g: Sketch, x: Value) -> Value:
    """SELECT_V2 by LESS of a RANGE of the width: a mask that grows with it."""
    width = g.dim(x, 2)
    steps = g.emit("range", [g.number(0), width, g.number(1)], i32)
    shaped = g.emit("reshape", [steps, g.ints(1, 1, -1, 1)], i32, new_shape=None)
    which = g.emit("less", [shaped, g.number(2)], i1)
    other = const(np.asarray(0), x.type.element, "other")
    return g.emit("select_v2", [which, x, other], x.type.element)


def steady(g: Sketch, x: Value) -> Value:
    """SELECT by a vector of booleans of the batch: which rows are kept."""
    batch = g.dim(x, 0)
    rows = g.emit("range", [g.number(0), batch, g.number(1)], i32)
    which = g.emit("equal", [rows, g.number(0)], i1)
    other = g.emit("quantize", [activation(g, x)], x.type.element, version=2)
    return g.emit("select", [which, x, other], x.type.element, version=2)


def with_ones(g: Sketch, x: Value) -> Value:
    """EXPAND_DIMS, TILE by constants or sizes, and RESHAPE by sizes: nearest neighbours as Keras had them."""
    _n, _h, _w, c = g.shape(x)
    deep = g.emit("expand_dims", [x, g.ints(2)], x.type.element)
    twice = g.emit("tile", [deep, g.ints(1, 1, 2, 1, 1)], x.type.element, version=2)
    shape = g.pack(g.dim(x, 0), g.compute("mul", g.dim(x, 1), 2), g.dim(x, 2), c)
    return g.emit("reshape", [twice, shape], x.type.element, new_shape=None)


def rows_of_batch(g: Sketch, x: Value) -> Value:
    """Batch and height as one dim, as TimeDistributed has them, and back."""
    _n, _h, _w, c = g.shape(x)
    batch, height, width = (g.dim(x, i) for i in range(3))
    flat = g.emit("reshape", [x, g.pack(-1, width, c)], x.type.element, new_shape=None)
    done = activation(g, flat)
    return g.emit("reshape", [done, g.pack(batch, height, width, c)], done.type.element, new_shape=None)


COMPUTED = (
    folded, attention, stated, resized, padded, cut, deconvolved, spread, spread, gathered, gathered, picked, chosen,
    masked, steady, with_ones, rows_of_batch,
)  # fmt: skip
"""Each makes an image of an image."""
