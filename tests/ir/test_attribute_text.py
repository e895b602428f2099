"""Attributes, types and functions of any dialect are printed as they are read."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tflq.base.errors import ParseError
from tflq.ir.attributes import AffineMap, TypedArray, TypedFloat, TypedInt
from tflq.ir.module import Module, attribute_key, difference
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import f32, i32
from tflq.numerics.signless import bfloat16_bits, bfloat16_values

KEPT = [
    *("1", "1 : i32", "-3 : i8", "1 : index", "0.5", "0.5 : f32", "0.5 : f16", "0x7FC00000 : f32", "true", "unit"),
    *("array<i32: 1, 2>", "array<i8>", "array<f32: 0.5, 1.0e+20>", "array<i1: true, false>", '"a\\22b\\0A"'),
    *("dense<[1, 2]> : tensor<2xi32>", "dense<3> : tensor<2x2xindex>", "dense<[1.5, -2.0]> : tensor<2xbf16>"),
    *("dense<[-4, 3]> : tensor<2xi3>", "dense<1.0> : vector<4xf32>", 'dense<["a", "b"]> : tensor<2x!tf.string>'),
    *("#stablehlo<precision HIGH>", "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>", "#my.unit", "[1 : i8, @f]"),
    *("affine_map<(d0, d1) -> (d1, d0 floordiv 2)>", "{a = 1 : i16, b}", 'tensor<2x!my.type<[3], "x">>'),
    *("(i8, tensor<?xf32>) -> ()", "() -> ((i8) -> i8)", "memref<2x?xf32, strided<[1, ?]>>", '"x" : !my.type', "none"),
    *("@a::@b", '@a::@"b c"::@d', "affine_set<(d0)[s0] : (d0 >= 0, s0 - d0 >= 0)>"),
    *("!quant.none<f32>", "!quant.any<i8<-16:7>>", "tensor<2x!quant.uniform<u10<0:1000>:f16, 0.5:3>>"),
]


def module_of(attribute: str) -> Module:
    return parse_module(f'func.func @f() {{\n"my.op"() {{k = {attribute}}} : () -> ()\nreturn\n}}')


@pytest.mark.parametrize("attribute", KEPT)
def test_an_attribute_is_printed_as_read(attribute: str) -> None:
    printed = print_module(module_of(attribute))
    shown = "{k}" if attribute == "unit" else f"{{k = {attribute}}}"
    assert shown in printed
    assert difference(module_of(attribute), parse_module(printed)) is None


def test_what_a_type_says_is_no_difference_where_it_is_the_usual_one() -> None:
    assert difference(module_of("1 : i64"), module_of("1")) is None
    assert difference(module_of("0.5 : f64"), module_of("0.5")) is None
    assert difference(module_of("0.1 : f32"), module_of("0.10000000149 : f32")) is None
    assert difference(module_of("1 : i32"), module_of("1")) is not None
    assert difference(module_of("array<i64: 1>"), module_of("dense<[1]> : tensor<1xi64>")) is not None


def test_elements_of_odd_widths_are_as_many_bytes_as_they_need() -> None:
    numbers = ", ".join(str((-3) ** (i % 25)) for i in range(70))
    module = module_of(f"dense<[{numbers}]> : tensor<70xi48>")
    printed = print_module(module)
    assert len(printed.split("0x")[1].split('"')[0]) == 70 * 12
    assert difference(module, parse_module(printed)) is None


def test_aliases_are_what_they_stand_for() -> None:
    body = 'func.func @f() {\n"my.op"() {a = #m, b = #my.x<#m, !t>, c = !t} : () -> ()\nreturn\n}'
    module = parse_module(f'#m = affine_map<(d0)->(d0)>\n!t = tensor<2xi8>\n{body}\n#loc = loc("x")')
    assert "#my.x<affine_map<(d0) -> (d0)>, tensor<2xi8>>" in print_module(module)
    with pytest.raises(ParseError, match="the alias '#m' is not defined"):
        parse_module(body)


def test_attributes_of_functions_and_modules_are_kept() -> None:
    text = """module @name attributes {my.level = 3 : i8} {
  func.func private @g(i8 {my.a}, tensor<*xf32>) -> (i8 {my.b = 1 : i32}, i8)
  func.func @f(%arg0: i8 {my.a = "x"}) -> (i8 {my.b}) attributes {my.c = [1]} {
    return %arg0 : i8
  }
}"""
    module = parse_module(text)
    printed = print_module(module)
    assert printed == text.replace("{my.level", "{tflq.version = 3, my.level") + "\n"
    assert difference(module, parse_module(printed)) is None


def test_typed_values_are_plain_ones_too() -> None:
    three, half = TypedInt(3, i32), TypedFloat(0.5, f32)
    array = TypedArray.of(np.array([1, 2], np.int32), i32)
    assert (three, half, array.tolist()) == (3, 0.5, [1, 2])
    assert attribute_key(three) != attribute_key(3)
    assert AffineMap.projection(3, (1,)).results == ("d1",)
    assert AffineMap.of("affine_map<(d0,d1)->(d1)>") == AffineMap.projection(2, (1,))


@pytest.mark.parametrize("seed", range(3))
def test_bfloat16_rounds_half_to_even(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 16, 2000).astype(np.uint16)
    bits = bits[np.isfinite(bfloat16_values(bits))]
    values = bfloat16_values(bits)
    assert np.array_equal(bfloat16_bits(values), bits)
    finite = (np.abs(values) < 3e38) & (values != 0)
    middle = values[finite].astype(np.float64) * (1 + 2.0**-9)
    for value, made in zip(middle, bfloat16_values(bfloat16_bits(middle)), strict=True):
        below = (
            bfloat16_values(bfloat16_bits(value) - np.uint16(1)),
            bfloat16_values(bfloat16_bits(value) + np.uint16(1)),
        )
        assert math.isfinite(made)
        assert all(abs(value - made) <= abs(value - float(other)) for other in below)
