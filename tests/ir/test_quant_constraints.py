"""The `quant` dialect's own examples: the valid ones verify, the invalid ones are refused for the right reason."""

from __future__ import annotations

import pytest

from tflq.base.errors import ParseError, VerificationError
from tflq.ir.ops import op_class
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify

VALID = [
    ("qcast", "tensor<2xf32>", "tensor<2x!quant.uniform<i8:f32:0, {1.0, 2.0}>>"),
    ("qcast", "tensor<1x2xf32>", "tensor<1x2x!quant.uniform<i8:f32:1, {1.0, 2.0}>>"),
    ("qcast", "tensor<?x3xf32>", "tensor<?x3x!quant.uniform<i8:f32:1, {2.0, 3.0, 4.0}>>"),
    ("qcast", "f32", "!quant.uniform<i8:f32, 2.0>"),
    ("qcast", "tensor<?xf32>", "tensor<?x!quant.uniform<i8:f32, 2.0>>"),
    ("qcast", "tensor<*xf32>", "tensor<*x!quant.uniform<i8:f32:1, {2.0, 3.0}>>"),
    ("qcast", "tensor<2x4xf32>", "tensor<2x4x!quant.uniform<i8:f32:{1:2}, {{2.0, 3.0}}>>"),
    ("dcast", "!quant.uniform<i8:f32, 2.0>", "f32"),
    ("dcast", "tensor<?x!quant.uniform<i8:f32, 2.0>>", "tensor<?xf32>"),
    ("dcast", "tensor<*x!quant.uniform<i8:f32:1, {2.0, 3.0}>>", "tensor<*xf32>"),
    ("scast", "!quant.uniform<i8:f32, 2.0>", "i8"),
    ("scast", "tensor<?x!quant.uniform<i8:f32, 2.0>>", "tensor<?xi8>"),
    ("scast", "tensor<*xi8>", "tensor<*x!quant.uniform<i8:f32:1, {2.0, 3.0}>>"),
    ("scast", "tensor<2xi16>", "tensor<2x!quant.uniform<u16<0:1023>:f32, 1.23:512>>"),
    ("scast", "tensor<?x?xi16>", "tensor<?x?x!quant.uniform<u16:f32:0, {2.0:10, 3.0:20}>>"),
]

INVALID = [
    ("qcast", "f32", "!quant.uniform<i8:f32:0, {1.0, 2.0}>", "a scalar cannot have per-axis quantization"),
    (
        "qcast",
        "tensor<1x2xf32>",
        "tensor<1x2x!quant.uniform<i8:f32:3, {1.0, 2.0}>>",
        r"rank \(2\) must be greater than .*axis \(3\)",
    ),
    (
        "qcast",
        "tensor<?x3xf32>",
        "tensor<?x3x!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0, 4.0}>>",
        "4 scales, but dim 1 .* is 3",
    ),
    ("qcast", "tensor<2xi8>", "tensor<2x!quant.uniform<i8:f32, 1.0>>", "operand must be a floating-point"),
    ("qcast", "tensor<2xf32>", "tensor<2xi8>", "result must be a scalar or tensor of type !quant.uniform"),
    (
        "qcast",
        "tensor<2xf32>",
        "tensor<2x!quant.any<i8:f32>>",
        "result must be a scalar or tensor of type !quant.uniform",
    ),
    ("qcast", "tensor<2xf16>", "tensor<2x!quant.uniform<i8:f32, 1.0>>", "expressed type .* must be"),
    ("qcast", "f32", "tensor<!quant.uniform<i8:f32, 1.0>>", "both scalars or both tensors"),
    ("qcast", "tensor<*xf32>", "tensor<2x!quant.uniform<i8:f32, 1.0>>", "both ranked or both unranked"),
    ("qcast", "tensor<?xf32>", "tensor<2x!quant.uniform<i8:f32, 1.0>>", "same shape, dynamic dims included"),
    ("qcast", "tensor<2x4xf32>", "tensor<2x4x!quant.uniform<i8:f32:{1:3}, {{2.0, 3.0}}>>", "blocks along dim 1"),
    ("qcast", "tensor<*xf32>", "tensor<*x!quant.uniform<i8:f32:{1:3}, {{2.0, 3.0}}>>", "tensor of known rank"),
    ("dcast", "tensor<2xi8>", "tensor<2xf32>", "operand must be a scalar or tensor of type !quant.uniform"),
    ("dcast", "tensor<2x!quant.uniform<i8:f32, 1.0>>", "tensor<2xi32>", "result must be a floating-point"),
    ("dcast", "tensor<2x!quant.uniform<i8:f32, 1.0>>", "tensor<2xf64>", "expressed type .* must be"),
    ("dcast", "tensor<2x!quant.uniform<i8:f32, 1.0>>", "tensor<3xf32>", "same shape"),
    ("scast", "tensor<2xf32>", "tensor<2x!quant.uniform<i8:f32, 1.0>>", "integer or !quant.uniform"),
    ("scast", "tensor<2xi8>", "tensor<2xi8>", "one of operand and result"),
    (
        "scast",
        "tensor<2x!quant.uniform<i8:f32, 1.0>>",
        "tensor<2x!quant.uniform<i8:f32, 2.0>>",
        "one of operand and result",
    ),
    ("scast", "tensor<2xi16>", "tensor<2x!quant.uniform<i8:f32, 1.0>>", "width of the quantized type's storage"),
    ("scast", "tensor<2xi8>", "tensor<2x!quant.uniform<i8:f32:1, {1.0, 2.0}>>", r"rank \(1\) must be greater"),
]


def cast(name: str, source: str, target: str) -> str:
    return f"""
func.func @f(%input: {source}) -> {target} {{
  %result = quant.{name} %input : {source} to {target}
  return %result : {target}
}}"""


@pytest.mark.parametrize(("name", "source", "target"), VALID)
def test_valid_example(name: str, source: str, target: str) -> None:
    module = parse_module(cast(name, source, target))
    verify(module)
    text = print_module(module)
    assert f"%0 = quant.{name} %arg0 : {source} to {target}" in text
    assert parse_module(text) == module


@pytest.mark.parametrize(("name", "source", "target", "reason"), INVALID)
def test_invalid_example(name: str, source: str, target: str, reason: str) -> None:
    with pytest.raises(VerificationError, match=reason) as caught:
        verify(parse_module(cast(name, source, target)))
    assert f"> %0 = quant.{name} %arg0 : {source} to {target}" in str(caught.value)


@pytest.mark.parametrize("name", ["quant.qcast", "quant.dcast", "quant.scast"])
def test_every_cast_has_constraints(name: str) -> None:
    assert len(op_class(name).constraints) == 8


def test_a_cast_of_two_operands_is_refused() -> None:
    text = """
func.func @f(%a: f32) -> !quant.uniform<i8:f32, 1.0> {
  %r = "quant.qcast"(%a, %a) : (f32, f32) -> !quant.uniform<i8:f32, 1.0>
  return %r : !quant.uniform<i8:f32, 1.0>
}"""
    with pytest.raises(VerificationError, match="one operand and one result"):
        verify(parse_module(text))


def test_a_cast_with_a_region_is_refused() -> None:
    text = """
func.func @f(%a: f32) -> !quant.uniform<i8:f32, 1.0> {
  %r = "quant.qcast"(%a) ({ "ml.x"() : () -> () }) : (f32) -> !quant.uniform<i8:f32, 1.0>
  return %r : !quant.uniform<i8:f32, 1.0>
}"""
    with pytest.raises(VerificationError, match="no region"):
        verify(parse_module(text))


@pytest.mark.parametrize(("axis", "valid"), [(0, True), (1, False)])
def test_integrity_holds_in_the_type_of_a_function(axis: int, valid: bool) -> None:
    kind = f"(f32) -> ((tensor<2x!quant.uniform<i8:f32:{axis}, {{0.5, 0.25}}>>) -> i8)"
    module = parse_module(f"func.func @f(%g: {kind}) {{\n  return\n}}\n")
    if valid:
        verify(module)
        return
    with pytest.raises(VerificationError, match="must be greater than the quantized axis"):
        verify(module)


THREE = "!quant.uniform<i8:f32:0, {0.5, 0.25, 1.0}>"


@pytest.mark.parametrize(
    "kind",
    [
        *(f"tuple<i8, tensor<DIMx{THREE}>>", f"vector<DIMx{THREE}>", f"vector<[DIM]x2x{THREE}>"),
        *(f"memref<DIMx?x{THREE}, strided<[1, 2]>>", f"tuple<tuple<memref<DIMx{THREE}, 1>>>"),
    ],
)
@pytest.mark.parametrize(
    "place", ["func.func @f(%x: TYPE) { return }", 'func.func @f() { "a.b"() {t = TYPE} : () -> () return }']
)
def test_axes_inside_of_other_types(kind: str, place: str) -> None:
    parse_module(place.replace("TYPE", kind.replace("DIM", "3")))
    with pytest.raises(ParseError, match="there are 3 scales, but dim 0 of the tensor is 2"):
        parse_module(place.replace("TYPE", kind.replace("DIM", "2")))


def test_axes_of_types_as_attributes() -> None:
    text = 'func.func @f() { "a.b"() {t = tensor<DIMxTYPE>, u = TYPE} : () -> () return }'.replace("TYPE", THREE)
    parse_module(text.replace("DIM", "3"))
    with pytest.raises(ParseError, match="3 scales, but dim 0"):
        parse_module(text.replace("DIM", "2"))
    with pytest.raises(ParseError, match="a scalar cannot have per-axis"):
        parse_module(f"func.func @f(%x: tuple<{THREE}>) {{ return }}")


@pytest.mark.parametrize("kind", ["!quant.uniform<{}:f32, 1.0>", "!quant.any<{}:f32>"])
@pytest.mark.parametrize("storage", ["u1", "i65", "i128"])
def test_stored_integers_have_2_to_64_bits(storage: str, kind: str) -> None:
    with pytest.raises(ParseError, match="quantized integers have 2 to 64 bits"):
        parse_module(f"func.func @f(%x: tensor<2x{kind.format(storage)}>) {{ return }}")
