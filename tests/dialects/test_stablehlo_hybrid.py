"""convolution and dot_general on quantized tensors: each rule by what it accepts and what it refuses."""

import re

import pytest

from tflq.base.errors import InvalidModelError
from tflq.formats.sources import read_text

Q = "!quant.uniform<i8:f32, 0.5>"
Q3 = "!quant.uniform<i8:f32, 0.5:3>"
U = "!quant.uniform<u8:f32, 0.5>"
W = "!quant.uniform<i16:f32, 0.5>"
H = "!quant.uniform<i8:f16, 0.5>"


def per_axis(axis: int, count: int, zero: str = "") -> str:
    return f"!quant.uniform<i8:f32:{axis}, {{{', '.join([f'0.5{zero}'] * count)}}}>"


def dot(lhs: str, rhs: str, made: str) -> str:
    types = f"tensor<2x3x{lhs}>", f"tensor<3x4x{rhs}>", f"tensor<2x4x{made}>"
    numbers = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    return _function("dot_general", types, f"dot_dimension_numbers = {numbers}")


def conv(lhs: str, rhs: str, made: str) -> str:
    types = f"tensor<1x4x4x2x{lhs}>", f"tensor<3x3x2x5x{rhs}>", f"tensor<1x2x2x5x{made}>"
    return _function(
        "convolution", types, "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"
    )


def batched(left: object, right: object, made: object) -> str:
    types = f"tensor<{left}x2x3xf32>", f"tensor<{right}x3x4xf32>", f"tensor<{made}x2x4xf32>"
    batching = "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0]"
    numbers = f"#stablehlo.dot<{batching}, lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>"
    return _function("dot_general", types, f"dot_dimension_numbers = {numbers}")


def grouped(count: int, left: str, right: str) -> str:
    types = f"tensor<1x{left}xf32>", f"tensor<{right}xf32>", "tensor<1x2x2x?xf32>"
    numbers = "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"
    return _function("convolution", types, f"{numbers}, feature_group_count = {count} : i64")


def _function(op: str, types: tuple[str, str, str], attributes: str) -> str:
    lhs, rhs, made = types
    return (
        f"func.func @f(%x: {lhs}, %y: {rhs}) -> {made} {{\n"
        f'%r = "stablehlo.{op}"(%x, %y) {{{attributes}}} : ({lhs}, {rhs}) -> {made}\nreturn %r : {made}\n}}\n'
    )


BOTH = "lhs and result must be both quantized or both not, and rhs must be quantized"
STORAGE = "lhs and rhs must have the same storage type"
EXPRESSED = "lhs, rhs and result must have the same expressed type"
REAL = "the element types of lhs and result must be the expressed type of rhs"
PER_TENSOR = "lhs must not be quantized per axis"
RULES = {
    "C14": (f"(C14) {BOTH}", dot("f32", Q, "f32"), [dot("f32", Q, Q), dot(Q, "f32", Q), dot(Q, "f32", "f32")]),
    "C15": (
        "(C15) the zero points of rhs must be 0",
        dot(Q3, Q, Q3),
        [dot(Q, Q3, Q), dot("f32", per_axis(1, 4, ":1"), "f32")],
    ),
    "C16": (f"(C16) {STORAGE}", dot(U, U, Q), [dot(U, Q, Q), dot(W, Q, Q)]),
    "C17": (f"(C17) {EXPRESSED}", dot(H, H, H), [dot(Q, Q, H), dot(H, Q, Q)]),
    "C18": (f"(C18) {REAL}", dot("f16", H, "f16"), [dot("f16", Q, "f16"), dot("f32", H, "f16"), dot("i32", Q, "i32")]),
    "contracted": (
        "scales of rhs must not be along a dimension that is summed over",
        dot(Q, per_axis(1, 4), Q),
        [dot(Q, per_axis(0, 3), Q)],
    ),
    "sized": (
        "dimensions of lhs and rhs that belong together",
        dot("f32", "f32", "f32"),
        [dot("f32", "f32", "f32").replace("2x3x", "2x5x"), dot("f32", "f32", "f32").replace("2x4x", "4x2x")],
    ),
    "sized by rhs": (
        "dimensions of lhs and rhs that belong together",
        batched("?", 5, 5),
        [batched("?", 5, 4), batched(5, "?", 4), batched(5, 4, 5)],
    ),
    "lhs of dot_general": (PER_TENSOR, dot(Q, Q, Q), [dot(per_axis(0, 2), Q, Q), dot(per_axis(1, 3), Q, Q)]),
    "lhs of convolution": (PER_TENSOR, conv(Q, Q, Q), [conv(per_axis(3, 2), Q, Q)]),
    "C27": (
        "(C27) lhs and rhs must have the same element type, if none is quantized",
        conv("f16", "f16", "f32"),
        [conv("f32", "f16", "f32"), conv("i8", "f32", "f32")],
    ),
    "C28": (f"(C28) {BOTH}", conv("f32", Q3, "f32"), [conv(Q, Q, "f32"), conv("f32", "f32", Q)]),
    "C29": (
        "(C29) the quantization dimension of rhs must be kernel_output_feature_dimension",
        conv("f32", per_axis(3, 5), "f32"),
        [conv("f32", per_axis(2, 2), "f32"), conv(Q, per_axis(0, 3), Q)],
    ),
    "C30": (
        "(C30) the quantization dimension of the result must be output_feature_dimension",
        conv(Q, per_axis(3, 5), per_axis(3, 5)),
        [conv(Q, per_axis(3, 5), per_axis(1, 2))],
    ),
    "C31": (f"(C31) {STORAGE}", conv(U, U, Q), [conv(U, Q, Q)]),
    "C32": (f"(C32) {EXPRESSED}", conv(H, H, H), [conv(Q, H, Q)]),
    "C33": (
        "(C33) if rhs is quantized per tensor, so must be the result",
        conv(Q, Q, Q3),
        [conv(Q, Q, per_axis(3, 5))],
    ),
    "C34": (f"(C34) {REAL}", conv("f16", H, "f16"), [conv("f32", H, "f32"), conv("f32", Q, "f16")]),
    "groups": (
        "the groups must divide the features",
        grouped(2, "4x4x2", "3x3x?x6"),
        [grouped(2, "4x4x3", "3x3x?x6"), grouped(2, "4x4x2", "3x3x?x5"), grouped(0, "4x4x2", "3x3x2x5")],
    ),
    "shape": (
        "the result must have the shape that the windows give",
        conv("f32", "f32", "f32"),
        [
            conv("f32", "f32", "f32").replace("1x2x2x5x", "1x2x3x5x"),
            conv("f32", "f32", "f32").replace("3x3x2x5x", "?x3x2x5x").replace("1x2x2x5x", "1x2x3x5x"),
        ],
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str) -> None:
    sentence, valid, invalid = RULES[rule]
    read_text(valid.encode(), "valid")
    for text in invalid:
        with pytest.raises(InvalidModelError, match=re.escape(sentence)):
            read_text(text.encode(), "invalid")
