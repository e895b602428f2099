"""Calls are those of functions that the module has; quantized axes are verified wherever a type stands."""

from __future__ import annotations

import pytest

from tflq.base.errors import InvalidModelError, VerificationError
from tflq.formats.sources import read_any_form
from tflq.ir.text.parser import parse_module
from tflq.ir.verifier import verify

HEAD = "func.func private @g(i8) -> i16\nfunc.func @f(%x: i8, %w: i16) -> i16 {\n"
TAIL = "\nreturn %0 : i16\n}"


@pytest.mark.parametrize(
    "line",
    [
        "%0 = func.call @g(%x) : (i8) -> i16",
        "%0 = call @g(%x) : (i8) -> i16",
        "%g = func.constant @g : (i8) -> i16\n%0 = func.call_indirect %g(%x) : (i8) -> i16",
    ],
)
def test_a_call_of_a_function(line: str) -> None:
    verify(parse_module(HEAD + line + TAIL))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("%0 = func.call @h(%x) : (i8) -> i16", "there is no function @h"),
        ("%0 = func.call @g(%w) : (i16) -> i16", r"@g is used as \(i16\) -> i16, but is \(i8\) -> i16"),
        ("%0 = func.call @g(%x, %x) : (i8, i8) -> i16", "@g is used as"),
        ('%0 = "func.call"(%x) : (i8) -> i16', "it must name a function"),
        ("%g = func.constant @g : (i8) -> i8\n%0 = func.call @g(%x) : (i8) -> i16", "@g is used as"),
        ('%0 = "func.call_indirect"(%x, %x) : (i8, i8) -> i16', "its first operand must be a function"),
        (
            '%g = func.constant @g : (i8) -> i16\n%0 = "func.call_indirect"(%g, %w) : ((i8) -> i16, i16) -> i16',
            "but the function is",
        ),
    ],
)
def test_a_call_of_what_is_none(line: str, reason: str) -> None:
    with pytest.raises(VerificationError, match=reason):
        verify(parse_module(HEAD + line + TAIL))


AXIS = "!quant.uniform<i8:f32:1, {1.0, 2.0}>"


@pytest.mark.parametrize(
    "text",
    [
        f"func.func private @g(tensor<2x{AXIS}>)",
        f"func.func private @g() -> tensor<2x3x{AXIS}>",
        f"func.func @g(%x: {AXIS}) {{\nreturn\n}}",
        f'func.func @g() {{\n%0 = "my.op"() : () -> tensor<2x3x{AXIS}>\nreturn\n}}',
        f'func.func @g() {{\n"a.b"() ({{\n^bb0(%x: tensor<2x{AXIS}>):\n"a.c"() : () -> ()\n}}) : () -> ()\nreturn\n}}',
    ],
)
def test_quantized_axes_are_axes_of_the_tensor(text: str) -> None:
    with pytest.raises(VerificationError, match=r"axis|scales|per-axis"):
        verify(parse_module(text))


@pytest.mark.parametrize("storage", ["u8", "i8"])
def test_scast_is_to_signless_integers(storage: str) -> None:
    quantized = f"!quant.uniform<{storage}:f32, 0.5>"
    text = "func.func @f(%x: {0}) -> {1} {{\n%0 = quant.scast %x : {0} to {1}\nreturn %0 : {1}\n}}"
    read_any_form(text.format(quantized, "i8").encode())
    with pytest.raises(InvalidModelError, match="signless"):
        read_any_form(text.format("ui8", quantized).encode())
