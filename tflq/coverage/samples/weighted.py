"""Operators with constant weights: convolutions, FULLY_CONNECTED, BATCH_MATMUL and EMBEDDING_LOOKUP.

Activations of int8, uint8, int16 or float (hybrid) meet weights of int8, uint8, int4 or int16, with one scale, one per
output channel, or one per block of the last dim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from tflq.coverage.samples.entry import SCALE, Shaped, file_of, per_layer, stored
from tflq.ir.core import Value, constant
from tflq.ir.types import (
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f32,
    i4,
    i8,
    i16,
    i32,
    i64,
    ui8,
)

__all__ = ["SAMPLES"]


@dataclass(frozen=True)
class _Weighted:
    """Shapes of input, filter and result; the filter's axis of channels; whether the result's shape is an operand."""

    x: Shaped
    w: Shaped
    y: Shaped
    axis: int
    options: Mapping[str, Any] = field(default_factory=dict)
    shaped: bool = False
    biased: bool = True


_IMAGE, _VOLUME = (1, 4, 4, 4), (1, 3, 3, 3, 2)
_WINDOW = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
_WINDOW_3D = {**_WINDOW, "stride_d": 1, "dilation_d_factor": 1}
_OPERATORS: Mapping[str, _Weighted] = {
    "batch_matmul": _Weighted((2, 3, 4), (4, 5), (2, 3, 5), 1, biased=False),
    "conv_2d": _Weighted(_IMAGE, (5, 2, 2, 4), (1, 3, 3, 5), 0, _WINDOW),
    "conv_3d": _Weighted(_VOLUME, (2, 2, 2, 2, 3), (1, 2, 2, 2, 3), 4, _WINDOW_3D),
    "conv_3d_transpose": _Weighted(_VOLUME, (2, 2, 2, 3, 2), (1, 4, 4, 4, 3), 3, _WINDOW_3D, shaped=True),
    "depthwise_conv_2d": _Weighted(_IMAGE, (1, 2, 2, 4), (1, 3, 3, 4), 3, {**_WINDOW, "depth_multiplier": 1}),
    "fully_connected": _Weighted((2, 64), (5, 64), (2, 5), 0),
    "transpose_conv": _Weighted(
        (1, 3, 3, 4), (5, 2, 2, 4), (1, 4, 4, 5), 0, {"padding": "VALID", "stride_w": 1, "stride_h": 1}, shaped=True
    ),
}
_TYPES = (
    *((i8, i8), (ui8, ui8), (i16, i8), (i8, i4), (i16, i4), (ui8, i8), (i8, ui8), (i16, i16), (i8, i16)),
    *((f32, i8), (f32, ui8), (f32, i4), (f32, i16)),
)
_KINDS = ("per layer", "per axis", "blockwise")


def _weighted_samples(name: str) -> Iterator[tuple[str, bytes]]:
    """Each signature's sample: its name, and the file."""
    made = _OPERATORS[name]
    for x, w in _TYPES:
        for kind in _KINDS:
            if kind != "blockwise" or w in (i4, i8):
                yield f"{name} {x} × {w}: {kind}", _model(name, made, x, w, kind)
    for x, w, y in ((i8, i8, i16), (i16, i8, i8), (ui8, ui8, i16), (i8, i8, i32), (i8, i8, f32)):
        yield f"{name} {x} × {w} → {y}: per layer", _model(name, made, x, w, "per layer", y)
    if made.biased:
        yield (
            f"{name} i16 × i8: per axis, int32 bias",
            _model(name, made, i16, i8, "per axis", bias=i32, options=_BIAS.get(name)),
        )
        yield f"{name} i8 × i8: per axis, no bias", _model(name, made, i8, i8, "per axis", bias=None)
        yield f"{name} f32 × i8: per axis, no bias", _model(name, made, f32, i8, "per axis", bias=None)
    yield f"{name} i8 × i8: filter not constant", _model(name, made, i8, i8, "per layer", fixed=False)
    for words, (storage, options) in (_OPTIONS if name == "fully_connected" else {}).items():
        yield (
            f"{name} {storage} × {storage}: {words}",
            _model(name, made, storage, storage, "per layer", options=options),
        )


_BIAS = {name: {"quantized_bias_type": "INT32"} for name in ("conv_2d", "fully_connected", "transpose_conv")}
"""How operators say that the bias beside int16 is not int64."""
_OPTIONS: Mapping[str, tuple[ScalarType, Mapping[str, Any]]] = {
    "shuffled weights": (ui8, {"weights_format": "SHUFFLED4x16INT8"}),
    "dims kept": (i8, {"keep_num_dims": True}),
    "fused RELU": (i8, {"fused_activation_function": "RELU"}),
}


def _model(
    name: str,
    made: _Weighted,
    x: ScalarType,
    w: ScalarType,
    kind: str,
    y: ScalarType | None = None,
    *,
    bias: ScalarType | Literal["usual"] | None = "usual",
    fixed: bool = True,
    options: Mapping[str, Any] | None = None,
) -> bytes:
    """The file of one signature; the bias is int64 beside int16, and float beside float, unless given."""
    y = y or x
    source = Value(TensorType(made.x, x if x.is_float else per_layer(x)), "in0")
    result = Value(TensorType(made.y, y if y.is_float else per_layer(y, 0.5)), "out0")
    weights = _filter(made.w, w, made.axis, kind)
    if not fixed:
        weights = Value(weights.type, "in1")
    if bias == "usual":
        bias = x if x.is_float else i64 if x == i16 else i32
    operands: list[Value | None] = [source, weights]
    if made.shaped:
        operands = [constant(np.asarray(made.y, np.int32), name="shape"), weights, source]
    if made.biased and bias is not None:
        operands.append(_bias(weights, made.w[made.axis], bias))
    return file_of(name, operands, [result], {**made.options, **(options or {})})


def _filter(shape: Shaped, storage: ScalarType, axis: int, kind: str) -> Value:
    """A constant filter with one scale, one per index of the axis, or one per block of the last dim."""
    zero = 128 if storage == ui8 else 0
    if kind == "per axis":
        scales = SCALE / (np.arange(shape[axis]) + 2)
        return stored(shape, UniformQuantizedPerAxisType.of(storage, axis, scales, zero), "weights")
    if kind == "per layer":
        return stored(shape, per_layer(storage, SCALE / 2, zero), "weights")
    block = next(b for b in (32, 2, 1) if shape[-1] % b == 0)
    blocks = (*shape[:-1], -(-shape[-1] // block))
    data = (SCALE / (np.arange(np.prod(blocks)) % 5 + 2)).reshape(blocks).astype(np.float16)
    element = UniformQuantizedSubChannelType.of(
        storage, tuple(range(len(shape))), (*[1] * (len(shape) - 1), block), data
    )
    value = stored(shape, element, "weights")
    details = {"scales": constant(data, name="scales"), "zero_points": -1, "block_size": block}
    value.info = {"quantization": {"details": ("BlockwiseQuantization", details)}}
    return value


def _bias(weights: Value, channels: int, storage: ScalarType) -> Value:
    data = np.arange(channels)
    if storage.is_float:
        return stored((channels,), storage, "bias", data)
    if isinstance(weights.type.element, UniformQuantizedPerAxisType):
        scales = np.float32(SCALE) * weights.type.element.scales
        return stored((channels,), UniformQuantizedPerAxisType.of(storage, 0, scales), "bias", data)
    scale = SCALE * getattr(weights.type.element, "scale", SCALE / 2)
    return stored((channels,), UniformQuantizedType.of(storage, scale), "bias", data)


def _embedding() -> Iterator[tuple[str, bytes]]:
    """Rows of a quantized table as floats."""
    ids, result = Value(TensorType((2,), i32), "in0"), Value(TensorType((2, 64), f32), "out0")
    for storage in (i8, ui8, i4):
        for kind in _KINDS:
            table = _filter((5, 64), storage, 0, kind)
            yield f"embedding_lookup {storage} → f32: {kind}", file_of("embedding_lookup", [ids, table], [result], {})


SAMPLES: Mapping[str, Callable[[], Iterator[tuple[str, bytes]]]] = {
    "embedding_lookup": _embedding,
    **{name: partial(_weighted_samples, name) for name in _OPERATORS},
}
