"""The ops of `fxpmath` on integers in files: the interpreter and the TOSA reference model give what the evaluator
gives."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.core_ops import evaluated, of_text
from support.harness import interpret
from support.running import reference_of_file

import tflq
from tflq.base.errors import UnsupportedError
from tflq.formats.mlir.real_math import LowerRealMath
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module

RESOLVERS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")
KINDS = ("i8", "i16", "i32")
N = 2048


def compare(text: str, *arrays: np.ndarray, wanted: list[np.ndarray] | None = None) -> None:
    """TFLite's file with every resolver, and the TOSA file."""
    wanted = of_text(text, *arrays) if wanted is None else wanted
    model = tflq.convert(text.encode()).data
    for resolver in RESOLVERS:
        (made,) = interpret(model, [list(arrays)], resolver)
        for got, want in zip(made, wanted, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"{resolver}\n{text}", strict=True)
    made = reference_of_file(bytes(tflq.convert(text.encode(), format="tosa").data), arrays)
    for got, want in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(got.view(want.dtype), want, err_msg=f"TOSA\n{text}")


def bounds(kind: str) -> tuple[int, int]:
    info = np.iinfo(kind.replace("i", "int"))
    return int(info.min), int(info.max)


def some(kind: str, seed: int, count: int = N) -> np.ndarray:
    """Random integers of all sizes, and the ends of the type."""
    low, high = bounds(kind)
    rng = np.random.default_rng(seed)
    near = (rng.normal(size=count) * 2.0 ** rng.integers(0, np.log2(high), count)).astype(np.int64)
    ends = rng.choice([low, low + 1, -2, -1, 0, 1, high - 1, high, high // 2 + 1, low // 2], count)
    mixed = np.where(rng.random(count) < 0.3, ends, np.clip(near, low, high))
    return mixed.astype(kind.replace("i", "int"))


def pairs(kind: str) -> list[np.ndarray]:
    """Ends by ends, then random ones."""
    low, high = bounds(kind)
    edges = [low, low + 1, low // 2, -1, 0, 1, high // 2 + 1, high - 1, high]
    met = np.array(list(product(edges, edges)), some(kind, 0).dtype)
    return [np.concatenate([met[:, side], some(kind, side + 1, N - len(met))]) for side in (0, 1)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exponents", [(0, 1, 2), (3, 7, 8), (15, 16, 24), (29, 30, 31)])
def test_divisions(kind: str, exponents: tuple[int, ...]) -> None:
    type = f"tensor<{N}x{kind}>"
    lines = [
        f'  %{e} = "fxpmath.rounding_divide_by_pot"(%x) {{exponent = {e} : i32}} : ({type}) -> {type}'
        for e in exponents
    ]
    names, types = ", ".join(f"%{e}" for e in exponents), ", ".join([type] * len(exponents))
    body = "\n".join(lines)
    compare(f"func.func @f(%x: {type}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}", some(kind, 3))


def binary(op: str, kind: str, attributes: str = "") -> str:
    type = f"tensor<{N}x{kind}>"
    return f"""func.func @f(%x: {type}, %y: {type}) -> {type} {{
  %r = "fxpmath.{op}"(%x, %y) {{{attributes}}} : ({type}, {type}) -> {type}
  return %r : {type}
}}"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clamped", [False, True])
def test_sums(kind: str, clamped: bool) -> None:
    low, high = (-3, 100) if clamped else bounds(kind)
    compare(binary("saturating_add", kind, f"clamp_min = {low} : i32, clamp_max = {high} : i32"), *pairs(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_high_products(kind: str) -> None:
    compare(binary("saturating_rounding_doubling_high_mul", kind), *pairs(kind))


@pytest.mark.parametrize("number", [-(1 << 31), -(1 << 30), -5, 0, 1, 1 << 30, 1234567891, (1 << 31) - 1])
def test_products_and_sums_with_a_constant(number: int) -> None:
    type = f"tensor<{N}xi32>"
    text = f"""func.func @f(%x: {type}) -> ({type}, {type}, {type}) {{
  %n = arith.constant {number} : i32
  %c = tensor.splat %n : {type}
  %p = "fxpmath.saturating_rounding_doubling_high_mul"(%x, %c) : ({type}, {type}) -> {type}
  %d = "fxpmath.rounding_divide_by_pot"(%p) {{exponent = 7 : i32}} : ({type}) -> {type}
  %s = "fxpmath.saturating_add"(%c, %x) {{clamp_min = {-(1 << 31)} : i32, clamp_max = {(1 << 31) - 1} : i32}}
    : ({type}, {type}) -> {type}
  return %p, %d, %s : {type}, {type}, {type}
}}"""
    compare(text, some("i32", 4))


def test_a_product_and_a_division_are_one_rescale() -> None:
    text = """func.func @f(%x: tensor<8xi32>) -> tensor<8xi32> {
  %c = arith.constant dense<1234567891> : tensor<8xi32>
  %p = "fxpmath.saturating_rounding_doubling_high_mul"(%x, %c) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
  %d = "fxpmath.rounding_divide_by_pot"(%p) {exponent = 7 : i32} : (tensor<8xi32>) -> tensor<8xi32>
  return %d : tensor<8xi32>
}"""
    module = tflq.read(bytes(tflq.convert(text.encode(), format="tosa").data))
    assert [op.name for op in module.ops()] == ["tosa.rescale"]


def test_operands_broadcast() -> None:
    text = """func.func @f(%x: tensor<5x1xi32>, %y: tensor<1x7xi32>) -> (tensor<5x7xi32>, tensor<5x7xi32>) {
  %p = "fxpmath.saturating_rounding_doubling_high_mul"(%x, %y) : (tensor<5x1xi32>, tensor<1x7xi32>) -> tensor<5x7xi32>
  %s = "fxpmath.saturating_add"(%x, %y) {clamp_min = -2147483648 : i32, clamp_max = 2147483647 : i32}
    : (tensor<5x1xi32>, tensor<1x7xi32>) -> tensor<5x7xi32>
  return %p, %s : tensor<5x7xi32>, tensor<5x7xi32>
}"""
    compare(text, some("i32", 5, 5)[:, None], some("i32", 6, 7)[None])


@pytest.mark.parametrize("rows", ["", "6x", "2x3x"])
def test_matrix_products(rows: str) -> None:
    shape = [int(d) for d in rows.split("x") if d]
    text = f"""func.func @f(%x: tensor<{rows}5xi8>, %y: tensor<5x7xi8>) -> tensor<{rows}7xi32> {{
  %p = "fxpmath.matmul"(%x, %y) {{lhs_zero_point = -128 : i32, rhs_zero_point = 3 : i32}}
    : (tensor<{rows}5xi8>, tensor<5x7xi8>) -> tensor<{rows}7xi32>
  return %p : tensor<{rows}7xi32>
}}"""
    compare(text, some("i8", 7, int(np.prod([*shape, 5]))).reshape(*shape, 5), some("i8", 8, 35).reshape(5, 7))


LOWERED = {
    "add": ("i8:f32, 0.1:5", "i8:f32, 0.25:-7", "i8:f32, 0.3:1"),
    "add ": ("i8:f32, 0.5", "i8:f32, 0.0625", "i8:f32, 0.5"),
    "sub": ("u8:f32, 0.5:3", "u8:f32, 0.25:128", "u8:f32, 0.5:250"),
    "sub ": ("i16:f32, 0.001:3", "i8:f32, 0.25", "i16:f32, 0.0017"),
    "mul": ("u8:f32, 0.1:5", "i8:f32, 0.25:-7", "i8:f32, 0.3:1"),
    "mul ": ("i16:f32, 0.001", "i16:f32, 0.002", "i16:f32, 0.07:9"),
    "div": ("i8:f32, 0.1:5", "i8:f32, 0.25:-7", "u8:f32, 0.3:1"),
}


@pytest.mark.parametrize("op", list(LOWERED))
def test_lowered_real_math(op: str) -> None:
    """Every pair of two of 8 bits; clamped, too."""
    a, b, c = (f"!quant.uniform<{kind}>" for kind in LOWERED[op])
    lhs, rhs, result = f"tensor<256x1x{a}>", f"tensor<1x256x{b}>", f"tensor<256x256x{c}>"
    real, types = f'"fxpmath.real_{op.strip()}_ew"(%x, %y)', f"({lhs}, {rhs}) -> {result}"
    text = f"""func.func @f(%x: {lhs}, %y: {rhs}) -> ({result}, {result}) {{
  %r = {real} : {types}
  %s = {real} {{clamp_min = 0.0 : f64, clamp_max = 6.0 : f64}} : {types}
  return %r, %s : {result}, {result}
}}"""
    whole = {"i8": np.arange(-128, 128), "u8": np.arange(256), "i1": np.arange(-32768, 32768, 257)[:256]}
    dtypes = {"i8": np.int8, "u8": np.uint8, "i1": np.int16}
    kinds = [kind[:2] for kind in LOWERED[op][:2]]
    x, y = (whole[kind].astype(dtypes[kind]) for kind in kinds)
    run_lowered(text, x[:, None], y[None])


def run_lowered(text: str, *arrays: np.ndarray) -> None:
    module = LowerRealMath().run(parse_module(text)).module
    wanted = evaluated(module, *arrays)
    compare(print_module(module), *arrays, wanted=wanted)


@pytest.mark.parametrize("name", ["add", "sub"])
def test_sums_of_general_scales_are_those_of_the_kernels(name: str) -> None:
    a, b, c = (f"!quant.uniform<{kind}>" for kind in LOWERED["add"])
    lhs, rhs, result = f"tensor<256x1x{a}>", f"tensor<1x256x{b}>", f"tensor<256x256x{c}>"
    head, types = f"func.func @f(%x: {lhs}, %y: {rhs}) -> {result}", f"({lhs}, {rhs}) -> {result}"
    texts = [
        f"{head} {{\n  %r = {op} : {types}\n  return %r : {result}\n}}"
        for op in (
            f'"fxpmath.real_{name}_ew"(%x, %y) {{clamp_min = 0.0 : f64, clamp_max = 6.0 : f64}}',
            f'"tfl.{name}"(%x, %y) {{fused_activation_function = "RELU6"}}',
        )
    ]
    x = np.arange(-128, 128).astype(np.int8)
    kernel = tflq.convert(texts[1].encode(), target="kernels").data
    (wanted,) = interpret(kernel, [[x[:, None], x[None]]])
    module = LowerRealMath().run(parse_module(texts[0])).module
    np.testing.assert_array_equal(evaluated(module, x[:, None], x[None])[0], wanted[0])


@pytest.mark.parametrize("opcode", ["TANH", "RSQRT", "CMPGZ"])
@pytest.mark.parametrize("kinds", [("i8", "i8"), ("u8", "i8"), ("i8", "u8"), ("u8", "u8")])
def test_lowered_functions(opcode: str, kinds: tuple[str, str]) -> None:
    source = f"tensor<256x!quant.uniform<{kinds[0]}:f32, 0.05:20>>"
    result = f"tensor<256x!quant.uniform<{kinds[1]}:f32, 0.02:3>>"
    text = f"""func.func @f(%x: {source}) -> {result} {{
  %r = "fxpmath.real_unary"(%x) {{opcode = "{opcode}"}} : ({source}) -> {result}
  return %r : {result}
}}"""
    run_lowered(text, np.arange(256).astype(np.uint8).view(np.int8 if kinds[0] == "i8" else np.uint8))


@pytest.mark.parametrize("kind", ["i8", "u8"])
def test_lowered_matrix_products(kind: str) -> None:
    a, b = f"tensor<2x3x16x!quant.uniform<{kind}:f32, 0.05:20>>", f"tensor<16x9x!quant.uniform<{kind}:f32, 0.02:3>>"
    c, d = "tensor<9x!quant.uniform<i32:f32, 0.001>>", f"tensor<2x3x9x!quant.uniform<{kind}:f32, 0.1:100>>"
    text = f"""func.func @f(%x: {a}, %y: {b}, %z: {c}) -> {d} {{
  %r = "fxpmath.real_matmul_bias"(%x, %y, %z) {{clamp_min = 0.0 : f64}} : ({a}, {b}, {c}) -> {d}
  return %r : {d}
}}"""
    rng = np.random.default_rng(0)
    low, dtype = (-128, np.int8) if kind == "i8" else (0, np.uint8)
    x, y = (rng.integers(low, low + 256, shape).astype(dtype) for shape in ((2, 3, 16), (16, 9)))
    run_lowered(text, x, y, rng.integers(-2000, 2000, 9).astype(np.int32))


@pytest.mark.parametrize(("element", "remedy"), [("!quant.uniform<i8:f32, 0.5>", "lower-real-math"), ("f16", "f32")])
def test_real_ops_of_other_types_are_refused_with_what_to_do(element: str, remedy: str) -> None:
    type = f"tensor<4x{element}>"
    text = f"""func.func @f(%x: {type}) -> {type} {{
  %r = "fxpmath.real_unary"(%x) {{opcode = "TANH"}} : ({type}) -> {type}
  return %r : {type}
}}"""
    with pytest.raises(UnsupportedError, match=remedy):
        tflq.convert(text.encode())


REALS = {
    "sigmoid": ('"fxpmath.real_unary"(%x) {opcode = "SIGMOID"}', 1),
    "identity": ('"fxpmath.real_unary"(%x) {opcode = "IDENTITY", clamp_min = -0.25 : f64}', 1),
    "zero": ('"fxpmath.real_unary"(%x) {opcode = "CMPZ"}', 1),
    "not zero": ('"fxpmath.real_unary"(%x) {opcode = "CMPNZ"}', 1),
    "less": ('"fxpmath.real_unary"(%x) {opcode = "CMPLZ"}', 1),
    "greater": ('"fxpmath.real_unary"(%x) {opcode = "CMPGZ", clamp_max = 0.5 : f64}', 1),
    "sum": ('"fxpmath.real_add_ew"(%x, %y) {clamp_min = 0.0 : f64, clamp_max = 6.0 : f64}', 2),
    "quotient": ('"fxpmath.real_div_ew"(%x, %y) {clamp_min = -3.5 : f64, clamp_max = 2.0 : f64}', 2),
    "product": ('"fxpmath.real_matmul"(%x, %y) {clamp_min = 0.0 : f64}', 2),
}


@pytest.mark.parametrize("name", list(REALS))
def test_real_ops_on_floats(name: str) -> None:
    line, count = REALS[name]
    type = "tensor<6x6xf32>"
    operands = ", ".join([type] * count)
    text = f"""func.func @f(%x: {type}, %y: {type}) -> {type} {{
  %r = {line} : ({operands}) -> {type}
  return %r : {type}
}}"""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-8, 9, (6, 6)).astype(np.float32) / 4 for _ in range(2))
    y = np.where(y == 0, np.float32(1), y)
    wanted = of_text(text, x, y)
    made = interpret(tflq.convert(text.encode()).data, [[x, y]])[0]
    np.testing.assert_allclose(made[0], wanted[0], rtol=1e-6)
    made = reference_of_file(bytes(tflq.convert(text.encode(), format="tosa").data), [x, y])
    np.testing.assert_allclose(made[0], wanted[0], rtol=1e-6)
