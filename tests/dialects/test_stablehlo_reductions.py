"""Reductions with conversions: each rule by what it accepts and what it refuses; how they are printed."""

import re

import pytest
from support.reductions import reduction

from tflq.base.errors import InvalidModelError
from tflq.formats.sources import read_text
from tflq.ir.module import Module
from tflq.ir.text.printer import print_module
from tflq.tools.opt import parse_pipeline

U8 = "!quant.uniform<u8:f32, 0.5:10>"
I8 = "!quant.uniform<i8:f32, 0.5>"
COARSE = "!quant.uniform<u8:f32, 2.5:5>"
WIDE = "!quant.uniform<i32:f32, 0.5>"
OTHER = "!quant.uniform<i32:f32, 0.25>"
ALONG_1 = "dimensions = array<i64: 1>"
VALID = reduction((4, 6), (4,), ALONG_1, source=U8, accumulator=WIDE, target=COARSE)
PLAIN = reduction((4, 6), (4,), ALONG_1, source=U8)
BODY = '"stablehlo.add"(%a, %b)'


def read(text: str) -> Module:
    return read_text(text.encode(), "text")


def test_valid_ones_are_accepted() -> None:
    for text in (VALID, PLAIN, reduction((4, 6), (4, 6), "dimensions = array<i64>", source="f32")):
        read(text)


INVALID = {
    "0 < size(inputs) = size(init_values) = size(results) = N": PLAIN.replace("(%input, %init)", "(%input)").replace(
        f"(tensor<4x6x{U8}>, tensor<{U8}>) ->", f"(tensor<4x6x{U8}>) ->"
    ),
    "0 <= dimensions < rank(inputs[0])": PLAIN.replace("array<i64: 1>", "array<i64: 2>"),
    "is_unique(dimensions)": PLAIN.replace("array<i64: 1>", "array<i64: 1, 1>"),
    "write input_conversion": VALID.replace(f"%init: tensor<{U8}>", f"%init: tensor<{WIDE}>").replace(
        f"tensor<4x6x{U8}>, tensor<{U8}>)", f"tensor<4x6x{U8}>, tensor<{WIDE}>)"
    ),
    "convert plain inputs with stablehlo.convert": reduction((4, 6), (4,), ALONG_1, source="f32", accumulator="f32"),
    "baseline_element_type(inputs...)": reduction((4, 6), (4,), ALONG_1, source=U8, accumulator=WIDE, target=I8),
    "input_conversion has type": VALID.replace(f"^bb0(%x: tensor<{U8}>)", f"^bb0(%x: tensor<{COARSE}>)").replace(
        f"(%x) : (tensor<{U8}>)", f"(%x) : (tensor<{COARSE}>)"
    ),
    "body has type": VALID.replace(f"%b: tensor<{WIDE}>", f"%b: tensor<{OTHER}>").replace(
        f"{BODY} : (tensor<{WIDE}>, tensor<{WIDE}>)", f"{BODY} : (tensor<{WIDE}>, tensor<{OTHER}>)"
    ),
    "element_type(output_types(input_conversion)...)": VALID.replace(
        f"^bb0(%x: tensor<{WIDE}>)", f"^bb0(%x: tensor<{OTHER}>)"
    ).replace(f"(%x) : (tensor<{WIDE}>)", f"(%x) : (tensor<{OTHER}>)"),
    "output_conversion has type": VALID.replace(f"tensor<4x{COARSE}>", "tensor<4x!quant.uniform<u8:f32, 3.0>>"),
    "shape(results...) is shape(inputs...)": PLAIN.replace(f"tensor<4x{U8}>", f"tensor<6x{U8}>"),
}


@pytest.mark.parametrize("sentence", INVALID)
def test_rule(sentence: str) -> None:
    with pytest.raises(InvalidModelError, match=re.escape(sentence)):
        read(INVALID[sentence])


def _regions(text: str, *kept: int) -> str:
    """The text with some of its three regions."""
    start, end = text.index("({") + 1, text.rindex("})") + 1
    regions = text[start:end].split(", {\n^")
    parts = [regions[0], *("{\n^" + part for part in regions[1:])]
    return text[:start] + ", ".join(parts[i] for i in kept) + text[end:]


def test_order_says_which_region_is_which() -> None:
    same = reduction((4, 6), (4,), ALONG_1, source=U8, accumulator=U8)
    assert read(_regions(same, 0, 1)).main.ops[0].functions.output_conversion is None  # type: ignore[attr-defined]
    assert read(_regions(same, 1, 2)).main.ops[0].functions.input_conversion is None  # type: ignore[attr-defined]
    for kept in ((1, 1), (0, 2), ()):
        with pytest.raises(InvalidModelError, match="the op must have a region for the body"):
            read(_regions(same, *kept))


def test_the_pretty_form_is_for_what_has_no_conversions() -> None:
    text = print_module(read(PLAIN))
    assert "stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (" in text
    assert read(text) == read(PLAIN)
    explicit = print_module(read(reduction((4, 6), (4,), ALONG_1, source=U8, accumulator=U8)))
    assert " applies " not in explicit
    assert print_module(read(explicit)) == explicit


def test_conversions_left_out_are_identities() -> None:
    module = parse_pipeline("default-conversions").run(read(PLAIN)).module
    assert module == read(reduction((4, 6), (4,), ALONG_1, source=U8, accumulator=U8))
    floats = reduction((4, 6), (4,), ALONG_1, source="f32")
    assert not parse_pipeline("default-conversions").run(read(floats)).modified


def _option_2(init: str) -> str:
    """Rescales around a reduction; `init`: how its init value is made."""
    return (
        f"func.func @f(%input: tensor<4x6x{U8}>, %init: tensor<{U8}>) -> tensor<4x{COARSE}> {{\n"
        f'%w = "stablehlo.uniform_quantize"(%input) : (tensor<4x6x{U8}>) -> tensor<4x6x{WIDE}>\n'
        f"{init}\n"
        f'%r = "stablehlo.reduce"(%w, %i) ({{\n^bb0(%a: tensor<{WIDE}>, %b: tensor<{WIDE}>):\n'
        f'%c = "stablehlo.add"(%a, %b) : (tensor<{WIDE}>, tensor<{WIDE}>) -> tensor<{WIDE}>\n'
        f'"stablehlo.return"(%c) : (tensor<{WIDE}>) -> ()\n}}) {{{ALONG_1}}} : '
        f"(tensor<4x6x{WIDE}>, tensor<{WIDE}>) -> tensor<4x{WIDE}>\n"
        f'%n = "stablehlo.uniform_quantize"(%r) : (tensor<4x{WIDE}>) -> tensor<4x{COARSE}>\n'
        f"return %n : tensor<4x{COARSE}>\n}}\n"
    )


WIDENED = f'%i = "stablehlo.uniform_quantize"(%init) : (tensor<{U8}>) -> tensor<{WIDE}>'


def test_rescales_around_a_reduction_become_its_conversions() -> None:
    module = parse_pipeline("fuse-conversions,dce").run(read(_option_2(WIDENED))).module
    assert module == read(VALID)


@pytest.mark.parametrize(("value", "fused"), [(3, True), (1000, False)])
def test_init_values_must_be_ones_of_the_inputs_type(value: int, fused: bool) -> None:
    constant = f'%i = "stablehlo.constant"() {{value = dense<{value}> : tensor<i32>}} : () -> tensor<{WIDE}>'
    assert parse_pipeline("fuse-conversions").run(read(_option_2(constant))).modified == fused


@pytest.mark.parametrize(("made", "valid"), [("3x1", True), ("?x1", True), ("2x1", False)])
def test_windows_of_every_input_are_counted(made: str, valid: bool) -> None:
    text = f"""func.func @f(%x: tensor<?x2xf32>, %y: tensor<3x2xf32>, %i: tensor<f32>) -> tensor<{made}xf32> {{
  %r:2 = "stablehlo.reduce_window"(%x, %y, %i, %i) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %a, %b : tensor<f32>, tensor<f32>
  }}) {{window_dimensions = array<i64: 1, 2>}} : (tensor<?x2xf32>, tensor<3x2xf32>, tensor<f32>, tensor<f32>) ->
    (tensor<{made}xf32>, tensor<3x1xf32>)
  return %r#0 : tensor<{made}xf32>
}}"""
    if valid:
        read(text)
        return
    with pytest.raises(InvalidModelError, match="the number of windows"):
        read(text)


@pytest.mark.parametrize(("made", "valid"), [("3", True), ("?", True), ("2", False)])
def test_shapes_of_every_input_count(made: str, valid: bool) -> None:
    text = f"""func.func @f(%x: tensor<?x2xf32>, %y: tensor<3x2xf32>, %i: tensor<f32>) -> tensor<{made}xf32> {{
  %r:2 = "stablehlo.reduce"(%x, %y, %i, %i) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %a, %b : tensor<f32>, tensor<f32>
  }}) {{dimensions = array<i64: 1>}} : (tensor<?x2xf32>, tensor<3x2xf32>, tensor<f32>, tensor<f32>) ->
    (tensor<{made}xf32>, tensor<3xf32>)
  return %r#0 : tensor<{made}xf32>
}}"""
    if valid:
        read(text)
        return
    with pytest.raises(InvalidModelError, match="without the dimensions that are reduced"):
        read(text)
