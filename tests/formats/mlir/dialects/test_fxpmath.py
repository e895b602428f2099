"""What the verifier asks of `fxpmath`: names, opcodes, types, shapes, clamps."""

from __future__ import annotations

import pytest

from tflq.base.errors import VerificationError
from tflq.formats.mlir.dialects.fxpmath import OPCODES
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify

F, G = "tensor<4xf32>", "tensor<4xf16>"
Q8, Q16 = "tensor<4x!quant.uniform<i8:f32, 0.5:3>>", "tensor<4x!quant.uniform<i16:f32, 0.25>>"
I8, I16, I32 = "tensor<4xi8>", "tensor<4xi16>", "tensor<4xi32>"


def function(op: str, operands: list[str], result: str, attributes: str = "") -> str:
    names = [f"%{i}" for i in range(len(operands))]
    arguments = ", ".join(f"{name}: {type}" for name, type in zip(names, operands, strict=True))
    line = f'"{op}"({", ".join(names)}) {{{attributes}}} : ({", ".join(operands)}) -> {result}'
    return f"func.func @f({arguments}) -> {result} {{\n  %r = {line}\n  return %r : {result}\n}}"


HIGH = "fxpmath.saturating_rounding_doubling_high_mul"
VALID = {
    "floats": ("fxpmath.real_add_ew", [F, F], F, ""),
    "halves": ("fxpmath.real_mul_ew", [G, G], G, ""),
    "storages of one float": ("fxpmath.real_sub_ew", [Q8, Q16], Q8, ""),
    "float and quantized": ("fxpmath.real_div_ew", [F, Q8], Q16, ""),
    "broadcast": ("fxpmath.real_add_ew", ["tensor<3x1xf32>", F], "tensor<3x4xf32>", ""),
    "unknown dims": ("fxpmath.real_add_ew", ["tensor<?xf32>", F], "tensor<?xf32>", ""),
    "clamped to one number": ("fxpmath.real_add_ew", [F, F], F, "clamp_min = 1.0 : f64, clamp_max = 1.0 : f64"),
    "rows": ("fxpmath.real_matmul", ["tensor<2x3x4xf32>", "tensor<4x5xf32>"], "tensor<2x3x5xf32>", ""),
    "bias": ("fxpmath.real_matmul_bias", [F, "tensor<4x5xf32>", "tensor<5xf32>"], "tensor<5xf32>", ""),
    "division": ("fxpmath.rounding_divide_by_pot", [I16], I16, "exponent = 31 : i32"),
    "sum": ("fxpmath.saturating_add", [I32, I32], I32, "clamp_min = -2147483648 : i32, clamp_max = 5 : i32"),
    "high product": (HIGH, [I32, "tensor<i32>"], I32, ""),
    "bytes": (
        *("fxpmath.matmul", ["tensor<2x3xi8>", "tensor<3x4xi8>"], "tensor<2x4xi32>"),
        "lhs_zero_point = 3 : i32, rhs_zero_point = -128 : i32",
    ),
}
INVALID = {
    "there is no such op; did you mean 'real_matmul'": ("fxpmath.real_matmull", [F], F, ""),
    "there is no such op; fxpmath has matmul": ("fxpmath.unheard", [F], F, ""),
    "is 'COS', not IDENTITY/": ("fxpmath.real_unary", [F], F, 'opcode = "COS"'),
    "no attribute 'opcode'": ("fxpmath.real_unary", [F], F, ""),
    "attribute 'axis' is not declared": ("fxpmath.real_add_ew", [F, F], F, "axis = 0 : i32"),
    "it has 1 operand, not 2": ("fxpmath.real_add_ew", [F], F, ""),
    "'lhs' is i8, not a float or a quantized type": ("fxpmath.real_add_ew", [I8, I8], I8, ""),
    "of one float type, or quantized": ("fxpmath.real_add_ew", [F, G], F, ""),
    "and express it": ("fxpmath.real_add_ew", [Q8, Q8], G, ""),
    "clamp_min must not be above clamp_max": (
        *("fxpmath.real_add_ew", [F, F], F),
        "clamp_min = 2.0 : f64, clamp_max = 1.0 : f64",
    ),
    "'clamp_min' is nan, not a float that is a number": (
        *("fxpmath.real_add_ew", [F, F], F),
        "clamp_min = 0x7FF8000000000000 : f64",
    ),
    "'clamp_max' is 6, not a float": ("fxpmath.real_add_ew", [F, F], F, "clamp_max = 6 : i32"),
    "broadcast": ("fxpmath.real_add_ew", [F, "tensor<3xf32>"], F, ""),
    r"the result is \[5\], and \[4\] follows": ("fxpmath.real_unary", [F], "tensor<5xf32>", 'opcode = "SIN"'),
    "the last dim of lhs and the rows of rhs: 4 and 3 differ": (
        *("fxpmath.real_matmul", [F, "tensor<3x5xf32>"], "tensor<5xf32>", ""),
    ),
    "the bias and the columns of rhs: 5 and 4 differ|5 and 4": (
        *("fxpmath.real_matmul_bias", [F, "tensor<4x5xf32>", F], "tensor<5xf32>", ""),
    ),
    "exponent must be from 0 to 31": ("fxpmath.rounding_divide_by_pot", [I8], I8, "exponent = 32 : i32"),
    "'output' is i16": ("fxpmath.rounding_divide_by_pot", [I8], I16, "exponent = 1 : i32"),
    "must be integers of the element type": (
        *("fxpmath.saturating_add", [I8, I8], I8),
        "clamp_min = -129 : i32, clamp_max = 127 : i32",
    ),
    "no attribute 'clamp_max'": ("fxpmath.saturating_add", [I8, I8], I8, "clamp_min = 0 : i32"),
    "'lhs' is f32, not": (HIGH, [F, F], F, ""),
}


@pytest.mark.parametrize("name", list(VALID))
def test_valid(name: str) -> None:
    module = parse_module(function(*VALID[name]))
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text


@pytest.mark.parametrize("opcode", OPCODES)
def test_functions(opcode: str) -> None:
    verify(parse_module(function("fxpmath.real_unary", [Q8], F, f'opcode = "{opcode}"')))


@pytest.mark.parametrize("reason", list(INVALID))
def test_invalid(reason: str) -> None:
    with pytest.raises(VerificationError, match=reason):
        verify(parse_module(function(*INVALID[reason])))


@pytest.mark.parametrize("name", ["quant.unheard", "ext.unheard"])
def test_other_dialects_that_are_whole(name: str) -> None:
    with pytest.raises(VerificationError, match="there is no such op"):
        verify(parse_module(function(name, [F], F)))


def test_dialects_of_others_may_have_more() -> None:
    verify(parse_module(function("stablehlo.unheard", [F], F)))
