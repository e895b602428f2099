"""Operators with weights: convolutions and FULLY_CONNECTED."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from support.harness import argument, const

from matrix.draw import Case, Draw, generator, ints, out_size, single
from tflq.ir.ops import Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i4,
    i8,
    i16,
    i32,
    i64,
    ui8,
)


def _filter_type(draw: Draw, x: ScalarType, storage: ScalarType, axis: int, channels: int) -> ElementType:
    if x == ui8:
        return draw.quantized(ui8)
    if draw.chance(0.35):
        return UniformQuantizedType.of(storage, draw.scale(-12, 0), 0)
    spread = draw.one(0.0, 1.0, 6.0)
    scales = draw.scale(-12, 0) * np.exp2(draw.rng.uniform(-spread, spread, channels))
    if draw.chance(0.1):
        scales[draw.whole(0, channels - 1)] = draw.one(1e-12, 1e-7)
    return UniformQuantizedPerAxisType.of(storage, axis, scales, 0)


def _mean_scale(element: ElementType) -> float:
    return float(np.median(element.scales)) if isinstance(element, UniformQuantizedPerAxisType) else element.scale  # type: ignore[union-attr]


def _weights(draw: Draw, shape: tuple[int, ...], element: ElementType, *, constant: bool) -> Value:
    storage = element.storage  # type: ignore[union-attr]
    if not constant and storage.bits >= 8 and draw.chance(0.06):
        return argument(shape, element)
    low = storage.minimum + 1 if storage.signed and draw.chance(0.6) else storage.minimum
    data = draw.integers(storage, shape, low, storage.maximum)
    if storage == i4:
        return int4(data, element)
    return const(data, element)


def int4(data: np.ndarray, element: ElementType) -> Value:
    from tflq.ir.ops import Buffer
    from tflq.ir.types import TensorType

    flat = data.reshape(-1).view(np.uint8) & 15
    flat = np.concatenate([flat, np.zeros(flat.size % 2, np.uint8)])
    return Value(TensorType(data.shape, element), "", buffer=Buffer(flat[::2] | flat[1::2] << 4))


def _bias(
    draw: Draw,
    channels: int,
    storage: ScalarType,
    x: UniformQuantizedType,
    w: ElementType,
    size: int,
    y: UniformQuantizedType,
    *,
    required: bool = False,
    varying: bool = False,
    wide: int = 38,
) -> Value | None:
    """A bias, if any, of at most `wide` bits for int64; it never takes the scaled sum out of 32 bits, where the
    kernels' arithmetic is undefined."""
    if not required and draw.chance(0.2):
        return None
    scales = np.float32(x.scale) * np.asarray(getattr(w, "scales", getattr(w, "scale", None)), np.float32)
    scales = np.maximum(scales, np.float32(1e-37))
    most = min((1 << 30) / float(scales.max()) * y.scale, 1 << (30 if storage == i32 else wide))
    reach = int(min(draw.one(size, size, 16 * size, most, 0), most))
    data = draw.rng.integers(-reach, reach, channels, endpoint=True)
    if draw.on_tie and reach:  # inputs of zero points then give sums on ties, or next to one
        ties: np.ndarray = np.rint((draw.rng.integers(-100, 100, channels) + 0.5) * y.scale / scales)
        data = np.rint(np.clip(ties, -most, most)).astype(np.int64) + draw.rng.integers(-1, 1, channels, endpoint=True)
    if scales.ndim:
        element: ElementType = UniformQuantizedPerAxisType.of(storage, 0, scales, 0)
    else:
        element = UniformQuantizedType.of(storage, float(scales), 0)
    return argument((channels,), element) if varying and storage == i32 and draw.chance(0.05) else const(data, element)


def _result(
    draw: Draw, x: UniformQuantizedType, w: ElementType, depth: int, storage: ScalarType
) -> UniformQuantizedType:
    reach = (x.storage.maximum - x.storage.minimum) / 4 * 64 * math.sqrt(depth)
    unit = x.scale * _mean_scale(w)
    scale = draw.near(unit * reach / (storage.maximum - storage.minimum) * 2, unit)
    largest = float(np.max(getattr(w, "scales", getattr(w, "scale", 0))))
    if w.storage == i16:  # type: ignore[union-attr]
        scale = max(scale, x.scale * largest * depth * 2.0**2)  # the kernel drops what 32 bits do not hold
    elif storage == i16:
        scale = max(scale, x.scale * largest * depth * 2.0**-7)
    return draw.quantized(
        storage, max(scale, x.scale * largest * 2.0**-20)
    )  # no multiplier of 2^30, which no kernel shifts by


def _window(draw: Draw) -> dict[str, Any]:
    dilated = draw.chance(0.25)
    return {
        "padding": draw.one("SAME", "VALID"),
        "stride_h": draw.one(1, 1, 2, 3),
        "stride_w": draw.one(1, 1, 2, 3),
        "dilation_h_factor": draw.one(1, 2, 3) if dilated else 1,
        "dilation_w_factor": draw.one(1, 2, 3) if dilated else 1,
        "fused_activation_function": draw.activation(),
    }


def _spatial(draw: Draw, options: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Kernel, input and output sizes."""
    kernel = (1, 1) if draw.chance(0.25) else (draw.whole(1, 4), draw.whole(1, 4))
    valid = options["padding"] == "VALID"
    size, out = [], []
    for k, axis in zip(kernel, "hw", strict=True):
        d, s = options[f"dilation_{axis}_factor"], options[f"stride_{axis}"]
        n = draw.whole((k - 1) * d + 1 if valid else 1, (k - 1) * d + 8)
        size.append(n)
        out.append(out_size(n, k, s, d, options["padding"]))
    return kernel, (size[0], size[1]), (out[0], out[1])


def _case(
    draw: Draw, name: str, x: Value, w: Value, bias: Value | None, result: Value, options: dict[str, Any]
) -> Case:
    operands = [x, w] if bias is None and (name != "fully_connected" or draw.chance(0.5)) else [x, w, bias]
    batched = (
        w.is_constant and (bias is None or bias.is_constant) and (name != "fully_connected" or options["keep_num_dims"])
    )
    integer = w.type.storage != i16  # those sums can leave what an int64 of fewer bits than the kernel's 64 holds
    return single(
        draw,
        name,
        operands,
        [result],
        options,
        conversion=draw.mac(),
        integer=integer,
        batched=batched,
        spatial=x.type.rank in (3, 4),
    )


@generator("conv_2d")
def conv_2d(draw: Draw) -> Case:
    storage = draw.storage()
    options = _window(draw)
    kernel, size, out = _spatial(draw, options)
    groups = draw.one(1, 1, 1, 2, 3, 4) if storage == i8 or draw.chance(0.3) else 1
    inputs = draw.one(1, 2, 3, 8, draw.whole(1, 40), draw.whole(100, 600) if draw.chance(0.3) else 5)
    outputs = groups * draw.one(1, 2, 3, 7, 16)
    batch = draw.one(1, 1, 2)
    x = draw.quantized(storage)
    stored = ui8 if storage == ui8 else draw.one(i8, i8, i8, i8, i4)
    w_type = _filter_type(draw, storage, stored, 0, outputs)
    w = _weights(draw, (outputs, *kernel, inputs), w_type, constant=groups > 1)
    depth = kernel[0] * kernel[1] * inputs
    acc = draw.one(i64, i64, i64, i32) if storage == i16 else i32
    if acc == i32 and storage == i16:
        options["quantized_bias_type"] = "INT32"
    y = _result(draw, x, w_type, depth, storage)
    bias = _bias(draw, outputs, acc, x, w_type, depth * 128 * 256, y, required=True, varying=groups == 1)
    return _case(
        draw,
        "conv_2d",
        argument((batch, *size, inputs * groups), x),
        w,
        bias,
        argument((batch, *out, outputs), y),
        options,
    )


@generator("depthwise_conv_2d")
def depthwise(draw: Draw) -> Case:
    storage = draw.storage()
    options = _window(draw)
    if draw.chance(0.7):
        options["stride_w"] = options["stride_h"]
    kernel, size, out = _spatial(draw, options)
    inputs, multiplier = draw.one(1, 2, 3, 8, draw.whole(1, 40)), draw.one(1, 1, 1, 2, 3, 8)
    outputs, batch = inputs * multiplier, draw.one(1, 1, 2)
    options["depth_multiplier"] = multiplier
    x = draw.quantized(storage)
    stored = (
        ui8 if storage == ui8 else i8 if storage == i16 else draw.one(i8, i8, i8, i8, i4)
    )  # int16×int4 is read out of bounds
    w_type = _filter_type(draw, storage, stored, 3, outputs)
    w = _weights(draw, (1, *kernel, outputs), w_type, constant=False)
    depth = kernel[0] * kernel[1]
    y = _result(draw, x, w_type, depth, storage)
    bias = _bias(draw, outputs, i64 if storage == i16 else i32, x, w_type, depth * 128 * 256, y)
    return _case(
        draw,
        "depthwise_conv_2d",
        argument((batch, *size, inputs), x),
        w,
        bias,
        argument((batch, *out, outputs), y),
        options,
    )


@generator("transpose_conv")
def transpose_conv(draw: Draw) -> Case:
    storage = draw.storage()
    padding, activation = draw.one("SAME", "VALID"), draw.activation()
    strides, kernel, small = (
        (draw.whole(1, 3), draw.whole(1, 3)),
        (draw.whole(1, 4), draw.whole(1, 4)),
        (draw.whole(1, 5), draw.whole(1, 5)),
    )
    out = []
    for s, k, n in zip(strides, kernel, small, strict=True):
        low, high = ((n - 1) * s + 1, n * s) if padding == "SAME" else ((n - 1) * s + k, (n - 1) * s + k + s - 1)
        out.append(draw.one(high, draw.whole(low, high)) if padding == "SAME" else draw.one(low, draw.whole(low, high)))
    inputs, outputs, batch = draw.one(1, 2, 3, 8, 17), draw.one(1, 2, 3, 9), draw.one(1, 1, 2)
    x = draw.quantized(storage)
    w_type = _filter_type(draw, storage, ui8 if storage == ui8 else i8, 0, outputs)
    w = _weights(draw, (outputs, *kernel, inputs), w_type, constant=True)
    depth = kernel[0] * kernel[1] * inputs
    y = _result(draw, x, w_type, depth, storage)
    bias = _bias(draw, outputs, i64 if storage == i16 else i32, x, w_type, depth * 128 * 256, y)
    options = {
        "padding": padding,
        "stride_h": strides[0],
        "stride_w": strides[1],
        "fused_activation_function": activation,
    }
    shape = (batch, *out, outputs)
    operands = [ints(*shape), w, argument((batch, *small, inputs), x)]
    if bias is not None or draw.chance(0.5):
        operands.append(bias)  # type: ignore[arg-type]
    return single(draw, "transpose_conv", operands, [argument(shape, y)], options, 3, conversion=draw.mac())


@generator("fully_connected")
def fully_connected(draw: Draw) -> Case:
    storage = draw.storage()
    depth = draw.one(1, 2, 3, 8, draw.whole(1, 64), draw.whole(200, 2000) if draw.chance(0.3) else 16)
    outputs = draw.one(1, 2, 3, draw.whole(1, 40))
    rank = draw.whole(1, 4)
    shape = (*draw.dims(rank - 1, 1, 4), depth)
    keep = rank > 1 and draw.chance(0.5)
    if not keep and depth % 4 == 0 and draw.chance(0.2):
        shape = (*shape[:-1], 2, depth // 2)
    rows = math.prod(shape) // depth
    x = draw.quantized(storage)
    stored = (
        ui8 if storage == ui8 else draw.one(i8, i8, i8, i8, i4, i16) if storage == i16 else draw.one(i8, i8, i8, i4)
    )
    w_type = _filter_type(draw, storage, stored, 0, outputs)
    if isinstance(w_type, UniformQuantizedType) and stored == i8 and draw.chance(0.3):
        w_type = draw.quantized(i8, w_type.scale)
    if draw.chance(0.15) and isinstance(w_type, UniformQuantizedType) and stored.bits >= 8:
        w = argument((outputs, depth), w_type)
    else:
        w = _weights(draw, (outputs, depth), w_type, constant=False)
    y = _result(draw, x, w_type, depth, i16 if storage == ui8 and draw.chance(0.15) else storage)
    acc = i64 if storage == i16 else i32
    bias = _bias(draw, outputs, acc, x, w_type, depth * 128 * 256, y, wide=30)  # sums beyond 32 bits go by float
    options = {"fused_activation_function": draw.activation(), "keep_num_dims": keep}
    result = argument((*shape[:-1], outputs) if keep else (rows, outputs), y)
    return _case(draw, "fully_connected", argument(shape, x), w, bias, result, options)
