"""Floating-point activations and quantized weights: DEQUANTIZE of the weights, which stay quantized, and a float
operator."""

import numpy as np
import pytest
from support.harness import interpret
from support.running import reference

from tflq import convert
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import UnsupportedError
from tflq.formats.sources import read, read_any_form

PER_AXIS = "!quant.uniform<i8:f32:{axis}, {{0.5, 0.25, 0.1, 0.3}}>"


def _text(op: str, x: str, w: tuple[tuple[int, ...], str], made: str, attributes: str) -> str:
    shape, element = w
    values = np.random.default_rng(1).integers(-128, 128, shape).tolist()
    dims = "".join(f"{d}x" for d in shape)
    return (
        f"func.func @f(%x: tensor<{x}>) -> tensor<{made}> {{\n"
        f'%w = "stablehlo.constant"() {{value = dense<{values}> : tensor<{dims}i8>}} : () -> tensor<{dims}{element}>\n'
        f'%r = "stablehlo.{op}"(%x, %w) {{{attributes}}} : (tensor<{x}>, tensor<{dims}{element}>) -> tensor<{made}>\n'
        f"return %r : tensor<{made}>\n}}\n"
    )


def _dot(text: str) -> str:
    return f"dot_dimension_numbers = #stablehlo.dot<{text}>"


CONV = "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"
CASES = {
    "matrix": _text(
        "dot_general",
        "2x3xf32",
        ((3, 4), PER_AXIS.format(axis=1)),
        "2x4xf32",
        _dot("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]"),
    ),
    "batches": _text(
        "dot_general",
        "3x5x2xf32",
        ((4, 5, 2, 3), PER_AXIS.format(axis=0)),
        "2x3x4x3xf32",
        _dot(
            "lhs_batching_dimensions = [2], rhs_batching_dimensions = [2], "
            "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]"
        ),
    ),
    "convolution": _text("convolution", "1x6x6x2xf32", ((3, 3, 2, 4), PER_AXIS.format(axis=3)), "1x4x4x4xf32", CONV),
    "padded_groups": _text(
        "convolution",
        "1x5x6x4xf32",
        ((2, 2, 2, 4), "!quant.uniform<i8:f32, 0.5:3>"),
        "1x3x5x4xf32",
        f"{CONV}, feature_group_count = 2 : i64, window_strides = array<i64: 2, 1>, rhs_dilation = array<i64: 1, 2>, "
        "padding = dense<[[1, 0], [0, 1]]> : tensor<2x2xi64>",
    ),
    "channels_first": _text(
        "convolution",
        "1x2x6x6xf32",
        ((4, 2, 3, 3), PER_AXIS.format(axis=0)),
        "1x4x4x4xf32",
        "dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>",
    ),
}


def _input(text: str) -> np.ndarray:
    shape = read_any_form(text.encode()).main.inputs[0].type.shape or ()
    return np.random.default_rng(2).normal(size=[d or 0 for d in shape]).astype(np.float32)


def _evaluated(text: str, x: np.ndarray) -> np.ndarray:
    function = read_any_form(text.encode()).main
    return evaluate_function(function, {function.inputs[0]: x})[function.outputs[0]]


@pytest.mark.parametrize("name", CASES)
def test_weights_stay_quantized_in_tflite(name: str) -> None:
    text = CASES[name]
    data = convert(text.encode()).data
    names = [op.name for op in read(data).main.ops]
    assert names.count("tfl.dequantize") == 1
    (weights,) = (op.operand(0) for op in read(data).main.ops if op.name == "tfl.dequantize")
    assert weights.is_constant
    assert weights.type.storage.bits == 8
    x = _input(text)
    np.testing.assert_allclose(interpret(data, [[x]])[0][0], _evaluated(text, x), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["matrix", "convolution"])
def test_tosa_computes_in_floats(name: str) -> None:
    text = CASES[name]
    x = _input(text)
    (out,) = reference(convert(text.encode(), format="tosa").module, [x])
    np.testing.assert_allclose(out, _evaluated(text, x), rtol=1e-5, atol=1e-4)


def test_float16_is_refused() -> None:
    text = CASES["matrix"].replace("f32", "f16")
    with pytest.raises(UnsupportedError, match="TFLite has no float kernel of f16"):
        convert(text.encode())
