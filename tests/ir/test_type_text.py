"""Quantized types as text: what MLIR reads is read, and what is no type is refused with its place."""

from __future__ import annotations

import pytest

from tflq.base.errors import ParseError
from tflq.ir.text.parser import parse_module
from tflq.ir.text.print_types import type_text
from tflq.ir.types import TensorType


def read(element: str) -> TensorType:
    return parse_module(f"func.func private @f(tensor<4x{element}>)\n").main.inputs[0].type


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("!quant.uniform<si8:f32, 0.5>", "!quant.uniform<i8:f32, 0.5>"),
        ("!quant.uniform<ui8:f32, 0.5>", "!quant.uniform<u8:f32, 0.5>"),
        ("!quant.uniform<i8<-0x7F:127>:f32, 0.5:0x7F>", "!quant.uniform<i8<-127:127>:f32, 0.5:127>"),
        ("!quant.uniform<i8:f32, 2.>", "!quant.uniform<i8:f32, 2.0>"),
        ("!quant.uniform<i8:f32, 1.e-3>", "!quant.uniform<i8:f32, 0.001>"),
        ("!quant.uniform<i8:f16, 65504.0>", "!quant.uniform<i8:f16, 65500.0>"),
        ("!quant.uniform<i8:f16, 6.0e-8>", "!quant.uniform<i8:f16, 6.0e-08>"),
        ("!quant.uniform<i8:f128, 1.0e+39>", "!quant.uniform<i8:f128, 1.0e+39>"),
        ("!quant.uniform<i8:f32, 0x3F800000>", "!quant.uniform<i8:f32, 1.0>"),
        ("!quant.uniform<i8:f64, 0x3FF0000000000000>", "!quant.uniform<i8:f64, 1.0>"),
        ("!quant.uniform<i8:f64, 0x3F800000>", "!quant.uniform<i8:f64, 5.263544247e-315>"),
        ("!quant.uniform<i8:f32, 0.0>", "!quant.uniform<i8:f32, 0.0>"),
        (
            "!quant.uniform<i8:f32:0, {0.5, // the first\n 0.25 : -3, 1.0: 4 , 2.0}>",
            "!quant.uniform<i8:f32:0, {0.5, 0.25:-3, 1.0:4, 2.0}>",
        ),
    ],
)
def test_a_type(text: str, shown: str) -> None:
    assert type_text(read(text).element) == shown
    assert read(shown) == read(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("!quant.uniform<i8:f32, 1>", "a number with a decimal point"),
        ("!quant.uniform<i8:f32, .5>", "a number with a decimal point"),
        ("!quant.uniform<i8:f32, inf>", "a number with a decimal point"),
        ("!quant.uniform<i8:f32, +0.5>", "a number with a decimal point"),
        ("!quant.uniform<i8:f32:0, {0.5, 1, 2.0, 3.0}>", "a number with a decimal point"),
        ("!quant.uniform<i8:f32:0, {0.5:, 1.0, 2.0, 3.0}>", "an integer"),
        ("!quant.uniform<i8:f32:{0:2}, {0.5, 1.0:}>", "an integer"),
        ("!quant.uniform<i8:f32, 0.5:>", "an integer"),
        ("!quant.uniform<i8:f32, 0.5:1.0>", "expected '>'"),
        ("!quant.uniform<i8:f32, 1.0e400>", "too large"),
        ("!quant.uniform<i8:f32:0, {1.0, 1.0e400, 1.0, 1.0}>", "too large"),
        ("!quant.uniform<i8:f16, 65536.0>", "scale 65536.0 is not within the range of f16"),
        ("!quant.uniform<i8:f16, 1.0e-10>", "scale 1e-10 is not within the range of f16"),
        ("!quant.uniform<i8:bf16:0, {1.0, 2.0, 3.0, 3.38e+38}>", None),
        ("!quant.uniform<i8:bf16:0, {1.0, 2.0, 3.0, 3.4e+39}>", "is not within the range of bf16"),
        ("!quant.uniform<i8:f32, -1.0>", "not a number from 0 up"),
        ("!quant.calibrated<f32<-1:1>>", "a number with a decimal point"),
    ],
)
def test_no_type(text: str, reason: str | None) -> None:
    if reason is None:
        read(text)
        return
    with pytest.raises(ParseError, match=reason):
        read(text)
