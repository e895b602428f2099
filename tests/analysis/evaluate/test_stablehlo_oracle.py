"""The `stablehlo` dialect on constants, against StableHLO's own interpreter, to the last bit."""

import random

import numpy as np
import pytest
from support.mlir_oracle import evaluated, needs_mlir

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.formats.sources import read_text


def _drawn(r: random.Random, name: str, shape: list[int], kind: str = "f32") -> tuple[str, str]:
    """The lines that define a constant of a quantized type, or of floats, and its type."""
    dims = "".join(f"{d}x" for d in shape)
    values = np.random.default_rng(r.randrange(1 << 30)).normal(scale=8.0, size=shape).astype(np.float32)
    stated = f"tensor<{dims}f32>"
    lines = f'%{name}_f = "stablehlo.constant"() {{value = dense<{values.tolist()}> : {stated}}} : () -> {stated}\n'
    if kind == "f32":
        return lines.replace(f"%{name}_f", f"%{name}"), stated
    made = f"tensor<{dims}{kind}>"
    return f'{lines}%{name} = "stablehlo.uniform_quantize"(%{name}_f) : ({stated}) -> {made}\n', made


def _kind(r: random.Random) -> str:
    """Stored in a signed type: of an unsigned one the interpreter clamps sums as if it were signed."""
    storage, bound = r.choice([("i8", 128), ("i16", 500)])
    return f"!quant.uniform<{storage}:f32, {r.uniform(0.01, 1.0):.6g}:{r.randint(-bound, bound - 1)}>"


def _function(lines: str, op: str, operands: list[str], attributes: str, given: list[str], made: str) -> str:
    shown = made[: made.rindex("x") + 1] + "f32>" if "!quant" not in made else made[: made.index("!")] + "f32>"
    real = (
        f'%o = "stablehlo.uniform_dequantize"(%r) : ({made}) -> {shown}\n'
        if "!quant" in made
        else f'%o = "stablehlo.reshape"(%r) : ({made}) -> {shown}\n'
    )
    return (
        f"func.func @main() -> {shown} {{\n{lines}"
        f'%r = "stablehlo.{op}"({", ".join(operands)}) {{{attributes}}} : ({", ".join(given)}) -> {made}\n'
        f"{real}return %o : {shown}\n}}\n"
    )


def _dot(r: random.Random) -> str:
    b, m, k, n = (r.randint(1, 4) for _ in range(4))
    left, lhs = _drawn(r, "a", [b, m, k])
    right, rhs = _drawn(r, "b", [k, n, b])
    numbers = (
        "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [2], "
        "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>"
    )
    return _function(left + right, "dot_general", ["%a", "%b"], numbers, [lhs, rhs], f"tensor<{b}x{m}x{n}xf32>")


def _convolution(r: random.Random) -> str:
    groups, batches = r.choice([(1, 1), (2, 1), (1, 2)])
    n, c, o = 2 * r.randint(1, 2), groups * r.randint(1, 2), 2 * r.randint(1, 2)
    size = [r.randint(3, 6) for _ in range(2)]
    kernel, strides, base, spread = ([r.randint(1, 2) for _ in range(2)] for _ in range(4))
    padding = [[r.randint(-1, 2), r.randint(0, 2)] for _ in range(2)]
    reversal = [r.random() < 0.5 for _ in range(2)]
    left, lhs = _drawn(r, "a", [n, *size, c])
    right, rhs = _drawn(r, "b", [*kernel, c // groups, o])
    out = [
        ((s - 1) * d + 1 + sum(p) - ((k - 1) * w + 1)) // t + 1
        for s, k, t, d, w, p in zip(size, kernel, strides, base, spread, padding, strict=True)
    ]
    attributes = (
        "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        f"batch_group_count = {batches} : i64, feature_group_count = {groups} : i64, "
        f"window_strides = array<i64: {str(strides)[1:-1]}>, lhs_dilation = array<i64: {str(base)[1:-1]}>, "
        f"rhs_dilation = array<i64: {str(spread)[1:-1]}>, padding = dense<{padding}> : tensor<2x2xi64>, "
        f"window_reversal = array<i1: {str(reversal)[1:-1].lower()}>"
    )
    made = f"tensor<{n // batches}x{out[0]}x{out[1]}x{o}xf32>"
    return _function(left + right, "convolution", ["%a", "%b"], attributes, [lhs, rhs], made)


def _elementwise(r: random.Random) -> str:
    kind = _kind(r)
    left, lhs = _drawn(r, "a", [24], kind)
    right, rhs = _drawn(r, "b", [24], kind)
    name = r.choice(["add", "maximum", "minimum"])
    return _function(left + right, name, ["%a", "%b"], "", [lhs, rhs], f"tensor<24x{kind}>")


def _cast(r: random.Random) -> str:
    lines, given = _drawn(r, "a", [48])
    return _function(lines, "uniform_quantize", ["%a"], "", [given], f"tensor<48x{_kind(r)}>")


def _reduction(r: random.Random) -> str:
    lines, given = _drawn(r, "a", [3, 7])
    body = r.choice(["add", "maximum", "minimum", "multiply"])
    window = r.random() < 0.5
    op, made = ("reduce_window", "tensor<3x4xf32>") if window else ("reduce", "tensor<3xf32>")
    attributes = (
        "window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>, base_dilations = array<i64: 1, 1>, "
        "window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>"
        if window
        else "dimensions = array<i64: 1>"
    )
    init = {"add": 0.0, "multiply": 1.0, "maximum": -4.0, "minimum": 4.0}[body]
    constant = f'%i = "stablehlo.constant"() {{value = dense<{init}> : tensor<f32>}} : () -> tensor<f32>\n'
    region = (
        f'({{\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n%z = "stablehlo.{body}"(%x, %y) : '
        '(tensor<f32>, tensor<f32>) -> tensor<f32>\n"stablehlo.return"(%z) : (tensor<f32>) -> ()\n})'
    )
    text = _function(lines + constant, op, ["%a", "%i"], attributes, [given, "tensor<f32>"], made)
    return text.replace(f'"stablehlo.{op}"(%a, %i)', f'"stablehlo.{op}"(%a, %i) {region}')


@needs_mlir
def test_stablehlo_interpreter_computes_the_same() -> None:
    r = random.Random(7)
    texts = [make(r) for make in (_dot, _convolution, _elementwise, _cast, _reduction) for _ in range(40)]
    for text, wanted in zip(texts, evaluated(texts), strict=True):
        function = read_text(text.encode(), "text").main
        got = evaluate_function(function, {})[function.outputs[0]]
        np.testing.assert_array_equal(got.reshape(-1), np.asarray(wanted, np.float32), text)


@pytest.mark.parametrize(("element", "least"), [("i8", -128), ("i16", -(1 << 15)), ("i64", -(1 << 63))])
def test_the_least_integer_has_a_quotient(element: str, least: int) -> None:
    kind = f"tensor<5x{element}>"
    lines = (
        f'%a = "stablehlo.constant"() {{value = dense<[{least}, {least}, -7, 7, 3]> : {kind}}} : () -> {kind}\n'
        f'%b = "stablehlo.constant"() {{value = dense<[2, {least}, 2, -2, 0]> : {kind}}} : () -> {kind}\n'
    )
    divided = f'%r = "stablehlo.divide"(%a, %b) : ({kind}, {kind}) -> {kind}\n'
    main = read_text(f"func.func @main() -> {kind} {{\n{lines}{divided}return %r : {kind}\n}}\n".encode(), "text").main
    assert evaluate_function(main, {})[main.outputs[0]].tolist() == [least // 2, 1, -3, -3, -1]
