"""strip-func-quant-types and normalize-quant-types."""

from __future__ import annotations

import pytest

from tflq.ir.module import Signature
from tflq.ir.text.parser import parse_module
from tflq.ir.text.print_types import type_text
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

PREDICT = """!qalias = !quant.uniform<i8:f32, 1.0>
func.func @predict(%arg0: tensor<3x!qalias>, %arg1: tensor<3x!qalias>) -> tensor<3x!qalias> {
  %sum = "ml.add"(%arg0, %arg1) : (tensor<3x!qalias>, tensor<3x!qalias>) -> tensor<3x!qalias>
  return %sum : tensor<3x!qalias>
}"""

PREDICT_STRIPPED = """!qalias = !quant.uniform<i8:f32, 1.0>
func.func @predict(%arg0_stripped: tensor<3xi8>, %arg1_stripped: tensor<3xi8>) -> tensor<3xi8> {
  %arg0 = "quant.scast"(%arg0_stripped): (tensor<3xi8>) -> tensor<3x!qalias>
  %arg1 = "quant.scast"(%arg1_stripped): (tensor<3xi8>) -> tensor<3x!qalias>
  %sum = "ml.add"(%arg0, %arg1) : (tensor<3x!qalias>, tensor<3x!qalias>) -> tensor<3x!qalias>
  %sum_stripped = "quant.scast"(%sum): (tensor<3x!qalias>) -> tensor<3xi8>
  return %sum_stripped : tensor<3xi8>
}"""

CALLS = """!q = !quant.uniform<i8:f32, 1.0>
func.func private @g(tensor<3x!q>, f32) -> (tensor<3x!q>, f32)
func.func @f(%0: tensor<3x!q>, %1: f32) -> (tensor<3x!q>, f32, tensor<3x!q>) {
  %2, %3 = func.call @g(%0, %1) : (tensor<3x!q>, f32) -> (tensor<3x!q>, f32)
  return %2, %3, %0 : tensor<3x!q>, f32, tensor<3x!q>
}"""

CALLS_STRIPPED = """
func.func private @g(tensor<3xi8>, f32) -> (tensor<3xi8>, f32)
func.func @f(%0: tensor<3xi8>, %1: f32) -> (tensor<3xi8>, f32, tensor<3xi8>) {
  %2, %3 = func.call @g(%0, %1) : (tensor<3xi8>, f32) -> (tensor<3xi8>, f32)
  return %2, %3, %0 : tensor<3xi8>, f32, tensor<3xi8>
}"""


@pytest.mark.parametrize(
    ("passes", "before", "after"),
    [
        ("strip-func-quant-types", PREDICT, PREDICT_STRIPPED),
        ("strip-func-quant-types,canonicalize,dce", CALLS, CALLS_STRIPPED),
        ("strip-func-quant-types", CALLS_STRIPPED, CALLS_STRIPPED),
    ],
)
def test_strip(passes: str, before: str, after: str) -> None:
    module = parse_module(before)
    assert parse_pipeline(passes).run(module).modified is (before != after)
    verify(module)
    assert print_module(module) == print_module(parse_module(after))


def test_stripping_keeps_the_interface() -> None:
    module = parse_module(PREDICT)
    function = module.main
    function.inputs[0].name, function.outputs[0].name = "in", "out"
    function.tensors = [*function.outputs, *function.inputs]
    module.signatures = [Signature("s", 0, [("a", function.inputs[0])], [("b", function.outputs[0])])]
    parse_pipeline("strip-func-quant-types").run(module)
    assert [value.name for value in (*function.inputs, *function.outputs)] == ["in", "", "out"]
    assert function.tensors == [*function.outputs, *function.inputs]
    assert module.signatures[0].inputs == [("a", function.inputs[0])]
    assert module.signatures[0].outputs == [("b", function.outputs[0])]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tensor<2x2x!quant.uniform<i8:f32:1, {2.0:1, 2.0:1}>>", "tensor<2x2x!quant.uniform<i8:f32, 2.0:1>>"),
        ("tensor<2x2x!quant.uniform<i8<-7:7>:f32:1, {2.0, 2.0}>>", "tensor<2x2x!quant.uniform<i8<-7:7>:f32, 2.0>>"),
        (
            "tensor<2x2x!quant.uniform<i8:f32:{0:1}, {{2.0}, {3.0:1}}>>",
            "tensor<2x2x!quant.uniform<i8:f32:0, {2.0, 3.0:1}>>",
        ),
        ("tensor<2x2x!quant.uniform<i8:f32:{0:1, 1:2}, {{2.0}, {2.0}}>>", "tensor<2x2x!quant.uniform<i8:f32, 2.0>>"),
        ("tensor<4x!quant.uniform<u8:f32:{0:4}, {2.0:7}>>", "tensor<4x!quant.uniform<u8:f32, 2.0:7>>"),
        *(
            (kept, kept)
            for kept in (
                "tensor<2x2x!quant.uniform<i8:f32:1, {2.0:1, 2.0}>>",
                "tensor<4x2x!quant.uniform<i8:f32:{0:2}, {{2.0}, {3.0}}>>",
                "tensor<2x2x!quant.uniform<i8:f32:{0:1, 1:1}, {{2.0, 3.0}, {4.0, 5.0}}>>",
                "tensor<2x2x!quant.uniform<i8:f32, 2.0>>",
                "tensor<2x2xi8>",
            )
        ),
    ],
)
def test_normalize(before: str, after: str) -> None:
    module = parse_module(f"func.func @f(%0: {before}) -> {before} {{\n  return %0 : {before}\n}}")
    assert parse_pipeline("normalize-quant-types").run(module).modified is (before != after)
    assert type_text(module.main.outputs[0].type) == after
