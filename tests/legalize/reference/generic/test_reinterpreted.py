"""Weights, inputs and biases of types that kernels read as others: the kernel's result, and what the report says."""

from __future__ import annotations

import numpy as np
import pytest
from matrix.draw import Case
from matrix.run_tosa import run_tosa
from matrix.weighted import int4
from support.harness import argument, const, convert_and_compare, edge_inputs, one_op

import tflq
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

_OPTIONS = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "NONE"}
_DILATION = {"dilation_h_factor": 1, "dilation_w_factor": 1}
_CONNECTED = {"weights_format": "DEFAULT", "keep_num_dims": False, "fused_activation_function": "NONE"}


def _weights(shape: tuple[int, ...], storage: ScalarType, zero: int, constant: bool, axis: int | None = None) -> Value:
    element: ElementType = UniformQuantizedType.of(storage, 0.02, zero)
    if axis is not None:
        element = UniformQuantizedPerAxisType.of(storage, axis, np.linspace(0.01, 0.03, shape[axis]), 0)
    if not constant:
        return argument(shape, element, "w")
    low, high = max(storage.minimum, i32.minimum), min(storage.maximum, i32.maximum)
    data = np.random.default_rng(1).integers(low, high, shape, endpoint=True)
    value = int4(data.astype(np.int8), element) if storage == i4 else const(data, element)
    value.name = "w"
    return value


def _bias(count: int, storage: ScalarType) -> Value:
    data = np.random.default_rng(2).integers(-1000, 1000, count)
    return const(data, UniformQuantizedType.of(storage, 0.0004, 0), "bias")


def _result(shape: tuple[int, ...], storage: ScalarType) -> Value:
    scale, zero = (0.002, 0) if storage.bits > 8 else (0.045, 5)
    return argument(shape, UniformQuantizedType.of(storage, scale, zero), "y")


def _convolution(x: ScalarType, w: ScalarType, zero: int, *, constant: bool, bias: ScalarType | None = None) -> bytes:
    source = UniformQuantizedType.of(x, 0.02, 0 if x == i16 else 3)
    operands = [argument((2, 5, 5, 3), source), _weights((5, 2, 3, 3), w, zero, constant)]
    offset = _bias(5, bias or (i64 if x == i16 else i32))
    return one_op("tfl.conv_2d", [*operands, offset], [_result((2, 5, 5, 5), x)], {**_OPTIONS, **_DILATION})


def _depthwise(x: ScalarType, w: ScalarType, *, constant: bool) -> bytes:
    source = UniformQuantizedType.of(x, 0.02, 0 if x == i16 else 3)
    operands = [argument((2, 5, 5, 3), source), _weights((1, 2, 2, 6), w, 0, constant)]
    offset = _bias(6, i64 if x == i16 else i32)
    options = {**_OPTIONS, **_DILATION, "depth_multiplier": 2}
    return one_op("tfl.depthwise_conv_2d", [*operands, offset], [_result((2, 5, 5, 6), x)], options)


def _connected(
    x: ScalarType, w: ScalarType, y: ScalarType, zero: int, *, constant: bool, axis: int | None = None
) -> bytes:
    source = UniformQuantizedType.of(x, 0.02, 0 if x == i16 else 3)
    operands = [argument((3, 7), source), _weights((5, 7), w, zero, constant, axis)]
    offset = _bias(5, i64 if x == i16 == y else i32)
    return one_op("tfl.fully_connected", [*operands, offset], [_result((3, 5), y)], _CONNECTED)


def _batches(model: bytes) -> list[list[np.ndarray]]:
    return edge_inputs(tflq.read(model).main.inputs)


def _assert_as_read(model: bytes, *words: str) -> None:
    conversion = convert_and_compare(model, _batches(model))
    (row,) = conversion.report.rows
    assert row.path == "integer"
    assert all(w in row.warning for w in words), row.warning
    outcome = run_tosa(Case(model, _batches(model), ""))
    assert outcome.kind == "ok", outcome.detail


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("w", [ui8, i16, i32])
def test_int16_convolution_reads_bytes_as_int8(w: ScalarType, constant: bool) -> None:
    model = _convolution(i16, w, 0, constant=constant)
    _assert_as_read(model, f"the kernel reads the bytes of 'w', which is {w}, as i8")


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("w", [i8, i16, i32])
def test_uint8_convolution_reads_bytes_as_uint8(w: ScalarType, constant: bool) -> None:
    model = _convolution(ui8, w, 0, constant=constant)
    _assert_as_read(model, f"the kernel reads the bytes of 'w', which is {w}, as ui8")


def test_uint8_convolution_reads_unpacked_int4_as_uint8() -> None:
    model = _convolution(ui8, i4, 0, constant=True)
    conversion = convert_and_compare(model, _batches(model))
    assert "the kernel reads the bytes of 'w', which is i4, as ui8" in conversion.report.rows[0].warning


@pytest.mark.parametrize(("w", "zero"), [(i8, -100), (i16, 400), (i16, -3000)])
def test_zero_point_beyond_what_is_read(w: ScalarType, zero: int) -> None:
    _assert_as_read(_convolution(ui8, w, zero, constant=True))
    _assert_as_read(_convolution(ui8, w, zero, constant=False))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("w", [ui8, i16, i32])
def test_int16_depthwise_reads_bytes_as_int8(w: ScalarType, constant: bool) -> None:
    _assert_as_read(_depthwise(i16, w, constant=constant), f"the kernel reads the bytes of 'w', which is {w}, as i8")


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("x", "w", "y"),
    [
        *[(i8, ui8, i8), (ui8, i8, ui8), (i16, ui8, i16), (i8, i8, i16), (ui8, i8, i8), (i8, i8, ui8), (i8, ui8, ui8)],
        *[(i16, i8, i8), (i16, ui8, i8), (i16, i8, ui8), (i16, ui8, ui8)],
    ],
)
def test_fully_connected_reads_by_its_result(x: ScalarType, w: ScalarType, y: ScalarType, constant: bool) -> None:
    _assert_as_read(_connected(x, w, y, 2, constant=constant), "the kernel reads the bytes of")
    if w == ui8 and y != ui8:
        _assert_as_read(_connected(x, w, y, 200, constant=constant))


@pytest.mark.parametrize("y", [ui8, i16])
def test_fully_connected_finds_no_scale_per_axis(y: ScalarType) -> None:
    model = _connected(i8, i8, y, 0, constant=True, axis=0)
    _assert_as_read(model, "the kernel reads the scale of weights that are quantized per axis as 0")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (_depthwise(i16, i4, constant=True), "the kernel reads 'w', of i4, as i8, past its end"),
        (_depthwise(ui8, i4, constant=True), "the kernel reads 'w', of i4, as ui8, past its end"),
        (_convolution(i16, i8, 0, constant=True, bias=i32), "'bias' is i32, but the kernel reads it as i64, past its"),
        (_connected(i8, i4, i16, 0, constant=True), "the kernel reads 'w', of i4, as ui8, past its end"),
    ],
)
def test_past_the_end_is_a_warning(model: bytes, words: str) -> None:
    (row,) = tflq.convert(model).report.rows
    assert words in row.warning
    assert row.exception == "unsettled"


def test_real_semantics_takes_weights_as_stated() -> None:
    model = _convolution(i16, i16, 0, constant=True)
    (row,) = tflq.convert(model, semantics="real").report.rows
    assert row.path == "integer"
    assert not row.warning


@pytest.mark.parametrize("y", [ui8, i16])
def test_products_written_as_others_are_a_warning(y: ScalarType) -> None:
    sides = [argument((2, 3, 4), UniformQuantizedType.of(i8, 0.02, 1), n) for n in "ab"]
    options = {"adj_x": False, "adj_y": True, "asymmetric_quantize_inputs": False}
    (row,) = tflq.convert(one_op("tfl.batch_matmul", sides, [_result((2, 3, 3), y)], options)).report.rows
    assert f"the kernel writes i32 into a result of {y}" in row.warning


@pytest.mark.parametrize(("x", "w"), [(i8, i8), (ui8, ui8), (i16, i8)])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_computed_filters_of_transpose_conv(x: ScalarType, w: ScalarType, stride: int) -> None:
    source = UniformQuantizedType.of(x, 0.02, 0 if x == i16 else 3)
    size = const(np.asarray([1, 4 * stride, 3 * stride, 5]), i32, "size")
    operands = [size, _weights((5, 3, 2, 2), w, 7 if w == ui8 else 0, constant=False), argument((1, 4, 3, 2), source)]
    offset = _bias(5, i64 if x == i16 else i32)
    options = {**_OPTIONS, "stride_h": stride, "stride_w": stride}
    model = one_op("tfl.transpose_conv", [*operands, offset], [_result((1, 4 * stride, 3 * stride, 5), x)], options)
    _assert_as_read(model)


@pytest.mark.parametrize("inputs", [1, 2])
def test_computed_filters_of_groups(inputs: int) -> None:
    source = UniformQuantizedType.of(i8, 0.02, 3)
    operands = [argument((2, 5, 5, 4), source), _weights((8, 2, 2, inputs), i8, 0, constant=False)]
    model = one_op("tfl.conv_2d", [*operands, _bias(8, i32)], [_result((2, 5, 5, 8), i8)], {**_OPTIONS, **_DILATION})
    _assert_as_read(model)
