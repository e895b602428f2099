"""A small model of one operator for each signature that the coverage table has a row for.

An operator's entry says the shapes of its operands and results, its options, and which kind of signatures it comes in;
the kinds (`_KINDS`) say the element types. Files are made of them, so that every option has its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.flatbuffer.writer import write
from tflq.ir.core import Buffer, Function, Module, Op, Value, constant
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i1,
    i4,
    i8,
    i16,
    i32,
    i64,
    ui8,
)

__all__ = ["samples"]

Shape = tuple[int, ...]
STORED = (i8, ui8, i16)
_SCALE = 0.0625
_FIXED: Mapping[str, Callable[[ScalarType], tuple[float, int]]] = {
    "logistic": lambda t: (1 / (1 << t.bits - (t == i16)), 0 if t == i16 else t.minimum),
    "softmax": lambda t: (1 / (1 << t.bits - (t == i16)), 0 if t == i16 else t.minimum),
    "tanh": lambda t: (1 / (1 << t.bits - 1), 0 if t == i16 else (t.minimum + t.maximum + 1) // 2),
    "l2_normalization": lambda t: (1 / (1 << t.bits - 1), 0 if t == i16 else (t.minimum + t.maximum + 1) // 2),
    "log_softmax": lambda t: (16 / (1 << t.bits), t.maximum),
}
"""Scale and zero point of results that a kernel fixes."""


@dataclass(frozen=True)
class _Entry:
    """Shapes of quantized operands (x) and results (y), integer constants by their place among the operands."""

    x: tuple[Shape, ...] = ((2, 3),)
    y: tuple[Shape, ...] = ((2, 3),)
    integers: Mapping[int, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    result: ScalarType | None = None


def _movement(x: Shape, y: Shape, integers: Mapping[int, Any] | None = None, **options: Any) -> _Entry:
    return _Entry((x,), (y,), integers or {}, options)


_UNARY = (
    "abs ceil cos elu exp floor gelu hard_swish l2_normalization leaky_relu log log_softmax logistic neg relu relu6 "
    "relu_0_to_1 relu_n1_to_1 round rsqrt sign sin softmax sqrt square tanh zeros_like"
).split()
_BINARY = "add atan2 div floor_div floor_mod maximum minimum mul pow squared_difference sub".split()
_COMPARISONS = "equal greater greater_equal less less_equal not_equal".split()
_REDUCTIONS = "mean reduce_max reduce_min reduce_prod sum".split()
_TWO, _IMAGE = ((2, 3), (2, 3)), (1, 4, 4, 4)
_POOL = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}

_ENTRIES: Mapping[str, _Entry] = {
    **dict.fromkeys(_UNARY, _Entry(options={})),
    "leaky_relu": _Entry(options={"alpha": 0.25}),
    "softmax": _Entry(options={"beta": 1.0}),
    **dict.fromkeys(_BINARY, _Entry(_TWO)),
    **dict.fromkeys(_COMPARISONS, _Entry(_TWO, result=i1)),
    **dict.fromkeys(_REDUCTIONS, _Entry(y=((2,),), integers={1: [1]})),
    "add_n": _Entry(_TWO),
    "arg_max": _Entry(y=((2,),), integers={1: 1}, options={"output_type": "INT32"}, result=i32),
    "arg_min": _Entry(y=((2,),), integers={1: 1}, options={"output_type": "INT32"}, result=i32),
    "average_pool_2d": _Entry((_IMAGE,), ((1, 2, 2, 4),), options=_POOL),
    "max_pool_2d": _Entry((_IMAGE,), ((1, 2, 2, 4),), options=_POOL),
    "l2_pool_2d": _Entry((_IMAGE,), ((1, 2, 2, 4),), options=_POOL),
    "batch_matmul": _Entry(((2, 3, 4), (2, 4, 5)), ((2, 3, 5),)),
    "batch_to_space_nd": _movement((4, 2, 2, 1), (1, 4, 4, 1), {1: [2, 2], 2: [[0, 0], [0, 0]]}),
    "broadcast_to": _movement((1, 3), (2, 3), {1: [2, 3]}),
    "concatenation": _Entry(_TWO, ((2, 6),), options={"axis": 1}),
    "cumsum": _Entry(integers={1: 1}),
    "depth_to_space": _movement((1, 2, 2, 4), (1, 4, 4, 1), block_size=2),
    "dynamic_update_slice": _Entry(((2, 3), (1, 3)), integers={2: [0, 0]}),
    "expand_dims": _movement((2, 3), (1, 2, 3), {1: 0}),
    "gather": _movement((2, 3), (1, 3), {1: [1]}, axis=0, batch_dims=0),
    "gather_nd": _movement((2, 3), (1, 3), {1: [[1]]}),
    "local_response_normalization": _Entry(
        (_IMAGE,), (_IMAGE,), options={"radius": 1, "bias": 1.0, "alpha": 1.0, "beta": 0.5}
    ),
    "mirror_pad": _movement((2, 3), (4, 5), {1: [[1, 1], [1, 1]]}, mode="REFLECT"),
    "pack": _Entry(_TWO, ((2, 2, 3),), options={"values_count": 2, "axis": 0}),
    "pad": _movement((2, 3), (4, 3), {1: [[1, 1], [0, 0]]}),
    "padv2": _Entry(((2, 3), ()), ((4, 3),), {1: [[1, 1], [0, 0]]}),
    "prelu": _Entry(((2, 3), (3,))),
    "reshape": _movement((2, 3), (3, 2), {1: [3, 2]}, new_shape=np.asarray([3, 2], np.int32)),
    "resize_bilinear": _movement(_IMAGE, (1, 8, 8, 4), {1: [8, 8]}),
    "resize_nearest_neighbor": _movement(_IMAGE, (1, 8, 8, 4), {1: [8, 8]}),
    "reverse_sequence": _movement((2, 3), (2, 3), {1: [1, 2]}, seq_dim=1, batch_dim=0),
    "reverse_v2": _movement((2, 3), (2, 3), {1: [1]}),
    "scatter_nd": _Entry(((1, 3),), ((2, 3),), {0: [[1]], 2: [2, 3]}),
    "segment_sum": _Entry(((2, 3),), ((1, 3),), {1: [0, 0]}),
    "slice": _movement((2, 3), (1, 3), {1: [1, 0], 2: [1, 3]}),
    "space_to_batch_nd": _movement((1, 4, 4, 1), (4, 2, 2, 1), {1: [2, 2], 2: [[0, 0], [0, 0]]}),
    "space_to_depth": _movement((1, 4, 4, 1), (1, 2, 2, 4), block_size=2),
    "split": _Entry(((2, 4),), ((2, 2), (2, 2)), {0: 1}, {"num_splits": 2}),
    "split_v": _Entry(((2, 4),), ((2, 1), (2, 3)), {1: [1, 3], 2: 1}, {"num_splits": 2}),
    "squeeze": _movement((1, 3), (3,), squeeze_dims=np.asarray([0], np.int32)),
    "strided_slice": _movement((2, 3), (2, 1), {1: [0, 0], 2: [2, 2], 3: [1, 2]}),
    "tile": _movement((2, 3), (4, 3), {1: [2, 1]}),
    "transpose": _movement((2, 3), (3, 2), {1: [1, 0]}),
    "unpack": _Entry(((2, 3),), ((3,), (3,)), options={"num": 2, "axis": 0}),
}

_FIRST_VERSION = frozenset(
    (
        "add_n atan2 conv_3d cumsum depth_to_space dynamic_update_slice elu expand_dims gelu l2_pool_2d "
        "local_response_normalization prelu reshape reverse_sequence scatter_nd segment_sum squeeze zeros_like sign "
        "hard_swish ceil cos round square floor relu_0_to_1 batch_matmul split_v neg pow relu_n1_to_1 sin"
    ).split()
)
"""Operators without a second version, and those whose first has these types, too."""

_WINDOW = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
_WEIGHTED: Mapping[str, tuple[Shape, Shape, Shape, int, Mapping[str, Any]]] = {
    "conv_2d": (_IMAGE, (5, 2, 2, 4), (1, 3, 3, 5), 0, _WINDOW),
    "depthwise_conv_2d": (_IMAGE, (1, 2, 2, 4), (1, 3, 3, 4), 3, {**_WINDOW, "depth_multiplier": 1}),
    "fully_connected": ((2, 4), (5, 4), (2, 5), 0, {}),
    "transpose_conv": ((1, 3, 3, 4), (5, 2, 2, 4), (1, 4, 4, 5), 0, {"padding": "VALID", "stride_w": 1, "stride_h": 1}),
    "conv_3d": (
        (1, 3, 3, 3, 2),
        (2, 2, 2, 2, 3),
        (1, 2, 2, 2, 3),
        4,
        {**_WINDOW, "stride_d": 1, "dilation_d_factor": 1},
    ),
}
"""Input, filter and result shapes, the axis of the filter's channels, options."""


def samples() -> Iterator[tuple[str, bytes]]:
    """Each sample's name and file, in the order of operators."""
    for name in sorted({*_ENTRIES, *_WEIGHTED, "quantize", "dequantize"}):
        if name in _ENTRIES:
            yield from _plain(name, _ENTRIES[name])
        elif name in _WEIGHTED:
            yield from _weighted(name)
        else:
            yield from _casts(name)


def _element(storage: ScalarType, scale: float = _SCALE) -> UniformQuantizedType:
    return UniformQuantizedType.of(
        storage, scale, 0 if storage == i16 else (storage.minimum + storage.maximum) // 2 + 3
    )


def _plain(name: str, entry: _Entry) -> Iterator[tuple[str, bytes]]:
    for storage in STORED:
        yield f"{name} {storage}", _model(name, entry, [_element(storage)] * len(entry.x), _result(name, storage))
        if name not in _FIXED and entry.result is None:
            scales = [_SCALE / (i + 1) for i in range(len(entry.x))]
            elements = [_element(storage, scale) for scale in scales]
            yield f"{name} {storage} other scales", _model(name, entry, elements, _element(storage, _SCALE * 1.5))
    if name in ("add", "sub", "mul"):
        for place in (0, 1):
            axis = UniformQuantizedPerAxisType.of(i8, 1, [_SCALE, _SCALE / 2, _SCALE / 3], 0)
            mixed = [axis if i == place else _element(i8) for i in (0, 1)]
            yield f"{name} i8 per-axis operand {place}", _model(name, entry, mixed, _element(i8))


def _result(name: str, storage: ScalarType) -> UniformQuantizedType:
    if name in _FIXED:
        scale, zero = _FIXED[name](storage)
        return UniformQuantizedType.of(storage, scale, zero)
    return _element(storage)


def _model(name: str, entry: _Entry, elements: list[Any], result: ElementType) -> bytes:
    inputs = [Value(TensorType(shape, e), f"in{i}") for i, (shape, e) in enumerate(zip(entry.x, elements, strict=True))]
    operands: list[Value | None] = list(inputs)
    for place, data in sorted(entry.integers.items()):
        operands.insert(place, constant(np.asarray(data, np.int32), name=f"integers{place}"))
    results = [Value(TensorType(shape, entry.result or result), f"out{i}") for i, shape in enumerate(entry.y)]
    return _file(name, inputs, operands, results, entry.options)


def _file(
    name: str,
    inputs: list[Value],
    operands: list[Value | None],
    results: list[Value],
    options: Mapping[str, Any],
) -> bytes:
    version = 1 if name in _FIRST_VERSION else 3 if name in _WEIGHTED else 2
    op = Op("tfl." + name, operands, results, dict(options), info={"version": version})
    return bytes(write(Module([Function("main", inputs, results, [op])])))


def _weighted(name: str) -> Iterator[tuple[str, bytes]]:
    for x, w in ((i8, i8), (ui8, ui8), (i16, i8), (i8, i4), (f32, i8)):
        for per_axis in (False, True):
            yield f"{name} {x} × {w}" + (" per axis" if per_axis else ""), _weighted_model(name, x, w, per_axis)


def _weighted_model(name: str, x: ScalarType, w: ScalarType, per_axis: bool) -> bytes:
    x_shape, w_shape, y_shape, axis, options = _WEIGHTED[name]
    channels = w_shape[axis]
    real = x.is_float
    scales = _SCALE / (np.arange(channels) + 2)
    zero = 128 if w == ui8 else 0
    filter_type: ElementType = (
        UniformQuantizedPerAxisType.of(w, axis, scales, zero)
        if per_axis
        else UniformQuantizedType.of(w, scales[0], zero)
    )
    stored = np.arange(np.prod(w_shape)).reshape(w_shape) * 7 % (1 << w.bits) + w.minimum
    data = stored.astype(w.dtype)
    if w == i4:
        nibbles = np.append(data.reshape(-1).astype(np.uint8) & 15, np.zeros(data.size % 2, np.uint8))
        data = nibbles[::2] | nibbles[1::2] << 4
    weights = Value(TensorType(w_shape, filter_type), "weights", buffer=Buffer.of(data))
    wide = i64 if x == i16 else i32
    bias_scales = np.float32(_SCALE) * np.asarray(scales, np.float32)
    bias_type: ElementType = (
        f32
        if real
        else UniformQuantizedPerAxisType.of(wide, 0, bias_scales)
        if per_axis
        else UniformQuantizedType.of(wide, float(bias_scales[0]))
    )
    bias = Value(
        TensorType((channels,), bias_type),
        "bias",
        buffer=Buffer.of(np.arange(channels).astype(f32.dtype if real else wide.dtype)),
    )
    source = Value(TensorType(x_shape, x if real else _element(x)), "in0")
    result = Value(TensorType(y_shape, x if real else _element(x, 0.5)), "out0")
    operands: list[Value | None] = [source, weights, bias]
    if name == "transpose_conv":
        operands = [constant(np.asarray(y_shape, np.int32), name="shape"), weights, source, bias]
    return _file(name, [source], operands, [result], options)


def _casts(name: str) -> Iterator[tuple[str, bytes]]:
    pairs: list[tuple[ElementType, ElementType]] = [(f32, _element(s)) for s in STORED]
    if name == "dequantize":
        pairs = [(b, a) for a, b in pairs]
    else:
        pairs += [(_element(a), _element(b, _SCALE * 1.5)) for a in STORED for b in STORED]
    for a, b in pairs:
        source, result = Value(TensorType((2, 3), a), "in0"), Value(TensorType((2, 3), b), "out0")
        names = " → ".join(str(getattr(e, "storage", e)) for e in (a, b))
        yield f"{name} {names}", _file(name, [source], [source], [result], {})
