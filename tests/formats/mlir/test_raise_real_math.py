"""TFLite's float operators as real math: which clamps and biases become part of it, and the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest
from support.core_ops import evaluated
from support.harness import interpret

import tflq
from tflq.formats.mlir.real_math import RaiseRealMath
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify

F = "tensor<4x6xf32>"
NONE = '{fused_activation_function = "NONE"}'


def function(body: str, result: str, arguments: str = f"%x: {F}, %y: {F}", kind: str = F) -> str:
    return f"func.func @f({arguments}) -> {kind} {{\n{body}\n  return {result} : {kind}\n}}"


def raised(text: str) -> Module:
    module = RaiseRealMath().run(parse_module(text)).module
    verify(module)
    return module


def real(module: Module) -> list[tuple[str, float | None, float | None]]:
    """Each op by name, and what it clamps to."""
    return [
        (op.name.removeprefix("fxpmath.real_"), op.attributes.get("clamp_min"), op.attributes.get("clamp_max"))
        for op in module.ops()
    ]


def same_numbers(text: str, *arrays: np.ndarray) -> None:
    """What was raised gives what the operators give, evaluated and as a file."""
    module = raised(text)
    (wanted,) = interpret(tflq.convert(text.encode()).data, [list(arrays)])
    for made in (
        evaluated(module, *arrays),
        interpret(tflq.convert(print_module(module).encode()).data, [list(arrays)])[0],
    ):
        np.testing.assert_allclose(made[0], wanted[0], rtol=2e-6, atol=2e-6)


def some(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 4


ACTIVATIONS = {"NONE": (None, None), "RELU": (0, None), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_binaries_with_their_activation(name: str, activation: str) -> None:
    text = function(
        f'  %0 = "tfl.{name}"(%x, %y) {{fused_activation_function = "{activation}"}} : ({F}, {F}) -> {F}', "%0"
    )
    assert real(raised(text)) == [(f"{name}_ew", *ACTIVATIONS[activation])]
    same_numbers(text, some(4, 6), np.abs(some(4, 6, seed=1)) + 1)


def test_an_activation_that_does_not_clamp_stays() -> None:
    text = function(f'  %0 = "tfl.add"(%x, %y) {{fused_activation_function = "TANH"}} : ({F}, {F}) -> {F}', "%0")
    assert real(raised(text)) == [("tfl.add", None, None)]


def test_operands_broadcast() -> None:
    body = f'  %0 = "tfl.mul"(%x, %y) {NONE} : (tensor<4x1xf32>, tensor<6xf32>) -> {F}'
    text = function(body, "%0", "%x: tensor<4x1xf32>, %y: tensor<6xf32>")
    assert real(raised(text)) == [("mul_ew", None, None)]
    same_numbers(text, some(4, 1), some(6, seed=1))


CLAMPS = {
    "relu": ('"tfl.relu"(%0) : ({f}) -> {f}', (0, None)),
    "relu6": ('"tfl.relu6"(%0) : ({f}) -> {f}', (0, 6)),
    "relu_n1_to_1": ('"tfl.relu_n1_to_1"(%0) : ({f}) -> {f}', (-1, 1)),
    "relu_0_to_1": ('"tfl.relu_0_to_1"(%0) : ({f}) -> {f}', (0, 1)),
    "maximum": ('"tfl.maximum"(%0, %c) : ({f}, tensor<f32>) -> {f}', (2.5, None)),
    "minimum": ('"tfl.minimum"(%c, %0) : (tensor<f32>, {f}) -> {f}', (None, 2.5)),
}


@pytest.mark.parametrize("name", list(CLAMPS))
def test_a_clamp_behind_is_absorbed(name: str) -> None:
    line, bounds = CLAMPS[name]
    body = f"""  %c = arith.constant dense<2.5> : tensor<f32>
  %0 = "tfl.sub"(%x, %y) {NONE} : ({F}, {F}) -> {F}
  %1 = {line.format(f=F)}"""
    text = function(body, "%1")
    assert real(raised(text)) == [("sub_ew", *bounds)]
    same_numbers(text, some(4, 6), some(4, 6, seed=1))


def test_clamps_in_a_row_are_one() -> None:
    body = f"""  %low = arith.constant dense<-1.0> : tensor<f32>
  %high = arith.constant dense<3.0> : tensor<6xf32>
  %0 = "tfl.add"(%x, %y) {{fused_activation_function = "RELU6"}} : ({F}, {F}) -> {F}
  %1 = "tfl.minimum"(%0, %high) : ({F}, tensor<6xf32>) -> {F}
  %2 = "tfl.maximum"(%1, %low) : ({F}, tensor<f32>) -> {F}"""
    text = function(body, "%2")
    assert real(raised(text)) == [("add_ew", 0, 3)]
    same_numbers(text, some(4, 6), some(4, 6, seed=1))


def test_a_clamp_stays_if_something_else_reads_what_it_clamps() -> None:
    body = f"""  %0 = "tfl.add"(%x, %y) {NONE} : ({F}, {F}) -> {F}
  %1 = "tfl.relu"(%0) : ({F}) -> {F}
  %2 = "tfl.mul"(%0, %1) {NONE} : ({F}, {F}) -> {F}"""
    text = function(body, "%2")
    assert real(raised(text)) == [("add_ew", None, None), ("tfl.relu", None, None), ("mul_ew", None, None)]


def test_clamps_by_several_numbers_and_of_other_operators_stay() -> None:
    body = f"""  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
  %0 = "tfl.add"(%x, %y) {NONE} : ({F}, {F}) -> {F}
  %1 = "tfl.minimum"(%0, %c) : ({F}, tensor<6xf32>) -> {F}
  %2 = "tfl.relu"(%1) : ({F}) -> {F}"""
    assert [name for name, *_ in real(raised(function(body, "%2")))] == ["add_ew", "tfl.minimum", "tfl.relu"]


@pytest.mark.parametrize("name", "tanh logistic exp log neg rsqrt sin sqrt square".split())
def test_functions(name: str) -> None:
    text = function(f'  %0 = "tfl.{name}"(%x) : ({F}) -> {F}', "%0", f"%x: {F}")
    assert real(raised(text)) == [("unary", None, None)]
    same_numbers(text, np.abs(some(4, 6)) + 0.1)


FC = """  %w = arith.constant dense<{weights}> : tensor<3x6xf32>
  %b = arith.constant dense<[0.5, -1.0, 2.0]> : tensor<3xf32>
"""
WEIGHTS = np.round(some(3, 6, seed=5), 3).tolist()


def layer(bias: bool, input: str, result: str, activation: str = "NONE", keep: bool = False) -> str:
    operands, types = ("%x, %w, %b", f"{input}, tensor<3x6xf32>, tensor<3xf32>")
    if not bias:
        operands, types = "%x, %w, %n", f"{input}, tensor<3x6xf32>, none"
    none = "" if bias else '  %n = "tfl.no_value"() {value} : () -> none\n'
    flags = (
        f'fused_activation_function = "{activation}", keep_num_dims = {str(keep).lower()}, weights_format = "DEFAULT"'
    )
    return f'{none}  %0 = "tfl.fully_connected"({operands}) {{{flags}}} : ({types}) -> {result}'


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["NONE", "RELU6"])
def test_layers(bias: bool, activation: str) -> None:
    text = function(
        FC.format(weights=WEIGHTS) + layer(bias, F, "tensor<4x3xf32>", activation), "%0", f"%x: {F}", "tensor<4x3xf32>"
    )
    assert real(raised(text)) == [("matmul_bias" if bias else "matmul", *ACTIVATIONS[activation])]
    same_numbers(text, some(4, 6))


@pytest.mark.parametrize("keep", [True, False])
def test_layers_of_inputs_of_more_dims(keep: bool) -> None:
    result = "tensor<2x2x3xf32>" if keep else "tensor<4x3xf32>"
    body = FC.format(weights=WEIGHTS) + layer(True, "tensor<2x2x6xf32>", result, keep=keep)
    text = function(body, "%0", "%x: tensor<2x2x6xf32>", result)
    assert [name for name, *_ in real(raised(text))] == (["matmul_bias"] if keep else ["tfl.reshape", "matmul_bias"])
    same_numbers(text, some(2, 2, 6))


def test_weights_that_are_computed_are_transposed() -> None:
    body = f"""  %0 = "tfl.fully_connected"(%x, %w, %b) {{fused_activation_function = "NONE", keep_num_dims = false,
    weights_format = "DEFAULT"}} : ({F}, tensor<3x6xf32>, tensor<3xf32>) -> tensor<4x3xf32>"""
    text = function(body, "%0", f"%x: {F}, %w: tensor<3x6xf32>, %b: tensor<3xf32>", "tensor<4x3xf32>")
    assert [name for name, *_ in real(raised(text))] == ["tfl.transpose", "matmul_bias"]
    same_numbers(text, some(4, 6), some(3, 6, seed=1), some(3, seed=2))


def test_the_addition_of_a_vector_is_a_bias_and_a_clamp_behind_it_too() -> None:
    body = FC.format(weights=WEIGHTS) + layer(False, F, "tensor<4x3xf32>")
    body += f"""
  %1 = "tfl.add"(%b, %0) {NONE} : (tensor<3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = "tfl.relu"(%1) : (tensor<4x3xf32>) -> tensor<4x3xf32>"""
    text = function(body, "%2", f"%x: {F}", "tensor<4x3xf32>")
    assert real(raised(text)) == [("matmul_bias", 0, None)]
    same_numbers(text, some(4, 6))


def test_quantized_operators_stay() -> None:
    q = "tensor<4x!quant.uniform<i8:f32, 0.5>>"
    text = function(f'  %0 = "tfl.add"(%x, %y) {NONE} : ({q}, {q}) -> {q}', "%0", f"%x: {q}, %y: {q}", q)
    assert real(raised(text)) == [("tfl.add", None, None)]
