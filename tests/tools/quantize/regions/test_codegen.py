"""Text of quant-codegen is a source of conversions: its results are those of the quantized operators."""

from __future__ import annotations

from pathlib import Path

import pytest

import tflq
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.tools.opt import parse_pipeline

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")

MODELS = Path(__file__).resolve().parents[4] / "models"
GRAPH = """
!a = !quant.uniform<STORED:f32, 0.5:ZERO>
!b = !quant.uniform<STORED:f32, 0.25:ZERO>
!c = !quant.uniform<STORED:f32, 0.45:ZERO>
func.func @main(%x: tensor<1x4xIN> {tflq.name = "x"}, %y: tensor<1x4xf32> {tflq.name = "y"})
    -> (tensor<1x4xOUT>, tensor<1x4xf32>) {
  %q = "quant.qcast"(%y) : (tensor<1x4xf32>) -> tensor<1x4x!b>
  HEAD
  %0 = "tfl.add"(%p, %q) {fused_activation_function = "NONE", tflq.tensors = [{name = "sum"}]}
      : (tensor<1x4x!a>, tensor<1x4x!b>) -> tensor<1x4x!c>
  %d = "quant.dcast"(%0) {tflq.tensors = [{name = "real"}]} : (tensor<1x4x!c>) -> tensor<1x4xf32>
  %1 = "tfl.tanh"(%d) {tflq.tensors = [{name = "tanh"}]} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %RESULT, %1 : tensor<1x4xOUT>, tensor<1x4xf32>
}
"""
QUANTIZED = {"IN": "!a", "OUT": "!c", "RESULT": "0", "HEAD": "", "%p": "%x"}
FLOAT = {
    "IN": "f32",
    "OUT": "f32",
    "RESULT": "d",
    "HEAD": '%p = "quant.qcast"(%x) : (tensor<1x4xf32>) -> tensor<1x4x!a>',
}
STORED = {"i8": "3", "u8": "130", "i16": "0"}


def text_of(stored: str, header: dict[str, str], pipeline: str) -> bytes:
    text = GRAPH
    for old, new in {**header, "STORED": stored, "ZERO": STORED[stored]}.items():
        text = text.replace(old, new)
    return print_module(parse_pipeline(pipeline).run(parse_module(text)).module).encode()


@pytest.mark.parametrize("header", [QUANTIZED, FLOAT], ids=["quantized", "float"])
@pytest.mark.parametrize("stored", STORED)
def test_a_graph_between_casts_converts(stored: str, header: dict[str, str]) -> None:
    kernels = tflq.convert(text_of(stored, header, "kernel-fusion,quant-materialize{casts=tfl},dce"), target="kernels")
    generated = text_of(stored, header, "kernel-fusion,quant-codegen")
    assert tflq.verify(kernels.data, tflq.convert(generated).data).verdict == "equal"
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    again = print_module(parse_pipeline("tfl-to-tosa-pipeline").run(parse_module(generated.decode())).module)
    for text in (generated, again.encode()):
        result = tflq.verify(kernels.data, tflq.convert(text, format="tosa").data)
        (exact,) = (difference for (_, name), difference in result.outputs.items() if name != "tanh")
        assert exact.equal
        assert result.passed


@pytest.mark.parametrize("name", ["cnn_int8", "cnn_uint8", "cnn_int16x8", "two_signatures", "log_softmax"])
def test_a_network_converts(name: str) -> None:
    path = MODELS / f"{name}.tflite"
    text = print_module(parse_pipeline("kernel-fusion,quant-codegen").run(tflq.read(path)).module)
    assert tflq.verify(path, tflq.convert(text.encode()).data).verdict == "equal"
