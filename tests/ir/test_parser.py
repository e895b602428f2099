"""Hand-written text: MLIR as the `quant` dialect's documents write it, and what is wrong with other text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.base.errors import ParseError
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import BareType, TensorType, UniformQuantizedType, f32, i8, i32
from tflq.ir.verifier import verify

WORKFLOW = """
func.func private @dequantize(%arg0: tensor<3xi8>) -> tensor<3xf32>
func.func private @quantize(tensor<3xf32>) -> tensor<3xi8>

!qalias = !quant.uniform<i8:f32:0, {2.0, 3.0, 4.0}>

func.func @multiply_add(%arg0: tensor<3x!qalias>, %arg1: tensor<3x!qalias>) -> tensor<3x!qalias> {
  // Conversion of function arguments
  %arg0_i8 = "quant.scast"(%arg0) : (tensor<3x!qalias>) -> tensor<3xi8>
  %arg0_f32 = func.call @dequantize(%arg0_i8) : (tensor<3xi8>) -> tensor<3xf32>
  %arg1_f32 = quant.dcast %arg1 : tensor<3x!qalias> to tensor<3xf32>

  %product_f32 = arith.mulf %arg0_f32, %arg1_f32 : tensor<3xf32>
  %product_i8 = func.call @quantize(%product_f32) : (tensor<3xf32>) -> tensor<3xi8>
  %product = "quant.scast"(%product_i8) : (tensor<3xi8>) -> tensor<3x!qalias>
  return %product : tensor<3x!qalias>
}
"""

PAD = """
!qalias = !quant.uniform<i8:f32, 0.5>
func.func @main(%arg0: tensor<2x2x!qalias>) -> tensor<4x6x!qalias> {
  %padding = "tfl.pseudo_const"() {value = dense<[[1, 1], [2, 2]]> : tensor<2x2xi32>} : () -> tensor<2x2xi32>
  %zero = "tosa.const"() <{value = dense<0> : tensor<i8>}> : () -> tensor<i8>
  %c10_i8 = arith.constant 10 : i8
  %c-8_i8 = arith.constant dense<-8> : tensor<4xi8>
  %cst = arith.constant 2.000000e+00 : f32
  %t = arith.constant true
  %none = "tfl.no_value"() {value} : () -> none
  %result = "tfl.pad"(%arg0, %padding, %none) : (tensor<2x2x!qalias>, tensor<2x2xi32>, none) -> tensor<4x6x!qalias>
  %pair:2 = "tfl.custom"(%zero, %c10_i8, %c-8_i8, %cst, %t) : (tensor<i8>, i8, tensor<4xi8>, f32, i1) -> (i8, f32)
  %last = "tfl.neg"(%pair#1) {flag, n = array<i32: 1, -2>} : (f32) -> f32 loc("a.tflite":0:3)
  return %result : tensor<4x6x!qalias>
}
"""


@pytest.mark.parametrize("text", [WORKFLOW, PAD])
def test_documents_parse_and_come_back(text: str) -> None:
    module = parse_module(text)
    verify(module)
    assert parse_module(print_module(module)) == module


@pytest.mark.parametrize(
    ("user", "printed"),
    [
        ("tfl.add", '"tfl.pseudo_const"() {value = '),
        ("ext.unknown", '"tfl.pseudo_const"() {value = '),
        ("tosa.add", '"tosa.const"() {values = '),
        ("stablehlo.add", '"stablehlo.constant"() {value = '),
        ("arith.addf", "arith.constant "),
        ("my.add", "arith.constant "),
    ],
)
def test_a_constant_is_an_op_of_its_first_user(user: str, printed: str) -> None:
    text = f"""
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r = "{user}"(%a, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}}
"""
    assert f" = {printed}dense<[1.0, 2.0]> : tensor<2xf32>" in print_module(parse_module(text))


def test_blocks_end_in_the_short_form_of_any_dialect() -> None:
    text = """
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %r = "x.loop"(%a) ({
  ^bb0(%b: tensor<2xf32>):
    x.yield %b, %b {n = 1} : tensor<2xf32>, tensor<2xf32>
  }, {
    x.yield
  }) : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
"""
    first, second = (region.block.ops[-1] for region in parse_module(text).main.ops[0].regions)
    assert (first.name, len(first.operands), first.attributes) == ("x.yield", 2, {"n": 1})
    assert second.operands == []


def test_constants_are_values() -> None:
    pad, custom, neg = parse_module(PAD).main.ops
    q = UniformQuantizedType.of(i8, 0.5)
    assert pad.operand(0).type == TensorType((2, 2), q)
    assert pad.operand(1).array.tolist() == [[1, 1], [2, 2]]
    assert pad.operands[2] is None
    assert [v.array.tolist() for v in custom.operands if v is not None] == [0, 10, [-8] * 4, 2.0, True]
    assert custom.operand(3).type == BareType.of(f32)
    assert neg.operand(0) is custom.results[1]
    assert neg.attributes["flag"] is None
    assert np.array_equal(neg.attributes["n"], np.array([1, -2], i32.dtype))
    assert str(neg.location) == "a.tflite: subgraph 0, operator 3 ()"


HEAD = "func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
TAIL = "\n  return %a : tensor<2xf32>\n}"

WRONG = [
    ('%0 = "tfl.abs"(%b) : (tensor<2xf32>) -> tensor<2xf32>', 2, "%b is not defined before this"),
    ('%0 = "tfl.abs"(%a) : (tensor<3xf32>) -> tensor<2xf32>', 2, "%a is not of the type"),
    ('%0 = "tfl.abs"(%a, %a) : (tensor<2xf32>) -> tensor<2xf32>', 2, "2 operands, but 1 types"),
    ('%0, %1 = "tfl.abs"(%a) : (tensor<2xf32>) -> tensor<2xf32>', 2, "2 results, but 1 types"),
    ('%a = "tfl.abs"(%a) : (tensor<2xf32>) -> tensor<2xf32>', 2, "%a is defined a second time"),
    ('%0 = "tfl.abs"(%a) : (tensor<2xf32>) -> tensor<2x!q>', 2, "'!q' is not a type, or an alias"),
    ('%0 = "tfl.abs"(%a) : (tensor<2xf32>) -> tensor<2xf33>', 2, "'f33' is not a type"),
    ('%0 = "tfl.abs"(%a) : (tensor<2xf32>) -> !quant.uniform<i8:i8, 1.0>', 2, "must be a floating-point type"),
    ('%0 = "tfl.abs"(%a) : (tensor<2xf32>) -> !quant.uniform<f32:f32, 1.0>', 2, "'f32' is not a storage type"),
    ('%0 = "tfl.abs"(%a) : (tensor<2xf32>) -> !quant.uniform<i8:f32, 0xFF800000>', 2, "not a number from 0 up"),
    ('%0 = "tfl.abs"(%a) : (tensor<2xf32>) -> !quant.uniform<i8:f32, 1.0:200>', 2, "zero point 200 is outside i8"),
    ('%0 = "tfl.abs"(%a) : (tensor<2xf32>) -> !quant.uniform<i8<0:300>:f32, 1.0>', 2, "not a range within i8"),
    (
        '%0 = "tfl.abs"(%a) : (tensor<2xf32>) -> !quant.uniform<i8:f32:0, {}>',
        2,
        "expected a number with a decimal point",
    ),
    ('%0 = "tfl.abs"(%a) {x = 1, x = 2} : (tensor<2xf32>) -> f32', 2, "'x' is given twice"),
    ('%0 = "tfl.abs"(%a) {x = #pad} : (tensor<2xf32>) -> f32', 2, "the alias '#pad' is not defined"),
    ('%0 = "tfl.abs"(%a) {x = #tflq.bytes<7>} : (tensor<2xf32>) -> f32', 2, "#tflq.bytes holds a string"),
    ('%0 = "tfl.abs"(%a) {x = #tflq.tuple<7>} : (tensor<2xf32>) -> f32', 2, "#tflq.tuple holds a list"),
    ('%0 = "tfl.abs"(%a) {x = #tflq.scalar<7>} : (tensor<2xf32>) -> f32', 2, "#tflq.scalar holds dense"),
    ('%0 = "tfl.abs"(%a) {x = ?} : (tensor<2xf32>) -> f32', 2, "expected an attribute"),
    ('%0 = "tfl.abs"(%a) {x = dense<[1, 2]> : tensor<3xi8>} : (tensor<2xf32>) -> f32', 2, "not in the shape of 3"),
    ('%0 = "tfl.abs"(%a) {x = dense<[[1], [2, 3]]> : tensor<3x1xi8>} : (tensor<2xf32>) -> f32', 2, "different lengths"),
    ('%0 = "tfl.abs"(%a) {x = dense<300> : tensor<3xi8>} : (tensor<2xf32>) -> f32', 2, "not within i8"),
    ('%0 = "tfl.abs"(%a) {x = dense<a> : tensor<3xi8>} : (tensor<2xf32>) -> f32', 2, "not elements of i8"),
    ('%0 = "tfl.abs"(%a) {x = dense<"0x00"> : tensor<3xi8>} : (tensor<2xf32>) -> f32', 2, "1 bytes are not what"),
    ('%0 = "tfl.abs"(%a) {x = dense_resource<r> : tensor<3xi8>} : (tensor<2xf32>) -> f32', 2, "no resource 'r'"),
    ('%0 = "tfl.abs"(%a) ({ %1 = }) : (tensor<2xf32>) -> f32', 2, "expected an op's name"),
    ('%0 = "tfl.pseudo_const"() : () -> tensor<2xf32>', 2, "a constant of f32 needs a value"),
    (
        '%0 = "tfl.pseudo_const"() {value = dense<1> : tensor<3xi8>} : () -> tensor<2xi8>',
        2,
        "not of the constant's type",
    ),
    ('%0 = "tfl.abs"(%a) {tflq.tensors = [{buffer = 3}]} : (tensor<2xf32>) -> f32', 2, "no buffer 3"),
    ('%0 = "tfl.abs"(%a) {tflq.tensors = [{index = 1}]} : (tensor<2xf32>) -> f32', 1, "no tensor .* index 0"),
    ("%0 = arith.constant 300 : i8", 2, "300 is not within i8"),
    ('%0:9999999999999 = "tfl.split"(%a) : (tensor<2xf32>) -> f32', 2, "cannot have 9999999999999 results"),
    ("}", 2, "ends without a return"),
]


@pytest.mark.parametrize(("line", "number", "reason"), WRONG)
def test_a_wrong_line_is_shown(line: str, number: int, reason: str) -> None:
    with pytest.raises(ParseError, match=reason) as caught:
        parse_module(HEAD + "  " + line + TAIL, "a.mlir")
    assert caught.value.line == number
    message = str(caught.value).splitlines()
    assert message[0].startswith(f"a.mlir:{number}:{caught.value.column}: ")
    assert message[2].index("^") == caught.value.column - 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("func.func @f() {\n  return\n}\nmore", "expected 'func.func'"),
        ("module {\n", "expected 'func.func'"),
        ("func.func @f() -> f32 {\n  return\n}", "not of the types in its header"),
        ("module attributes {tflq.buffers = [unit]} {\n}", "nothing gives the data of buffer 0"),
        ('{-#\n  dialect_resources: {\n    builtin: {\n      r: "0x04"\n    }\n  }\n#-}', "its alignment"),
        ('{-#\n  dialect_resources: {\n    builtin: {\n      r: "0x04000000zz"\n    }\n  }\n#-}', "not hexadecimal"),
        ("", ""),
    ],
)
def test_a_wrong_module(text: str, reason: str) -> None:
    if not reason:
        assert parse_module(text).functions == []
        return
    with pytest.raises(ParseError, match=reason):
        parse_module(text)


PIECES = [
    "",
    " ",
    "x",
    "0",
    "-1",
    "1.5",
    "9" * 30,
    '"',
    "%0",
    "{}",
    "[]",
    "(",
    ")",
    "<",
    ">",
    ":",
    ",",
    "=",
    "#",
    "@",
    "!q",
]
PIECES += ["unit", "true", "i8", "tensor<2xi8>", "dense<1>", "loc(", "//", "\\", "\n"]


@given(st.sampled_from([WORKFLOW, PAD, print_module(parse_module(PAD))]), st.data())
def test_any_text_is_a_module_or_a_parse_error(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 8))
        text = text[:start] + data.draw(st.sampled_from(PIECES)) + text[end:]
    try:
        module = parse_module(text)
    except ParseError:
        return
    assert parse_module(print_module(module)) == module


@pytest.mark.parametrize(
    ("start", "end"),
    [("[", "]"), ("{a = ", "}"), ("#tflq.tuple<[", "]>"), ("(", ") -> i8")],
    ids=["list", "dictionary", "tuple", "arguments"],
)
@pytest.mark.parametrize("depth", [200, 100_000])
def test_what_is_nested_too_deep_is_refused(start: str, end: str, depth: int) -> None:
    text = f"!a = {start * depth}i8{end * depth}\n" if "->" in start + end else f"#a = {start * depth}i8{end * depth}\n"
    with pytest.raises(ParseError, match="which is as deep as tflq reads"):
        parse_module(text)


def test_regions_nested_too_deep_are_refused() -> None:
    opening = '"stablehlo.custom_call"() ({\n  ' * 200
    closing = "\n}) : () -> ()" * 200
    with pytest.raises(ParseError, match="which is as deep as tflq reads"):
        parse_module(f"func.func @f() {{\n{opening}{closing}\nreturn\n}}")
