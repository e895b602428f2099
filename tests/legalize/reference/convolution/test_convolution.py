"""CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, TRANSPOSE_CONV: the integer form's numbers, and the kernels' results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret, one_op
from support.reference import assert_equals_kernel, integer_form, quantized

import tflq
from tflq.base.errors import UnsupportedError
from tflq.ir.ops import Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    ui8,
)
from tflq.numerics.fixed_point import quantize_multiplier

MACS = ["integer", "float32"]


def per_axis(storage: ScalarType, axis: int, count: int, scale: float = 0.01) -> UniformQuantizedPerAxisType:
    return UniformQuantizedPerAxisType.of(storage, axis, scale * np.linspace(0.5, 2, count), 0)


def random(shape: tuple[int, ...], element: ElementType, seed: int = 0, low: int | None = None) -> Value:
    storage = element.storage  # type: ignore[union-attr]
    least = storage.minimum if low is None else low
    data = np.random.default_rng(seed).integers(least, storage.maximum, shape, endpoint=True)
    return const(data, element)


def bias(count: int, storage: ScalarType = i32, scale: float = 0.0005) -> Value:
    data = np.random.default_rng(9).integers(-3000, 3000, count)
    return const(data, UniformQuantizedType.of(storage, scale, 0))


def window(padding: str = "SAME", stride: tuple[int, int] = (1, 1), **more: Any) -> dict[str, Any]:
    return {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": 1,
        "dilation_w_factor": 1,
        "fused_activation_function": "NONE",
        **more,
    }


def check(model: bytes, x: Value, **options: Any) -> None:
    """The evaluator and both forms of multiply-accumulate give the reference kernel's outputs, without fallback."""
    batches = edge_inputs([x])
    assert_equals_kernel(model, batches)
    for mac in MACS:
        conversion = convert_and_compare(model, batches, mac=mac, **options)
        assert [row.path for row in conversion.report.rows] == ["integer"]


def conv(
    x: Value,
    w: Value,
    y: Value,
    options: dict[str, Any],
    acc: ScalarType = i32,
    name: str = "conv_2d",
    scale: float = 0.0005,
) -> bytes:
    offset = bias((y.type.shape or (0,))[-1] or 0, acc, scale)
    return one_op("tfl." + name, [x, w, offset], [y], options, version=3)


def accumulator(storage: ScalarType) -> ScalarType:
    return i64 if storage == i16 else i32


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])
def test_conv_2d_activations(storage: ScalarType, activation: str) -> None:
    x, y = argument((1, 6, 5, 4), quantized(storage)), argument((1, 6, 5, 7), quantized(storage, 0.1, 120), "y")
    w = random((7, 3, 3, 4), quantized(ui8, 0.01, 119) if storage == ui8 else per_axis(i8, 0, 7))
    check(conv(x, w, y, window(fused_activation_function=activation), accumulator(storage)), x)


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize(
    ("kernel", "options", "out"),
    [
        ((1, 1), window(), (7, 9)),
        ((1, 1), window("SAME", (2, 3)), (4, 3)),
        ((3, 3), window("SAME", (2, 2)), (4, 5)),
        ((2, 3), window("VALID", (1, 2)), (6, 4)),
        ((3, 2), window("SAME", dilation_h_factor=2, dilation_w_factor=3), (7, 9)),
        ((7, 9), window("VALID"), (1, 1)),
        ((7, 1), window("VALID"), (1, 9)),
    ],
)
def test_conv_2d_windows(
    storage: ScalarType, kernel: tuple[int, int], options: dict[str, Any], out: tuple[int, int]
) -> None:
    """Padding adds nothing, at any zero point."""
    x, y = (
        argument((2, 7, 9, 3), quantized(storage, 0.05, 100)),
        argument((2, *out, 5), quantized(storage, 0.2, 7), "y"),
    )
    w = random((5, *kernel, 3), quantized(ui8, 0.01, 3) if storage == ui8 else quantized(i8, 0.01, 0))
    check(conv(x, w, y, options, accumulator(storage)), x)


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize(("inputs", "outputs"), [(3, 4), (1, 12)])
def test_grouped_conv_2d(storage: ScalarType, inputs: int, outputs: int) -> None:
    x, y = argument((2, 4, 5, 6), quantized(storage)), argument((2, 4, 5, outputs), quantized(storage, 0.2), "y")
    w = random((outputs, 3, 2, inputs), quantized(ui8, 0.01, 30) if storage == ui8 else per_axis(i8, 0, outputs))
    check(conv(x, w, y, window(), accumulator(storage)), x)


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize(("channels", "multiplier"), [(5, 1), (3, 4), (1, 6)])
@pytest.mark.parametrize(
    "options", [window("SAME", (2, 2)), window("VALID"), window(dilation_h_factor=2, dilation_w_factor=2)]
)
def test_depthwise_conv_2d(storage: ScalarType, channels: int, multiplier: int, options: dict[str, Any]) -> None:
    outputs = channels * multiplier
    out = {"SAME": (3, 4), "VALID": (4, 6)}[options["padding"]] if options["dilation_h_factor"] == 1 else (6, 8)
    x = argument((2, 6, 8, channels), quantized(storage, 0.05, -60 if storage == i8 else 200))
    y = argument((2, *out, outputs), quantized(storage, 0.1, 5), "y")
    w = random((1, 3, 3, outputs), quantized(ui8, 0.01, 200) if storage == ui8 else per_axis(i8, 3, outputs))
    model = conv(x, w, y, options | {"depth_multiplier": multiplier}, accumulator(storage), "depthwise_conv_2d")
    check(model, x)


FULLY_CONNECTED = {"weights_format": "DEFAULT", "keep_num_dims": False, "fused_activation_function": "NONE"}


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_fully_connected(storage: ScalarType, keep: bool, with_bias: bool) -> None:
    x = argument((2, 3, 4, 10), quantized(storage))
    y = argument((2, 3, 4, 6) if keep else (24, 6), quantized(storage, 0.1, 120), "y")
    w = random((6, 10), quantized(ui8 if storage == ui8 else i8, 0.01, 119 if storage == ui8 else 7))
    offset = bias(6, accumulator(storage)) if with_bias else None
    check(one_op("tfl.fully_connected", [x, w, offset], [y], FULLY_CONNECTED | {"keep_num_dims": keep}, 5), x)


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_fully_connected_per_axis(storage: ScalarType) -> None:
    x, y = argument((3, 40), quantized(storage)), argument((3, 6), quantized(storage, 0.1), "y")
    w = random((6, 40), per_axis(i8, 0, 6))
    options = FULLY_CONNECTED | {"fused_activation_function": "RELU6"}
    check(one_op("tfl.fully_connected", [x, w, bias(6, accumulator(storage))], [y], options, 5), x)


def test_fully_connected_with_weights_that_are_not_constant() -> None:
    x, w = argument((3, 10), quantized(i8)), argument((6, 10), quantized(i8, 0.01, -7), "w")
    y = argument((3, 6), quantized(i8, 0.1), "y")
    model = one_op("tfl.fully_connected", [x, w, None], [y], FULLY_CONNECTED, 5)
    batches = edge_inputs([x, w])
    assert_equals_kernel(model, batches)
    for mac in MACS:
        convert_and_compare(model, batches, mac=mac)


def test_shuffled_weights_are_refused() -> None:
    x, y = argument((1, 16), quantized(ui8)), argument((1, 4), quantized(i16, 0.1), "y")
    w = random((4, 16), quantized(ui8, 0.01, 128))
    model = one_op(
        "tfl.fully_connected", [x, w, bias(4)], [y], FULLY_CONNECTED | {"weights_format": "SHUFFLED4x16INT8"}, 2
    )
    with pytest.raises(UnsupportedError, match="shuffled"):
        tflq.convert(model)


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "size", "out"),
    [
        ((3, 3), (2, 2), "SAME", (3, 4), (6, 8)),
        ((3, 3), (2, 2), "SAME", (3, 4), (5, 7)),
        ((4, 4), (2, 2), "VALID", (3, 4), (8, 10)),
        ((2, 3), (3, 1), "VALID", (3, 4), (8, 6)),
        ((2, 2), (2, 2), "VALID", (2, 2), (5, 5)),
        ((1, 1), (2, 2), "SAME", (3, 4), (6, 8)),
        ((3, 3), (1, 1), "SAME", (3, 4), (3, 4)),
    ],
)
@pytest.mark.parametrize("with_bias", [False, True])
def test_transpose_conv(
    storage: ScalarType,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: str,
    size: tuple[int, int],
    out: tuple[int, int],
    with_bias: bool,
) -> None:
    x, y = argument((2, *size, 3), quantized(storage, 0.05, 90)), argument((2, *out, 4), quantized(storage, 0.1), "y")
    w = random((4, *kernel, 3), quantized(ui8, 0.01, 90) if storage == ui8 else per_axis(i8, 0, 4))
    shape = const(np.asarray([2, *out, 4]), i32)
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1], "fused_activation_function": "RELU"}
    operands = [shape, w, x, *([bias(4, accumulator(storage))] if with_bias else [])]
    check(one_op("tfl.transpose_conv", operands, [y], options, 4), x)


def test_multipliers_per_channel_and_legacy() -> None:
    """int8 multiplies in double, per channel; uint8 rounds the product of the scales to float32."""
    x, y = argument((1, 2, 2, 1), quantized(i8, 0.1)), argument((1, 2, 2, 2), quantized(i8, 0.7), "y")
    w = random((2, 1, 1, 1), UniformQuantizedPerAxisType.of(i8, 0, [0.3, 0.4], 0))
    rescale = next(op for op in integer_form(conv(x, w, y, window())).main.ops if op.name == "tosa.rescale")
    f = np.float32
    wanted = [quantize_multiplier(float(f(0.1)) * float(f(s)) / float(f(0.7))) for s in (0.3, 0.4)]
    assert rescale.attributes["multiplier"].tolist() == [m.mantissa for m in wanted]
    assert rescale.attributes["shift"].tolist() == [31 - m.shift for m in wanted]

    x, y = argument((1, 2, 2, 1), quantized(ui8, 0.1)), argument((1, 2, 2, 2), quantized(ui8, 0.7), "y")
    w = random((2, 1, 1, 1), quantized(ui8, 0.3, 4))
    legacy = conv(x, w, y, window(), scale=0.03)
    rescale = next(op for op in integer_form(legacy).main.ops if op.name == "tosa.rescale")
    assert rescale.attributes["multiplier"].tolist() == [quantize_multiplier(float(f(0.1) * f(0.3)) / float(f(0.7)))[0]]


def test_left_shift_wraps_as_the_kernel_does() -> None:
    """A multiplier of 2^20: the kernel shifts the accumulator out of int32, and so does the integer form."""
    x, y = argument((1, 2, 3, 4), quantized(i8, 8.0)), argument((1, 2, 3, 2), quantized(i8, 2.0**-14), "y")
    w = random((2, 1, 1, 4), quantized(i8, 8.0, 0))
    check(conv(x, w, y, window(), scale=64.0), x)


def test_sums_beyond_int32_are_kept() -> None:
    """int16 with 8-bit weights sums in 64 bits."""
    x, y = argument((2, 1024), quantized(i16, 0.001)), argument((2, 3), quantized(i16, 0.1), "y")
    w = random((3, 1024), quantized(i8, 0.01, 0), low=100)
    check(one_op("tfl.fully_connected", [x, w, bias(3, i64)], [y], FULLY_CONNECTED, 5), x)


def test_results_that_tell_apart_more_than_32_bits_lose_the_last() -> None:
    x, y = argument((2, 1024), quantized(i16, 0.001)), argument((2, 3), quantized(i16, 1.0), "y")
    w = random((3, 1024), quantized(i8, 0.01, 0), low=100)
    model = one_op("tfl.fully_connected", [x, w], [y], FULLY_CONNECTED, 5)
    conversion = tflq.convert(model, fallback="error")
    batches = edge_inputs([x])
    for want, got in zip(interpret(model, batches), interpret(conversion.data, batches), strict=True):
        assert np.abs(want[0].astype(np.int64) - got[0]).max() <= 1


@pytest.mark.parametrize("name", ["conv_2d", "depthwise_conv_2d"])
@pytest.mark.parametrize("mac", MACS)
@pytest.mark.parametrize(("shape", "padding"), [((None, 6, 6, 3), "SAME"), ((None, None, None, 3), "VALID")])
def test_sizes_known_when_the_model_runs(name: str, mac: str, shape: tuple[int | None, ...], padding: str) -> None:
    depthwise = name == "depthwise_conv_2d"
    out = (None, *((6, 6) if padding == "SAME" else (None, None)), 3)
    x, y = argument(shape, quantized(i8)), argument(out, quantized(i8, 0.1), "y")
    w = random((1, 3, 3, 3), per_axis(i8, 3, 3)) if depthwise else random((3, 3, 3, 3), per_axis(i8, 0, 3))
    options = window(padding) | ({"depth_multiplier": 1} if depthwise else {})
    size = 6 if padding == "SAME" else 9
    batch = np.random.default_rng(3).integers(-128, 128, (4, size, size, 3), np.int8)
    convert_and_compare(conv(x, w, y, options, name=name), [[batch]], mac=mac)


@pytest.mark.parametrize("name", ["conv_2d", "depthwise_conv_2d"])
@pytest.mark.parametrize("mac", MACS)
@pytest.mark.parametrize("size", [(6, 7), (7, 6), (8, 9), (1, 2)])
@pytest.mark.parametrize("known", [False, True])
def test_same_padding_computed_by_the_model(name: str, mac: str, size: tuple[int, int], known: bool) -> None:
    """With a stride, SAME padding depends on the size: height, or height and width, are known only at run time."""
    depthwise = name == "depthwise_conv_2d"
    shape = (None, None, size[1] if known else None, 3)
    x = argument(shape, quantized(i8))
    y = argument((None, None, -(-size[1] // 3) if known else None, 3), quantized(i8, 0.1), "y")
    w = random((1, 3, 2, 3), per_axis(i8, 3, 3)) if depthwise else random((3, 3, 2, 3), per_axis(i8, 0, 3))
    options = window("SAME", (2, 3)) | ({"depth_multiplier": 1} if depthwise else {})
    batch = np.random.default_rng(3).integers(-128, 128, (2, *size, 3), np.int8)
    conversion = convert_and_compare(conv(x, w, y, options, name=name), [[batch]], mac=mac)
    assert [row.path for row in conversion.report.rows] == ["integer"]


def test_static_batch_can_be_resized() -> None:
    x, y = argument((1, 8), quantized(i8)), argument((1, 5), quantized(i8, 0.1), "y")
    w = random((5, 8), quantized(i8, 0.01, 0))
    model = one_op("tfl.fully_connected", [x, w, bias(5)], [y], FULLY_CONNECTED, 5)
    batch = np.random.default_rng(4).integers(-128, 128, (7, 8), np.int8)
    convert_and_compare(model, [[batch]])


def test_weights_stay_a_view() -> None:
    """An int8 FULLY_CONNECTED keeps the bytes of its weights: no copy of them is made."""
    data = np.random.default_rng(5).integers(-128, 128, (5, 8), np.int8)
    w = const(data, quantized(i8, 0.01, 0))
    x, y = argument((1, 8), quantized(i8)), argument((1, 5), quantized(i8, 0.1), "y")
    conversion = tflq.convert(one_op("tfl.fully_connected", [x, w, bias(5)], [y], FULLY_CONNECTED, 5))
    matmul = next(op for op in conversion.module.main.ops if op.name == "tfl.batch_matmul")
    buffer = matmul.operand(1).buffer
    assert buffer is not None
    assert buffer.data.base is not None
    np.testing.assert_array_equal(matmul.operand(1).array, data)


def test_ignored_zero_point_is_a_warning() -> None:
    x, y = argument((1, 4, 4, 2), quantized(i8)), argument((1, 4, 4, 2), quantized(i8, 0.2), "y")
    w = random((1, 3, 3, 2), quantized(i8, 0.01, 5))
    model = conv(x, w, y, window(depth_multiplier=1), name="depthwise_conv_2d")
    conversion = convert_and_compare(model, edge_inputs([x]))
    assert "zero point" in conversion.report.rows[0].warning


@pytest.mark.parametrize("resolver", ["BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"])
@pytest.mark.parametrize("mac", MACS)
@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_other_kernels_agree(resolver: str, mac: str, storage: ScalarType) -> None:
    """The converted model computes the same with the optimized kernels and with the delegate."""
    x, y = argument((2, 9, 9, 6), quantized(storage)), argument((2, 5, 5, 8), quantized(storage, 0.3, 11), "y")
    w = random((8, 3, 3, 6), quantized(ui8, 0.01, 119) if storage == ui8 else per_axis(i8, 0, 8))
    model = conv(x, w, y, window("SAME", (2, 2)), accumulator(storage))
    batches = edge_inputs([x])
    converted = tflq.convert(model, mac=mac).data  # type: ignore[arg-type]
    for want, got in zip(interpret(model, batches), interpret(converted, batches, resolver), strict=True):
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_a_zero_point_that_conv_2d_refuses(storage: ScalarType, constant: bool) -> None:
    """No interpreter runs it: tflq computes what the parameters say, and nothing is told of a kernel."""
    x = argument((1, 4, 4, 2), quantized(storage, 0.05, 0), "x")
    element, scale = UniformQuantizedType.of(i8, 0.02, 17), float(np.float32(0.05) * np.float32(0.02))
    w = random((3, 2, 2, 2), element) if constant else argument((3, 2, 2, 2), element, "w")
    y = argument((1, 4, 4, 3), quantized(storage, 0.5, 0), "y")
    operands = [x, w, bias(3, i64 if storage is i16 else i32, scale)]
    model = one_op("tfl.conv_2d", operands, [y], window(), 4)
    batches = edge_inputs([v for v in operands if v.buffer is None])
    with pytest.raises(RuntimeError):
        interpret(model, batches)
    plain, real = tflq.convert(model), tflq.convert(model, semantics="real")
    assert not plain.report.rows[0].warning
    (stated,) = plain.report.warnings
    assert "which kernels refuse" in stated
    for want, got in zip(interpret(real.data, batches), interpret(plain.data, batches), strict=True):
        np.testing.assert_array_equal(got[0], want[0])
