"""Operators that another converter of TFLite gets wrong without a word, row by row; here every integer is the reference
kernel's, in TFLite and in TOSA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.peer import STORAGES, assert_exact, image, q, weights

from tflq.ir.ops import Value
from tflq.ir.types import (
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i8,
    i16,
    i32,
    i64,
    ui8,
)

QUANTIZE_SCALES = [0.1, 0.25, 1 / 3, 0.0039215689]


def quantize(storage: ScalarType, scale: float, x: np.ndarray) -> None:
    result = argument(x.shape, q(storage, scale, 5), "y")
    assert_exact(one_op("tfl.quantize", [argument(x.shape, f32)], [result], {}, 3), [[x]], integer=False)


@pytest.mark.parametrize("scale", QUANTIZE_SCALES)
@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_quantize_f32_out_of_range_saturates(storage: ScalarType, scale: float) -> None:
    edge = (storage.maximum - storage.minimum) * scale
    far = np.asarray([edge, 2 * edge, 300 * edge, 1e9, 3e38, np.inf], np.float32)
    quantize(storage, scale, np.concatenate([far, -far]))


@pytest.mark.parametrize("scale", QUANTIZE_SCALES)
@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_quantize_f32_ties(storage: ScalarType, scale: float) -> None:
    ties = ((np.arange(-140, 140) + 0.5) * np.float32(scale)).astype(np.float32)
    quantize(
        storage, scale, np.concatenate([ties, np.nextafter(ties, np.float32(9)), np.nextafter(ties, np.float32(-9))])
    )


POOL = {"stride_w": 2, "stride_h": 1, "filter_width": 3, "filter_height": 2}


def pool(name: str, storage: ScalarType, padding: str, activation: str, scale: float = 0.05) -> bytes:
    out = {"VALID": (1, 5, 3, 3), "SAME": (1, 6, 4, 3)}[padding]
    element = q(storage, scale if storage.bits == 8 else scale / 100, -11)
    options = {**POOL, "padding": padding, "fused_activation_function": activation}
    return one_op(f"tfl.{name}", [image(element)], [argument(out, element, "y")], options, 3)


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_average_pool_with_fused_activation(storage: ScalarType, activation: str) -> None:
    assert_exact(pool("average_pool_2d", storage, "VALID", activation))


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_max_pool_with_fused_activation(storage: ScalarType, activation: str) -> None:
    assert_exact(pool("max_pool_2d", storage, "SAME", activation))


def resize(name: str, storage: ScalarType, size: tuple[int, int], **flags: bool) -> bytes:
    element = q(storage, 0.05, 3)
    operands = [image(element), const(np.asarray(size), i32, "size")]
    attributes: dict[str, Any] = {"align_corners": False, "half_pixel_centers": False, **flags}
    return one_op(f"tfl.{name}", operands, [argument((1, *size, 3), element, "y")], attributes, 4)


SIZES = [(12, 14), (3, 3), (9, 10), (1, 1), (18, 5)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_resize_nearest_both_flags_false(storage: ScalarType, size: tuple[int, int]) -> None:
    assert_exact(resize("resize_nearest_neighbor", storage, size))


@pytest.mark.parametrize("flags", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_resize_bilinear(storage: ScalarType, size: tuple[int, int], flags: dict[str, bool]) -> None:
    assert_exact(resize("resize_bilinear", storage, size, **flags))


@pytest.mark.parametrize("span", [10.5, 40.0, 1000.0, 9.5])
def test_softmax_i16_input_span_over_10(span: float) -> None:
    x, y = argument((4, 33), q(i16, span / 65535)), argument((4, 33), q(i16, 1 / 32768), "y")
    assert_exact(one_op("tfl.softmax", [x], [y], {"beta": 1.0}, 3))


@pytest.mark.parametrize("alpha", [-0.7, -0.1, -2.5])
@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_leaky_relu_with_negative_alpha(storage: ScalarType, alpha: float) -> None:
    x, y = argument((5, 50), q(storage, 0.05, 3)), argument((5, 50), q(storage, 0.06, -7), "y")
    assert_exact(one_op("tfl.leaky_relu", [x], [y], {"alpha": float(np.float32(alpha))}, 2))


def test_prelu_i16() -> None:
    x, y = argument((3, 40, 8), q(i16, 0.003)), argument((3, 40, 8), q(i16, 0.004), "y")
    assert_exact(one_op("tfl.prelu", [x, weights(q(i8, 0.01), (1, 8))], [y], {}))


@pytest.mark.parametrize("scale", [2**-12, 0.00031, 0.0011, 2**-15])
@pytest.mark.parametrize("name", ["tanh", "logistic"])
def test_interpolated_i16(name: str, scale: float) -> None:
    x = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(64, -1)
    operand, result = argument(x.shape, q(i16, scale)), argument(x.shape, q(i16, 2**-15), "y")
    assert_exact(one_op(f"tfl.{name}", [operand], [result], {}, 3), [[x]])


CONV = {
    "stride_w": 1,
    "stride_h": 1,
    "dilation_w_factor": 1,
    "dilation_h_factor": 1,
    "fused_activation_function": "NONE",
}


def bias(count: int, storage: ScalarType, scale: float) -> Value:
    return const(np.random.default_rng(3).integers(-3000, 3000, count), UniformQuantizedType.of(storage, scale), "b")


@pytest.mark.parametrize("scale", [0.0213, 0.047, 0.1, 0.33])
@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_conv_2d_per_layer(storage: ScalarType, scale: float) -> None:
    x, kernel = q(storage, 0.0371, 9), q(ui8 if storage is ui8 else i8, 0.0173)
    filters = weights(kernel, (4, 3, 2, 3), *((0, 255) if storage is ui8 else (-127, 127)))
    wide = i64 if storage is i16 else i32
    operands = [image(x), filters, bias(4, wide, float(np.float32(x.scale) * np.float32(kernel.scale)))]
    result = argument((1, 4, 6, 4), q(storage, scale * (1 if storage.bits == 8 else 0.5), -4), "y")
    assert_exact(one_op("tfl.conv_2d", operands, [result], {**CONV, "padding": "VALID"}, 3))


DENSE = {
    "fused_activation_function": "NONE",
    "weights_format": "DEFAULT",
    "keep_num_dims": False,
    "asymmetric_quantize_inputs": False,
    "quantized_bias_type": "FLOAT32",
}


def dense(x: UniformQuantizedType, kernel: Any, scale: float, bias_scales: Any) -> bytes:
    storage, wide = x.storage, i64 if x.storage is i16 else i32
    filters = weights(kernel, (7, 40), *((0, 255) if storage is ui8 else (-127, 127)))
    element: Any = (
        UniformQuantizedType.of(wide, float(bias_scales))
        if np.ndim(bias_scales) == 0
        else UniformQuantizedPerAxisType.of(wide, 0, bias_scales, 0)
    )
    offset = const(np.random.default_rng(3).integers(-3000, 3000, 7), element, "b")
    operands = [argument((5, 40), x), filters, offset]
    return one_op("tfl.fully_connected", operands, [argument((5, 7), q(storage, scale, -4), "y")], DENSE, 4)


@pytest.mark.parametrize("scale", [0.0213, 0.047, 0.1, 0.33])
@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_fully_connected_per_layer(storage: ScalarType, scale: float) -> None:
    x, kernel = q(storage, 0.0371, 9), q(ui8 if storage is ui8 else i8, 0.0173)
    assert_exact(dense(x, kernel, scale, np.float32(x.scale) * np.float32(kernel.scale)))


@pytest.mark.parametrize("scale", [0.0213, 0.1])
def test_fully_connected_per_channel_i16(scale: float) -> None:
    scales = (0.0173 * np.linspace(0.3, 2, 7)).astype(np.float32)
    x = q(i16, 0.00371)
    kernel = UniformQuantizedPerAxisType.of(i8, 0, scales.astype(np.float64), 0)
    assert_exact(dense(x, kernel, scale, (np.float32(x.scale) * scales).astype(np.float64)))


@pytest.mark.parametrize("scale", [0.05, 0.0039])
def test_average_pool_u8_same(scale: float) -> None:
    assert_exact(pool("average_pool_2d", ui8, "SAME", "NONE", scale))


@pytest.mark.parametrize("exponents", [(-12, -12, -12), (-14, -11, -11), (-10, -15, -10)], ids=str)
@pytest.mark.parametrize("name", ["add", "sub"])
def test_add_i16_with_pot_scale(name: str, exponents: tuple[int, int, int]) -> None:
    x, y, z = (
        Value(TensorType((4, 50), UniformQuantizedType.of(i16, 2.0**e)), n)
        for n, e in zip("xyz", exponents, strict=True)
    )
    options = {"fused_activation_function": "RELU6", "pot_scale_int16": True}
    assert_exact(one_op(f"tfl.{name}", [x, y], [z], options, 2))
