"""MEAN of no axes is its operand: REDUCEMEAN and REDUCESUM of no axes reduce over all."""

from __future__ import annotations

import pytest

import tflq

QUANTIZED = "tensor<3x!quant.uniform<i8:f32, 0.5>>"


@pytest.mark.parametrize("kind", [QUANTIZED, "tensor<3xf32>"])
def test_mean_of_no_axes(kind: str) -> None:
    lines = (
        f"func.func @main(%a: {kind}) -> {kind} {{",
        '%c = "tfl.pseudo_const"() {value = dense<0> : tensor<0xi32>} : () -> tensor<0xi32>',
        f'%0 = "tfl.mean"(%a, %c) {{keep_dims = false}} : ({kind}, tensor<0xi32>) -> {kind}',
        f"return %0 : {kind}",
        "}",
    )
    module = tflq.convert("\n".join(lines).encode(), format="qdq").module
    names = {op.name for op in module.ops()}
    assert names <= {"onnx.dequantize_linear", "onnx.quantize_linear", "onnx.identity"}
