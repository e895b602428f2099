"""Floats by quantized constants: TOSA on activations that stay float, how far that is from the interpreter's kernels,
and what these make of parameters that they do not read."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matrix.weighted import int4
from support.harness import argument, const, interpret, one_op
from support.running import reference

import tflq
from tflq.ir.ops import Value, constant
from tflq.ir.types import (
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f32,
    i4,
    i8,
    i32,
    ui8,
)

_WINDOW = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "NONE"}
_PLANAR = {**_WINDOW, "dilation_h_factor": 1, "dilation_w_factor": 1}
_ROWS = {"weights_format": "DEFAULT", "keep_num_dims": False, "fused_activation_function": "NONE"}


def _scaled(axis: int, channels: int) -> UniformQuantizedPerAxisType:
    return UniformQuantizedPerAxisType.of(i8, axis, np.linspace(0.01, 0.03, channels), 0)


def _weights(shape: tuple[int, ...], element: ElementType) -> Value:
    storage = element.storage  # type: ignore[union-attr]
    data = np.random.default_rng(1).integers(storage.minimum, storage.maximum, shape, endpoint=True)
    value = int4(data.astype(np.int8), element) if storage == i4 else const(data, element)
    value.name = "w"
    return value


def _floats(*shape: int) -> Value:
    return const(np.random.default_rng(2).normal(0, 1, shape).astype(np.float32), f32, "bias")


def _model(kind: str, *, asymmetric: bool = False) -> bytes:
    more = {"asymmetric_quantize_inputs": asymmetric}
    if kind == "conv_2d":
        operands = [argument((2, 5, 5, 4), f32, "x"), _weights((6, 2, 2, 4), _scaled(0, 6)), _floats(6)]
        return one_op("tfl.conv_2d", operands, [argument((2, 5, 5, 6), f32)], _PLANAR)
    if kind == "depthwise_conv_2d":
        operands = [argument((2, 5, 5, 4), f32, "x"), _weights((1, 2, 2, 8), _scaled(3, 8)), _floats(8)]
        options = {**_PLANAR, "depth_multiplier": 2}
        return one_op("tfl.depthwise_conv_2d", operands, [argument((2, 5, 5, 8), f32)], options)
    if kind == "transpose_conv":
        size = const(np.asarray([2, 5, 5, 6]), i32, "size")
        operands = [size, _weights((6, 2, 2, 4), _scaled(0, 6)), argument((2, 5, 5, 4), f32, "x"), _floats(6)]
        return one_op("tfl.transpose_conv", operands, [argument((2, 5, 5, 6), f32)], _WINDOW)
    if kind == "batch_matmul":
        element = UniformQuantizedType.of(i8, 0.02)
        operands = [argument((2, 3, 8), f32, "x"), _weights((2, 8, 4), element)]
        return one_op(
            "tfl.batch_matmul", operands, [argument((2, 3, 4), f32)], {"adj_x": False, "adj_y": False, **more}
        )
    storage = i4 if kind == "fully_connected int4" else i8
    operands = [argument((3, 8), f32, "x"), _weights((6, 8), UniformQuantizedType.of(storage, 0.02)), _floats(6)]
    return one_op("tfl.fully_connected", operands, [argument((3, 6), f32)], {**_ROWS, **more})


def _on_tosa(conversion: tflq.Conversion, x: np.ndarray) -> np.ndarray:
    (result,) = reference(conversion.module, [x])
    return result


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        *["batch_matmul", "conv_2d", "depthwise_conv_2d", "fully_connected", "fully_connected int4"],
        "transpose_conv",
    ],
)
def test_the_warning_bounds_the_distance(kind: str, asymmetric: bool) -> None:
    model = _model(kind, asymmetric=asymmetric)
    conversion = tflq.convert(model, format="tosa")
    (row,) = conversion.report.rows
    assert row.exception == "inexact"
    found = re.search(r"that meet 'w' to 8 bits .* are up to ([0-9.e+-]+) times the largest activation", row.warning)
    assert found, row.warning
    factor = float(found[1])
    shape = [d or 0 for d in tflq.read(model).main.inputs[0].type.shape or ()]
    x = np.random.default_rng(3).normal(0.5, 1, shape).astype(np.float32)
    (wanted,) = interpret(model, [[x]])[0]
    far = float(np.abs(_on_tosa(conversion, x) - wanted).max())
    assert 0 < far <= factor * np.abs(x).max() * 1.01


def test_real_semantics_need_no_warning() -> None:
    (row,) = tflq.convert(_model("conv_2d"), format="tosa", semantics="real").report.rows
    assert not row.warning


@pytest.mark.parametrize("element", [UniformQuantizedType.of(ui8, 0.02, 100), UniformQuantizedType.of(i8, 0.02, 40)])
def test_constants_as_the_kernel_reads_them(element: UniformQuantizedType) -> None:
    operands = [argument((3, 8), f32, "x"), _weights((6, 8), element), _floats(6)]
    model = one_op("tfl.fully_connected", operands, [argument((3, 6), f32)], _ROWS)
    x = np.random.default_rng(3).normal(0, 1, (3, 8)).astype(np.float32)
    (wanted,) = interpret(model, [[x]])[0]
    conversion = tflq.convert(model, format="tosa")
    np.testing.assert_allclose(_on_tosa(conversion, x), wanted, atol=0.25)
    (row,) = conversion.report.rows
    assert "kernel" in row.warning.split(";")[0]
    real = _on_tosa(tflq.convert(model, format="tosa", semantics="real"), x)
    assert np.abs(real - wanted).max() > 1


@pytest.mark.parametrize("storage", [i8, i4])
def test_blocks(storage: ScalarType) -> None:
    """int8: the kernel finds no scale, and gives the bias. int4: only the reference kernel does."""
    scales = (0.25 / (np.arange(12) + 1)).reshape(6, 2).astype(np.float16)
    element = UniformQuantizedSubChannelType.of(storage, (0, 1), (1, 32), scales)
    weights = _weights((6, 64), element)
    details = {"scales": constant(scales, name="scales"), "zero_points": -1, "block_size": 32}
    weights.info = {"quantization": {"details": ("BlockwiseQuantization", details)}}
    operands = [argument((3, 64), f32, "x"), weights, _floats(6)]
    model = one_op("tfl.fully_connected", operands, [argument((3, 6), f32)], _ROWS)
    conversion = tflq.convert(model, format="tosa")
    (row,) = conversion.report.rows
    x = np.random.default_rng(3).normal(0, 1, (3, 64)).astype(np.float32)
    got = _on_tosa(conversion, x)
    resolver = "BUILTIN_REF" if storage == i8 else "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    (wanted,) = interpret(model, [[x]], resolver)[0]
    if storage == i8:
        np.testing.assert_array_equal(got, wanted)
        return
    assert "the interpreter's reference kernel finds no scale of 'w'" in row.warning
    found = re.search(r"up to ([0-9.e+-]+) times the largest", row.warning)
    assert found
    assert np.abs(got - wanted).max() <= float(found[1]) * np.abs(x).max() * 1.01
