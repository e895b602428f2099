"""Scaled sums of which the interpreter keeps the low 32 bits: on the reference model of TOSA."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret, one_op
from support.running import reference

import tflq
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i16, i64

OPTIONS = {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False}
SIDE = UniformQuantizedType.of(i16, 0.05)
WINDOW = ("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")


def _model(scale: float, storage: ScalarType) -> bytes:
    sides = [argument((2, 3, 9), SIDE, "a"), argument((2, 9, 4), UniformQuantizedType.of(storage, 0.07), "b")]
    result = argument((2, 3, 4), UniformQuantizedType.of(i16, scale), "y")
    return one_op("tfl.batch_matmul", sides, [result], OPTIONS, 4)


@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e-7, 1e-4, 0.01, 0.1, 10.0])
@pytest.mark.parametrize("storage", [i16, i8])
def test_products_of_int16(scale: float, storage: ScalarType) -> None:
    model = _model(scale, storage)
    module = tflq.convert(model, format="tosa").module
    rng = np.random.default_rng(0)
    for reach in (1, 40, 2000, i16.maximum):
        near = min(reach, storage.maximum)
        arrays = [
            rng.integers(-reach, reach, (2, 3, 9), endpoint=True).astype(np.int16),
            rng.integers(-near, near, (2, 9, 4), endpoint=True).astype(storage.dtype),
        ]
        (wanted,) = interpret(model, [arrays])[0]
        (got,) = reference(module, arrays)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("scale", [1e-7, 1e-3])
def test_convolutions_of_int16(depthwise: bool, scale: float) -> None:
    rng = np.random.default_rng(0)
    shape, axis = ((1, 2, 2, 3), 3) if depthwise else ((3, 2, 2, 3), 0)
    element = UniformQuantizedPerAxisType.of(i8, axis, np.asarray([0.03, 0.0001, 0.4]), 0)
    weights = const(rng.integers(-127, 128, shape), element, "w")
    bias = const(rng.integers(-(1 << 30), 1 << 30, 3), UniformQuantizedType.of(i64, 0.0004, 0), "bias")
    x = argument((2, 5, 5, 3), SIDE, "x")
    result = argument((2, 5, 5, 3), UniformQuantizedType.of(i16, scale), "y")
    options = {"padding": "SAME", "fused_activation_function": "NONE"} | dict.fromkeys(WINDOW, 1)
    name = "tfl.depthwise_conv_2d" if depthwise else "tfl.conv_2d"
    model = one_op(name, [x, weights, bias], [result], options | ({"depth_multiplier": 1} if depthwise else {}))
    module = tflq.convert(model, format="tosa").module
    for arrays in edge_inputs([x]):
        (wanted,) = interpret(model, [arrays])[0]
        np.testing.assert_array_equal(reference(module, arrays)[0], wanted)


@pytest.mark.parametrize("scale", [1e-9, 1e-6])
def test_sums_of_fully_connected_beyond_int32(scale: float) -> None:
    rng = np.random.default_rng(0)
    weights = const(rng.integers(-127, 128, (3, 6)), UniformQuantizedType.of(i8, 0.01), "w")
    x, result = argument((5, 6), SIDE, "x"), argument((5, 3), UniformQuantizedType.of(i16, scale), "y")
    options = {"weights_format": "DEFAULT", "keep_num_dims": False, "fused_activation_function": "NONE"}
    model = one_op("tfl.fully_connected", [x, weights], [result], options)
    module = tflq.convert(model, format="tosa").module
    small = rng.integers(-9, 10, (5, 6)).astype(np.int16)
    for arrays in [*edge_inputs([x]), [small]]:
        (wanted,) = interpret(model, [arrays])[0]
        np.testing.assert_array_equal(reference(module, arrays)[0], wanted)
