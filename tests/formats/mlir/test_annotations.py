"""Text with `quant.stats`, `stats_ref` and `coupled_ref` is read, and converts as if they were not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from tflq.dialects.declare import Operator
from tflq.dialects.regions import CoupledRef, Stats, StatsRef
from tflq.formats.mlir.annotations import drop_annotations
from tflq.ir.ops import Op, Value
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module

pytestmark = pytest.mark.usefixtures("forked")

MODELS = Path(__file__).resolve().parents[3] / "models"
ATTRIBUTES = {
    Stats: "layerStats = dense<[0.0, 2.0]> : tensor<2xf32>, "
    "axisStats = dense<[[0.0, 1.0]]> : tensor<1x2xf32>, axis = 0",
    StatsRef: 'statsKey = "here"',
    CoupledRef: 'coupledKey = "there"',
}
CHAIN = """
func.func @main(%x: tensor<1x4xf32> {tflq.name = "x"}) -> tensor<1x4xf32> {
  %s = "quant.stats"(%x) {layerStats = dense<[0.0, 2.0]> : tensor<2xf32>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %a = "tfl.relu"(%s) {tflq.tensors = [{name = "relu"}]} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %r = "quant.stats_ref"(%a) {statsKey = "k"} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %b = "tfl.logistic"(%r) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %c = "quant.coupled_ref"(%b) {coupledKey = "k"} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %d = "quant.stats"(%c) {layerStats = dense<[0.0, 1.0]> : tensor<2xf32>, tflq.tensors = [{name = "out"}]}
      : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %d : tensor<1x4xf32>
}
"""
RETURNED = """
func.func @main(%x: tensor<1x4xf32> {tflq.name = "x"}) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %s = "quant.stats_ref"(%x) {statsKey = "k", tflq.tensors = [{name = "copy"}]} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %a = "tfl.relu"(%s) {tflq.tensors = [{name = "relu"}]} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %r = "quant.stats_ref"(%a) {statsKey = "l", tflq.tensors = [{name = "other"}]} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %s, %a, %r : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}
"""


@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_each_is_read(kind: type[Operator]) -> None:
    text = f"""func.func @f(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {{
  %0 = "{kind.op_name}"(%x) {{{ATTRIBUTES[kind]}}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}}"""
    module = tflq.read(text.encode())
    assert [type(op) for op in module.ops()] == [kind]
    assert tflq.inspect(text.encode()).summary.functions[0].operators == ((kind.op_name, "f32 -> f32", 1),)


def test_names_go_to_what_stays() -> None:
    module = parse_module(CHAIN)
    assert drop_annotations(module)
    assert [(op.name, op.result.name) for op in module.ops()] == [("tfl.relu", "relu"), ("tfl.logistic", "out")]
    assert not drop_annotations(module)


def test_an_output_keeps_its_name_where_its_operand_has_one() -> None:
    module = parse_module(RETURNED)
    drop_annotations(module)
    assert [(op.name, op.result.name) for op in module.ops()] == [
        ("tosa.identity", "copy"),
        ("tfl.relu", "relu"),
        ("tosa.identity", "other"),
    ]
    assert [value.name for value in module.main.outputs] == ["copy", "relu", "other"]


@pytest.mark.parametrize("text", [CHAIN, RETURNED], ids=["chain", "returned"])
def test_a_float_graph_converts_to_both_formats(text: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    plain = parse_module(text)
    drop_annotations(plain)
    want = tflq.convert(print_module(plain).encode()).data
    assert tflq.verify(want, tflq.convert(text.encode()).data).verdict == "equal"
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    assert tflq.verify(want, tflq.convert(text.encode(), format="tosa").data).passed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cnn_int8", "two_signatures", "split"])
def test_a_network_with_an_annotation_behind_each_tensor_converts(name: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    path = MODELS / f"{name}.tflite"
    module = tflq.read(path)
    known: dict[Value, Value] = {}
    for function in module.functions:
        ops: list[Op] = []
        for place, op in enumerate(function.ops):
            op.operands = [value and known.get(value, value) for value in op.operands]
            ops.append(op)
            for value in op.results:
                kinds: list[tuple[type[Operator], dict[str, object]]] = [
                    (Stats, {"layerStats": np.array([-1.0, 1.0], np.float32)}),
                    (StatsRef, {"statsKey": f"point {len(known)}"}),
                    (CoupledRef, {"coupledKey": "key"}),
                ]
                kind, attributes = kinds[place % 3]
                known[value] = Value(value.type)
                ops.append(Op(kind.op_name, [value], [known[value]], attributes))
        function.ops = ops
        function.outputs = [known.get(value, value) for value in function.outputs]
    module.signatures = module.signatures and [signature.with_outputs(known) for signature in module.signatures]
    result = tflq.convert(print_module(module).encode())
    assert tflq.verify(path, result.data).verdict == "equal"
