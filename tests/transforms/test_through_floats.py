"""The reusable fallback: casts around what computes an op in floats; as a pass, and for patterns of one's own."""

from __future__ import annotations

from tflq.dialects.builder import Emitter, through_floats
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.tools.opt import parse_pipeline
from tflq.transforms.floats import QuantCasts

Q = "tensor<2x3x!quant.uniform<i8:f32, 0.5>>"
H = "tensor<2x3x!quant.uniform<i8:f16, 0.5>>"


def fallen_back(body: str, result: str) -> list[str]:
    module = parse_module(f"func.func @f(%q: {Q}, %x: tensor<2x3xf32>, %h: {H}) -> {result} {{\n{body}\n}}")
    parse_pipeline("dequantize-fallback").run(module)
    assert not parse_pipeline("dequantize-fallback").run(module).modified
    return [line.strip() for line in print_module(module).splitlines()[2:-2]]


def test_an_op_computes_on_floats() -> None:
    body = f'%0 = "tfl.softmax"(%q) {{beta = 1.0 : f32}} : ({Q}) -> {Q}\nreturn %0 : {Q}'
    assert fallen_back(body, Q) == [
        f"%0 = quant.dcast %arg0 : {Q} to tensor<2x3xf32>",
        '%1 = "tfl.softmax"(%0) {beta = 1.0 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>',
        f"%2 = quant.qcast %1 : tensor<2x3xf32> to {Q}",
        f"return %2 : {Q}",
    ]


def test_each_type_expresses_its_own_float() -> None:
    body = f'%0:2 = "my.op"(%h, %x) : ({H}, tensor<2x3xf32>) -> ({H}, tensor<i8>)\nreturn %0#0 : {H}'
    lines = fallen_back(body, H)
    assert lines[1].endswith(": (tensor<2x3xf16>, tensor<2x3xf32>) -> (tensor<2x3xf16>, tensor<i8>)")
    assert lines[2] == f"%3 = quant.qcast %1 : tensor<2x3xf16> to {H}"


def test_casts_of_tflite_are_the_casts_themselves() -> None:
    body = f'%0 = "tfl.dequantize"(%q) : ({Q}) -> tensor<2x3xf32>\n%1 = "tfl.quantize"(%0) : (tensor<2x3xf32>) -> {Q}'
    assert fallen_back(f"{body}\nreturn %1 : {Q}", Q) == [
        f"%0 = quant.dcast %arg0 : {Q} to tensor<2x3xf32>",
        f"%1 = quant.qcast %0 : tensor<2x3xf32> to {Q}",
        f"return %1 : {Q}",
    ]


def test_calls_and_effects_are_left_alone() -> None:
    body = f'%0 = "tfl.custom"(%q) {{custom_code = "x"}} : ({Q}) -> {Q}\nreturn %0 : {Q}'
    assert '"tfl.custom"(%arg0)' in fallen_back(body, Q)[0]


def test_a_pattern_of_ones_own_and_a_rounding() -> None:
    module = parse_module(f'func.func @f(%q: {Q}) -> {Q} {{\n%0 = "ml.twice"(%q) : ({Q}) -> {Q}\nreturn %0 : {Q}\n}}')
    b = Emitter()
    (result,) = through_floats(
        module.main.ops[0], QuantCasts(b, "half_even"), lambda x, types: [b.emit("arith.addf", [x[0], x[0]], types[0])]
    )
    assert [op.name for op in b.ops] == ["quant.dcast", "arith.addf", "quant.qcast"]
    assert result.type == module.main.outputs[0].type
    assert b.ops[-1].attributes == {"rounding": "half_even"}
