"""Fusion, materialization, code generation and inlining keep the names of tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

import tflq
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.tools.opt import parse_pipeline

MODELS = sorted((Path(__file__).resolve().parents[4] / "models").glob("*.tflite"))
PIPELINES = [
    "kernel-fusion,inline-regions",
    "kernel-fusion,quant-materialize{casts=tfl},canonicalize,dce",
    "kernel-fusion,quant-codegen",
]
FLOATS = """
func.func @main(%x: tensor<1x4xf32> {tflq.name = "x"}) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %w = "tfl.pseudo_const"() {value = dense<0.5> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %none = "tfl.no_value"() {value} : () -> none
  %0 = "tfl.fully_connected"(%x, %w, %none) {tflq.tensors = [{name = "product"}], fused_activation_function = "NONE"}
      : (tensor<1x4xf32>, tensor<4x4xf32>, none) -> tensor<1x4xf32>
  %1 = "tfl.relu"(%0) {tflq.tensors = [{name = "activation"}]} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  STATS
  %3 = "tfl.tanh"(%2) {tflq.tensors = [{name = "out"}]} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %2, %3 : tensor<1x4xf32>, tensor<1x4xf32>
}
"""
STATS = (
    """%2 = "quant.stats"(%1) {layerStats = dense<[0.0, 2.0]> : tensor<2xf32>} : (tensor<1x4xf32>) -> tensor<1x4xf32>"""
)
CASTS = """%q = "quant.qcast"(%1) : (tensor<1x4xf32>) -> tensor<1x4x!quant.uniform<i8:f32, 0.5>>
  %2 = "quant.dcast"(%q) : (tensor<1x4x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x4xf32>"""


def names(module: Module) -> list[str]:
    return [value.name for op in module.ops() for value in op.results]


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_names_of_a_file_are_kept(path: Path, pipeline: str) -> None:
    before = tflq.read(path)
    outputs = [[value.name for value in function.outputs] for function in before.functions]
    needed = {value for function in before.functions for value in (*function.users(), *function.outputs)}
    wanted = {value.name for op in before.ops() for value in op.results if value.name and value in needed}
    after = parse_module(print_module(parse_pipeline(pipeline).run(before).module))
    assert [[value.name for value in function.outputs] for function in after.functions] == outputs
    assert wanted <= set(names(after))
    assert len(set(filter(None, names(after)))) == len(list(filter(None, names(after))))


@pytest.mark.parametrize("stated", [STATS, CASTS])
@pytest.mark.parametrize("annotations", ["false", "true"])
def test_names_inside_of_a_kernel_are_kept(stated: str, annotations: str) -> None:
    module = parse_module(FLOATS.replace("STATS", stated))
    module = parse_pipeline(f"kernel-fusion,inline-regions{{annotations={annotations}}}").run(module).module
    assert [value.name for value in module.main.outputs] == ["activation", "out"]
    assert [name for name in names(module) if name] == ["product", "activation", "out"]


def test_an_inlined_network_is_the_network(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    text = FLOATS.replace("STATS", "").replace("%2", "%1")
    before = tflq.convert(text.encode())
    module = parse_pipeline("kernel-fusion,inline-regions").run(parse_module(text)).module
    after = tflq.convert(print_module(module).encode())
    result = tflq.verify(before.data, after.data)
    assert result.verdict == "equal"
