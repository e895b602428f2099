"""Multiply-accumulate operators without a kernel: the integer form against the float kernel on the real values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret, one_op

import tflq
from tflq.ir.ops import Value, constant
from tflq.ir.types import (
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f32,
    i8,
    i16,
    i32,
    i64,
    parameters,
    ui8,
)

WINDOW = {"padding": "SAME", "stride_h": 2, "stride_w": 1, "fused_activation_function": "RELU6"}
PLANAR = WINDOW | {"dilation_h_factor": 1, "dilation_w_factor": 2}
SPATIAL = PLANAR | {"stride_d": 2, "dilation_d_factor": 1}
TRANSPOSED = SPATIAL | {"dilation_w_factor": 1, "stride_w": 3, "padding": "VALID"}
DENSE = {"fused_activation_function": "NONE", "keep_num_dims": True}

OPERATORS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...], dict[str, Any]]] = {
    "conv_2d": ((2, 6, 5, 4), (3, 3, 2, 4), 0, (2, 3, 5, 3), PLANAR),
    "depthwise_conv_2d": ((2, 6, 5, 4), (1, 3, 2, 8), 3, (2, 3, 5, 8), PLANAR | {"depth_multiplier": 2}),
    "fully_connected": ((2, 3, 20), (5, 20), 0, (2, 3, 5), DENSE),
    "transpose_conv": ((1, 3, 4, 4), (3, 3, 2, 4), 0, (1, 6, 4, 3), WINDOW),
    "conv_3d": ((2, 5, 6, 5, 4), (3, 2, 2, 4, 3), 4, (2, 3, 3, 5, 3), SPATIAL),
    "conv_3d_transpose": ((2, 3, 2, 3, 4), (3, 2, 2, 3, 4), 3, (2, 7, 4, 8, 3), TRANSPOSED),
}
"""Per operator: shapes of input and filters, the dim of channels, the result's shape, options."""


def real(value: Value, stored: np.ndarray) -> np.ndarray:
    scale, zero = parameters(value.type)
    return ((stored.astype(np.float64) - zero) * scale).astype(np.float32)


def build(name: str, x: Value, w: Value, bias: Value | None, y: Value) -> bytes:
    operands = [x, w, bias]
    if "transpose" in name:
        operands = [const(np.asarray(y.type.shape, np.int32), i32, "size"), w, x, bias]
    return one_op(f"tfl.{name}", operands, [y], OPERATORS[name][4])


def assert_real(name: str, x_type: ScalarType, w_type: ElementType, y_type: ScalarType, bias: str = "same") -> None:
    """The conversion, without floats, is what the float kernel gives, but for one count where floats round."""
    shape, filters, axis, out, _ = OPERATORS[name]
    rng = np.random.default_rng(7)
    zero = 0 if x_type == i16 else 3 if x_type.signed else 130
    x = argument(shape, UniformQuantizedType.of(x_type, 2.0**-8 if x_type == i16 else 0.05, zero))
    y = argument(out, UniformQuantizedType.of(y_type, 2.0**-9 if y_type == i16 else 0.1, 0), "y")
    storage = w_type.storage  # type: ignore[union-attr]
    w = const(rng.integers(storage.minimum, storage.maximum, filters, storage.dtype), w_type, "w")
    unit = np.float32(0.05 if x_type != i16 else 2.0**-8) * np.broadcast_to(
        parameters(w.type)[0].reshape(-1), (filters[axis],)
    )
    values = rng.normal(0, 3, filters[axis])
    scale = unit if bias == "same" else unit * np.float32(3.7)
    stored = i64 if x_type == i16 else i32
    c = const(np.rint(values / scale), UniformQuantizedPerAxisType.of(stored, 0, scale, 0), "b")
    if bias == "float":
        c = const(values.astype(np.float32), f32, "b")
    model = build(name, x, w, None if bias == "none" else c, y)
    conversion = tflq.convert(model, fallback="error", semantics="real")
    batches = edge_inputs([x])
    floats = [None if bias == "none" else const(c.array if bias == "float" else real(c, c.array), f32, "b")]
    twin = build(name, argument(shape, f32), const(real(w, w.array), f32, "w"), floats[0], argument(out, f32, "y"))
    wanted = interpret(twin, [[real(x, a) for a in arrays] for arrays in batches])
    for want, got in zip(wanted, interpret(conversion.data, batches), strict=True):
        counts = np.clip(np.rint(want[0] / parameters(y.type)[0]), y_type.minimum, y_type.maximum)
        gap = np.abs(counts - got[0].astype(np.float64))
        assert gap.max() <= 1
        assert (gap > 0).mean() < 0.02


def per_axis(storage: ScalarType, name: str, zeros: Any = 0) -> UniformQuantizedPerAxisType:
    _, filters, axis, _, _ = OPERATORS[name]
    return UniformQuantizedPerAxisType.of(storage, axis, np.linspace(0.003, 0.02, filters[axis]), zeros)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("zeros", ["128", "varied"])
def test_uint8_weights_per_axis(name: str, zeros: str) -> None:
    count = OPERATORS[name][1][OPERATORS[name][2]]
    points = 128 if zeros == "128" else np.linspace(0, 255, count).astype(np.int64)
    assert_real(name, ui8, per_axis(ui8, name, points), ui8)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("types", [(ui8, i8, ui8), (i8, i8, i16), (i16, ui8, i16), (i8, i16, i8)], ids=str)
def test_mixed_types(name: str, types: tuple[ScalarType, ScalarType, ScalarType]) -> None:
    zero = 100 if types[1] == ui8 else 0
    scale = 0.01 if types[1] != i16 else 0.00005
    assert_real(name, types[0], UniformQuantizedType.of(types[1], scale, zero), types[2])


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("name", ["conv_3d", "conv_3d_transpose"])
@pytest.mark.parametrize("bias", ["same", "other", "float", "none"])
def test_three_dims(name: str, storage: ScalarType, bias: str) -> None:
    assert_real(name, storage, per_axis(i8, name), storage, bias)


@pytest.mark.parametrize("name", ["conv_2d", "fully_connected", "conv_3d"])
def test_a_result_of_int32_at_the_scale_of_the_sum_is_the_sum(name: str) -> None:
    shape, filters, _, out, _ = OPERATORS[name]
    x = argument(shape, UniformQuantizedType.of(i8, 0.5, 3))
    w = const(np.random.default_rng(1).integers(-128, 128, filters), UniformQuantizedType.of(i8, 0.25, 0), "w")
    y = argument(out, UniformQuantizedType.of(i32, 0.125, 0), "y")
    conversion = tflq.convert(build(name, x, w, None, y), fallback="error")
    (got,) = interpret(conversion.data, [[np.full(shape, 4, np.int8)]])[0]
    wide = np.abs(w.array.astype(np.int64)).sum()
    assert got.dtype == np.int32
    assert 0 < np.abs(got).max() <= wide


def test_weights_that_are_not_constant_and_a_bias_that_is_computed() -> None:
    shape, filters, _, out, _ = OPERATORS["conv_3d"]
    x, w = (argument(s, UniformQuantizedType.of(i8, 0.5, 0), n) for s, n in ((shape, "x"), (filters, "w")))
    bias = argument((3,), UniformQuantizedType.of(i32, 0.25, 0), "b")
    y = argument(out, UniformQuantizedType.of(i8, 64.0, 0), "y")
    options = SPATIAL | {"fused_activation_function": "NONE"}
    conversion = tflq.convert(one_op("tfl.conv_3d", [x, w, bias], [y], options), fallback="error")
    arrays: list[np.ndarray] = [np.zeros(shape, np.int8), np.ones(filters, np.int8)]
    arrays.append(np.asarray([-(2**31), 2**31 - 1, 1024], np.int32))
    (got,) = interpret(conversion.data, [arrays])[0]
    np.testing.assert_array_equal(got[0, 0, 0, 0], [-128, 127, 4])


def test_dilated_taps_of_a_transposed_convolution() -> None:
    shape, filters, _, _, options = OPERATORS["conv_3d_transpose"]
    x = argument(shape, UniformQuantizedType.of(i8, 0.05, 3))
    w = const(np.random.default_rng(1).integers(-128, 128, filters), UniformQuantizedType.of(i8, 0.01, 0), "w")
    y = argument((2, 7, 4, 9, 3), UniformQuantizedType.of(i8, 0.1, 0), "y")
    size = const(np.asarray(y.type.shape, np.int32), i32, "size")
    attributes = options | {"dilation_w_factor": 2}
    conversion = tflq.convert(one_op("tfl.conv_3d_transpose", [size, w, x], [y], attributes), fallback="error")
    batches = edge_inputs([x])
    floats = [size, const(real(w, w.array), f32, "w"), argument(shape, f32)]
    twin = one_op("tfl.conv_3d_transpose", floats, [argument((2, 7, 4, 9, 3), f32, "y")], attributes)
    reals = [[real(x, a)] for (a,) in batches]
    for want, got in zip(interpret(twin, reals), interpret(conversion.data, batches), strict=True):
        assert np.abs(np.clip(np.rint(want[0] / 0.1), 0, 60) - got[0]).max() <= 1


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("block", [4, 16])
def test_a_scale_per_block_of_weights(storage: ScalarType, block: int) -> None:
    rng = np.random.default_rng(3)
    scales = rng.uniform(0.01, 0.1, (5, 32 // block)).astype(np.float16)
    w = const(rng.integers(-127, 128, (5, 32)), UniformQuantizedSubChannelType.of(i8, (0, 1), (1, block), scales), "w")
    details = {"scales": constant(scales, name="scales"), "zero_points": -1, "block_size": block}
    w.info = {"quantization": {"details": ("BlockwiseQuantization", details)}}
    x_type = UniformQuantizedType.of(storage, 2.0**-12 if storage == i16 else 0.05, 0 if storage == i16 else 7)
    x, y = argument((3, 32), x_type), argument((3, 5), UniformQuantizedType.of(i8, 0.5, 3), "y")
    bias = rng.normal(0, 5, 5).astype(np.float32)
    model = one_op("tfl.fully_connected", [x, w, const(bias, f32, "b")], [y], DENSE)
    conversion = tflq.convert(model, fallback="error")
    batches = edge_inputs([x])
    filters = (w.array * np.repeat(scales.astype(np.float64), block, 1)).T
    for arrays, got in zip(batches, interpret(conversion.data, batches), strict=True):
        counts = ((arrays[0].astype(np.float64) - x_type.zero_point) * x_type.scale @ filters + bias) / 0.5 + 3
        assert np.abs(np.clip(np.rint(counts), -128, 127) - got[0]).max() <= 1
