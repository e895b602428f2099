"""Layers of networks on images [N, H, W, C] and on vectors: what has a window, and what has none."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.harness import const

from resizing.sketch import NONE, Sketch
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedType, i1, i8, i16, i32, ui8


def _window(g: Sketch) -> dict[str, Any]:
    draw = g.draw
    strides = draw.one((1, 1), (1, 1), (2, 2), (2, 1), (3, 3))
    return {"padding": draw.one("SAME", "SAME", "VALID"), "stride_h": strides[0], "stride_w": strides[1]}


def convolution(g: Sketch, x: Value) -> Value:
    channels, out, k = g.shape(x)[3], g.draw.one(2, 3, 4), g.draw.one(1, 2, 3)
    window, dilation = _window(g), g.draw.one(1, 1, 1, 2)
    if window["stride_h"] > 1:
        dilation = 1
    weights = g.weights(out, k, g.draw.one(k, 1), channels)
    return g.emit(
        "conv_2d",
        [x, weights, g.bias(x, weights, out)],
        g.element(0.2),
        **window,
        dilation_h_factor=dilation,
        dilation_w_factor=dilation,
        fused_activation_function=g.draw.one("NONE", "RELU", "RELU6"),
        version=3,
    )


def depthwise(g: Sketch, x: Value) -> Value:
    channels, k = g.shape(x)[3], g.draw.one(2, 3)
    weights = g.weights(1, k, k, channels)
    return g.emit(
        "depthwise_conv_2d",
        [x, weights, g.bias(x, weights, channels)],
        g.element(0.1),
        **_window(g),
        depth_multiplier=1,
        dilation_h_factor=1,
        dilation_w_factor=1,
        **NONE,
        version=3,
    )


def pool(g: Sketch, x: Value) -> Value:
    k = g.draw.one(2, 3)
    name = g.draw.one("average_pool_2d", "max_pool_2d")
    return g.emit(name, [x], x.type.element, **_window(g), filter_height=k, filter_width=k, **NONE, version=2)


def activation(g: Sketch, x: Value) -> Value:
    name = g.draw.one("relu", "logistic", "tanh", "softmax", "leaky_relu", "hard_swish")
    if name == "hard_swish" and g.storage == i16:
        name = "relu"
    options: dict[str, Any] = {"leaky_relu": {"alpha": 0.25}, "softmax": {"beta": 1.0}}.get(name, {})
    fixed = {
        "logistic": {i8: (1 / 256, -128), ui8: (1 / 256, 0), i16: (1 / 32768, 0)},
        "tanh": {i8: (1 / 128, 0), ui8: (1 / 128, 128), i16: (1 / 32768, 0)},
        "softmax": {i8: (1 / 256, -128), ui8: (1 / 256, 0), i16: (1 / 32768, 0)},
    }.get(name)
    y = UniformQuantizedType.of(g.storage, *fixed[g.storage]) if fixed else g.element()
    return g.emit(name, [x], y, **options, version={"softmax": 3, "logistic": 3, "tanh": 3}.get(name, 1))


def per_channel(g: Sketch, x: Value) -> Value:
    """With a constant per channel, or of one number."""
    channels, name = g.shape(x)[-1], g.draw.one("add", "mul", "sub")
    other = g.constant(*g.draw.one((channels,), (1, channels), (1, 1, 1, channels), ()))
    operands = [x, other] if g.draw.chance(0.7) else [other, x]
    options = NONE if name == "mul" else {**NONE, "pot_scale_int16": False}
    return g.emit(name, operands, g.element(0.2 if name == "mul" else 0.1), **options, version=2)


def residual(g: Sketch, x: Value) -> Value:
    """x with a function of itself."""
    y = activation(g, x)
    name = g.draw.one("add", "mul", "maximum", "sub")
    if name == "maximum":
        again = g.emit("quantize", [y], x.type.element, version=2)
        return g.emit(name, [x, again], x.type.element)
    options = NONE if name == "mul" else {**NONE, "pot_scale_int16": False}
    return g.emit(name, [x, y], g.element(0.1), **options, version=2)


def gate(g: Sketch, x: Value) -> Value:
    """Squeeze and excitation: the mean over the image scales the channels."""
    mean = g.emit("mean", [x, g.ints(1, 2)], g.element(), keep_dims=True, version=2)
    channels = g.shape(x)[3]
    weights = g.weights(channels, 1, 1, channels)
    window = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    mixed = g.emit("conv_2d", [mean, weights, None], g.element(0.1), **window, **NONE, version=3)
    return g.emit("mul", [x, activation(g, mixed)], g.element(0.1), **NONE, version=2)


def concatenated(g: Sketch, x: Value) -> Value:
    """With itself, in any dim."""
    return g.emit("concatenation", [x, x], x.type.element, axis=g.draw.one(0, 1, 2, 3, -1), **NONE, version=2)


def padded(g: Sketch, x: Value) -> Value:
    rows = [[0, 0], [g.draw.whole(0, 2), 1], [1, g.draw.whole(0, 2)], [0, g.draw.one(0, 0, 1)]]
    pads = const(np.asarray(rows), i32, "pads")
    if g.draw.chance(0.3) and min(g.shape(x)[1:3]) > 2:
        rows[3] = [0, 0]
        return g.emit("mirror_pad", [x, const(np.asarray(rows), i32, "pads")], x.type.element, mode="REFLECT")
    return g.emit("pad", [x, pads], x.type.element, version=2)


def cut(g: Sketch, x: Value) -> Value:
    """SLICE or STRIDED_SLICE by constants that go to the end."""
    if g.draw.chance(0.5):
        begin = g.ints(0, *(g.draw.one(0, 1) if d > 1 else 0 for d in g.shape(x)[1:3]), 0)
        return g.emit("slice", [x, begin, g.ints(-1, -1, -1, -1)], x.type.element, version=2)
    masks = dict.fromkeys(("ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    bounds = g.ints(0, 0, 0, 0), g.ints(0, 0, 0, 0), g.ints(1, g.draw.one(1, 2), g.draw.one(1, 2, -1), 1)
    return g.emit("strided_slice", [x, *bounds], x.type.element, begin_mask=15, end_mask=15, **masks, version=2)


def turned(g: Sketch, x: Value) -> Value:
    if g.draw.chance(0.3):
        return g.emit("reverse_v2", [x, g.ints(g.draw.one(0, 1, 2))], x.type.element, version=3)
    order = g.ints(*g.draw.one((0, 2, 1, 3), (0, 1, 2, 3), (1, 0, 2, 3)))
    return g.emit("transpose", [x, order], x.type.element, version=2)


def selected(g: Sketch, x: Value) -> Value:
    """SELECT_V2 or SELECT by a comparison of elements."""
    y = g.emit("quantize", [residual(g, x)], x.type.element, version=2)
    which = g.emit("greater", [x, y], i1, version=2)
    if g.draw.chance(0.5):
        return g.emit("select", [which, x, y], x.type.element, version=2)
    other = const(np.full((), 3), x.type.element, "other") if g.draw.chance(0.5) else y
    return g.emit("select_v2", [which, x, other], x.type.element)


def divided(g: Sketch, x: Value) -> Value:
    """SPLIT of channels, joined the other way round."""
    channels = g.shape(x)[3]
    parts = 2 if channels % 2 == 0 else channels
    axis = const(np.asarray(3), i32, "axis")
    halves = g.op("split", [axis, x], [x.type.element] * parts, num_splits=parts, version=2).results
    if parts == 1:
        return halves[0]
    return g.emit("concatenation", list(reversed(halves)), x.type.element, axis=3, **NONE, version=2)


def depth(g: Sketch, x: Value) -> Value:
    _n, h, w, c = g.shape(x)
    if c % 4 == 0:
        return g.emit("depth_to_space", [x], x.type.element, block_size=2)
    if h % 2 or w % 2:
        return activation(g, x)
    return g.emit("space_to_depth", [x], x.type.element, block_size=2)


def mirrored(g: Sketch, x: Value) -> Value:
    """RESIZE to a constant size."""
    size = g.ints(g.draw.whole(1, 9), g.draw.whole(1, 9))
    name = g.draw.one("resize_bilinear", "resize_nearest_neighbor")
    half = g.draw.chance(0.5)
    options = {"align_corners": not half and g.draw.chance(0.3), "half_pixel_centers": half}
    return g.emit(name, [x, size], x.type.element, **options, version=3)


def highest(g: Sketch, x: Value) -> Value:
    """Highest, lowest or mean, kept as an image."""
    name = g.draw.one("reduce_max", "mean", "reduce_min")
    axes = g.draw.one((1,), (2,), (3,), (1, 2), (0,), (0, 1, 2))
    y = x.type.element if "reduce" in name else g.element(0.2)
    return g.emit(name, [x, g.ints(*axes)], y, keep_dims=True, version=2)


LAYERS = (
    convolution, convolution, depthwise, pool, activation, per_channel, residual, gate, concatenated, padded, cut,
    turned, selected, divided, depth, mirrored, highest,
)  # fmt: skip
"""Each makes an image of an image."""
