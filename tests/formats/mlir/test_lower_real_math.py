"""lower-real-math: what the ops become, what stays, what is refused. The numbers are in
`tests/numerics/test_real_math.py`."""

from __future__ import annotations

import pytest
from support.mlir_oracle import needs_mlir
from support.mlir_oracle import run as mlir

from tflq.base.errors import UnsupportedError
from tflq.formats.mlir.real_math import LowerRealMath
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify

F = "tensor<4xf32>"


def quantized(kind: str, shape: str = "4") -> str:
    return f"tensor<{shape}x!quant.uniform<{kind}>>"


def function(op: str, operands: list[str], result: str, attributes: str = "") -> str:
    names = [f"%a{i}" for i in range(len(operands))]
    arguments = ", ".join(f"{name}: {type}" for name, type in zip(names, operands, strict=True))
    line = f'"fxpmath.{op}"({", ".join(names)}) {{{attributes}}} : ({", ".join(operands)}) -> {result}'
    return f"func.func @f({arguments}) -> {result} {{\n  %r = {line}\n  return %r : {result}\n}}"


def lowered(text: str) -> Module:
    module = LowerRealMath().run(parse_module(text)).module
    verify(module)
    return module


def names(module: Module) -> list[str]:
    return [op.name.removeprefix("fxpmath.") for op in module.ops()]


HIGH = "saturating_rounding_doubling_high_mul"
CENTRED = ["quant.scast", "arith.extsi", "tensor.splat", "arith.subi"]
END = ["tensor.splat", "saturating_add", "arith.trunci", "quant.scast"]
Q8, SYMMETRIC = quantized("i8:f32, 0.1:3"), quantized("i8:f32, 0.5")


def test_a_sum_of_one_scale_is_one_addition() -> None:
    module = lowered(function("real_sub_ew", [Q8, Q8], Q8))
    assert names(module) == [*CENTRED * 2, "tensor.splat", "arith.subi", "saturating_add", *END]


def test_a_product_by_a_power_of_two_is_shifted() -> None:
    module = lowered(function("real_mul_ew", [SYMMETRIC, SYMMETRIC], SYMMETRIC))
    left = ["quant.scast", "arith.extsi", "tensor.splat", "arith.shli"]
    assert names(module) == [*left * 2, HIGH, "rounding_divide_by_pot", *END]


def test_the_clamp_of_a_sum_in_the_storage_type() -> None:
    module = lowered(function("real_add_ew", [SYMMETRIC, SYMMETRIC], SYMMETRIC, "clamp_min = 0.0 : f64"))
    (add,) = (op for op in module.ops() if op.name == "fxpmath.saturating_add")
    assert (add.attributes["clamp_min"], add.attributes["clamp_max"]) == (0, 127)
    assert names(module) == ["quant.scast", "quant.scast", "saturating_add", "quant.scast"]


def test_ops_on_floats_stay_and_ops_inside_of_others_do_not() -> None:
    text = f"""func.func @f(%a: {F}, %b: {Q8}) -> ({F}, {Q8}) {{
  %0 = "fxpmath.real_unary"(%a) {{opcode = "EXP"}} : ({F}) -> {F}
  %1 = "some.op"() ({{
    %2 = "fxpmath.real_unary"(%b) {{opcode = "EXP"}} : ({Q8}) -> {Q8}
    "some.end"(%2) : ({Q8}) -> ()
  }}) : () -> {Q8}
  return %0, %1 : {F}, {Q8}
}}"""
    module = parse_module(text)
    assert LowerRealMath().run(module).modified
    verify(module)
    inside = module.functions[0].ops[-1].regions[0].blocks[0].ops
    assert [op.name for op in inside[:-1]] == ["quant.scast", "tosa.table", "quant.scast"]
    assert names(module)[0] == "real_unary"


def test_a_module_without_quantized_real_ops_is_not_modified() -> None:
    assert not LowerRealMath().run(parse_module(function("real_add_ew", [F, F], F))).modified


@pytest.mark.parametrize("shape", ["?", "2x?"])
@pytest.mark.parametrize("known", [False, True])
def test_unknown_dims(shape: str, known: bool) -> None:
    """Those of the result can be known."""
    result = shape.replace("?", "3") if known else shape
    q, r = quantized("i8:f32, 0.1:3", shape), quantized("i8:f32, 0.3:3", result)
    text = print_module(lowered(function("real_add_ew", [q, q], r)))
    assert "tensor.dim" in text
    assert print_module(parse_module(text)) == text
    narrow, other = quantized("i8:f32, 0.5", shape), quantized("i8:f32, 0.5", result)
    assert "saturating_add" in names(lowered(function("real_add_ew", [narrow, narrow], other)))
    assert "tosa.table" in names(lowered(function("real_unary", [q], r, 'opcode = "NEG"')))


@pytest.mark.parametrize("op", ["real_add_ew", "real_mul_ew", "real_div_ew"])
def test_scalars_and_narrow_storage(op: str) -> None:
    number, narrow = "!quant.uniform<i8:f32, 0.1:3>", quantized("i4:f32, 0.1:3")
    for type in (number, narrow, quantized("u4:f32, 0.1:3")):
        text = print_module(lowered(function(op, [type, type], type)))
        assert print_module(parse_module(text)) == text


REFUSED = {
    "'rhs' is f32, and others are quantized": ("real_add_ew", [Q8, F], Q8),
    "'rhs' has no single scale": ("real_mul_ew", [Q8, quantized("i8:f32:0, {0.1,0.2,0.3,0.4}")], Q8),
    "'lhs' has no single scale": ("real_mul_ew", ["tensor<4x!quant.any<i8:f32>>", Q8], Q8),
    "'output' is stored in i32, and the form on integers takes 16 bits": (
        *("real_add_ew", [Q8, Q8]),
        quantized("i32:f32, 0.1"),
    ),
    "'lhs' is stored in i16, and the form on integers takes 8 bits": (
        "real_div_ew",
        [quantized("i16:f32, 0.1"), Q8],
        Q8,
    ),
    "a step of an operand is": ("real_add_ew", [Q8, quantized("i8:f32, 90000.0")], Q8),
    "the result's scale is 0": ("real_mul_ew", [Q8, Q8], quantized("i8:f32, 0.0")),
    "the divisor's scale is 0": ("real_div_ew", [Q8, quantized("i8:f32, 0.0")], Q8),
    "the product of two of 16 bits is rounded to 2": (
        "real_mul_ew",
        [quantized("i16:f32, 1.0")] * 2,
        quantized("i16:f32, 1.0"),
    ),
    "sums of 40000 products may leave int32": (
        *("real_matmul", [quantized("u8:f32, 0.1", "2x40000"), quantized("u8:f32, 0.1", "40000x4")]),
        quantized("u8:f32, 0.1", "2x4"),
    ),
    "the number of products in a sum is not known": (
        *("real_matmul", [quantized("i8:f32, 0.1", "2x?"), quantized("i8:f32, 0.1", "?x4")]),
        quantized("i8:f32, 0.1", "2x4"),
    ),
    "'bias' has scale 0.1 and zero point 0": (
        *("real_matmul_bias", [Q8, quantized("i8:f32, 0.1", "4x4"), quantized("i32:f32, 0.1")]),
        Q8,
    ),
}


@pytest.mark.parametrize("reason", list(REFUSED))
def test_refused(reason: str) -> None:
    op, operands, result = REFUSED[reason]
    with pytest.raises(UnsupportedError, match=reason) as caught:
        lowered(function(op, operands, result))
    (found,) = caught.value.reasons
    assert f"fxpmath.{op}" in str(found)
    assert found.remedy


def test_functions_of_sixteen_bits_are_refused() -> None:
    wide = quantized("i16:f32, 0.1")
    with pytest.raises(UnsupportedError, match="quantize it to 8 bits"):
        lowered(function("real_unary", [wide], wide, 'opcode = "TANH"'))


def test_all_refusals_are_told_at_once() -> None:
    text = f"""func.func @f(%a: {F}, %b: {Q8}) -> ({Q8}, {Q8}) {{
  %0 = "fxpmath.real_add_ew"(%a, %b) : ({F}, {Q8}) -> {Q8}
  %1 = "fxpmath.real_mul_ew"(%a, %b) : ({F}, {Q8}) -> {Q8}
  return %0, %1 : {Q8}, {Q8}
}}"""
    with pytest.raises(UnsupportedError, match="2 op") as caught:
        lowered(text)
    assert [str(reason).count("real_") for reason in caught.value.reasons] == [1, 1]


@needs_mlir
def test_mlir_takes_the_results() -> None:
    u, c = quantized("u8:f32, 0.1:3"), quantized("i32:f32, 0.05")
    matrix = quantized("i8:f32, 0.5", "4x4")
    texts = [
        *(function(f"real_{op}_ew", [u, SYMMETRIC], Q8) for op in ("add", "sub", "mul", "div")),
        function("real_add_ew", [SYMMETRIC, SYMMETRIC], SYMMETRIC),
        function("real_unary", [u], Q8, 'opcode = "SIN"'),
        function("real_matmul_bias", [u, matrix, c], Q8),
    ]
    taken = mlir([print_module(lowered(text)) for text in texts], allow_unregistered=True)
    assert not [text for text in taken if text.startswith("ERROR")]
