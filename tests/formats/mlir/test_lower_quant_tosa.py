"""lower-quant-ops{dialect=tosa}: the ops it makes, and that they compute what the casts mean, in every case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.harness import interpret

import tflq
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import UnsupportedError
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.numerics.fixed_point import ROUNDINGS, Rounding, round_float
from tflq.tools.opt import parse_pipeline


def qcast(shape: str, quantized: str) -> str:
    return text("quant.qcast", shape.format("f32"), shape.format(quantized))


def dcast(shape: str, quantized: str) -> str:
    return text("quant.dcast", shape.format(quantized), shape.format("f32"))


def text(op: str, source: str, target: str) -> str:
    return f"func.func @f(%0: {source}) -> {target} {{\n%1 = {op} %0 : {source} to {target}\nreturn %1 : {target}\n}}"


def lowered(source: str) -> Module:
    module = parse_module(source)
    verify(module)
    assert parse_pipeline("lower-quant-ops{dialect=tosa}").run(module).modified
    verify(module)
    assert not {op.name for op in module.main.ops} & {"quant.qcast", "quant.dcast"}
    return module


@pytest.fixture
def run() -> Callable[[Module, np.ndarray], np.ndarray]:
    def evaluate(module: Module, x: np.ndarray) -> np.ndarray:
        function = module.main
        return evaluate_function(function, {function.inputs[0]: x})[function.outputs[0]]

    return evaluate


CASES = [
    ("tensor<4x2x5x{}>", "!quant.uniform<i8<-8:7>:f32, 2.0:1>"),
    ("tensor<?x2x?x{}>", "!quant.uniform<u8:f32, 0.1:128>"),
    ("tensor<*x{}>", "!quant.uniform<i8:f32, 0.3:-10>"),
    ("tensor<4x2x5x{}>", "!quant.uniform<i8<-8:7>:f32:1, {{2.0, 3.0}}>"),
    ("tensor<4x?x?x{}>", "!quant.uniform<i16:f32:1, {{0.02, 0.03:5}}>"),
    ("tensor<4x2x5x{}>", "!quant.uniform<i8:f32:2, {{1.0, 2.0, 3.0, 4.0, 5.0:5}}>"),
    ("tensor<*x{}>", "!quant.uniform<i8:f32:1, {{2.0:10, 3.0:20}}>"),
    ("tensor<*x{}>", "!quant.uniform<i8:f32:2, {{1.0, 2.0, 3.0, 4.0, 5.0:5}}>"),
    ("tensor<4x2x5x{}>", "!quant.uniform<i8:f32:{{0:2, 1:1}}, {{{{{{2.0:1}}, {{3.0:2}}}}, {{{{4.0:3}}, {{5.0:4}}}}}}>"),
]
"""Types of a value that is 4x2x5 when it is computed."""


def parameters(quantized: str) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Scales and zero points broadcast to 4x2x5, and the storage range, by the definition of the type."""
    element: Any = parse_module(qcast("tensor<4x2x5x{}>", quantized)).main.outputs[0].type.element
    scale = np.empty((4, 2, 5), np.float32)
    zero = np.empty((4, 2, 5), np.int64)
    for place in np.ndindex(4, 2, 5):
        if hasattr(element, "axes"):
            sizes = dict(zip(element.axes, element.block_sizes, strict=True))
            at: Any = tuple(i // sizes[a] if a in sizes else 0 for a, i in enumerate(place))
            scale[place], zero[place] = element.scales[at], element.zero_points[at]
        elif hasattr(element, "axis"):
            scale[place], zero[place] = element.scales[place[element.axis]], element.zero_points[place[element.axis]]
        else:
            scale[place], zero[place] = element.scale, element.zero_point
    return scale, zero, element.storage_min, element.storage_max


@pytest.mark.parametrize(("shape", "quantized"), CASES)
def test_every_case_computes_its_definition(
    shape: str, quantized: str, run: Callable[[Module, np.ndarray], np.ndarray]
) -> None:
    quantized = quantized.format()
    scale, zero, low, high = parameters(quantized)
    rng = np.random.default_rng(0)
    quantize, dequantize = lowered(qcast(shape, quantized)), lowered(dcast(shape, quantized))
    for spread in (1, 30, 1e6, 1e30):
        x = (rng.normal(size=(4, 2, 5)) * spread).astype(np.float32)
        x.flat[:10] = scale.flat[:10] * (np.arange(-5, 5, dtype=np.float32) + np.float32(0.5))
        expected = np.clip(np.rint(x / scale).astype(np.float64) + zero, low, high).astype(np.int64)
        stored = run(quantize, x)
        stored = stored.view(np.uint8) if low == 0 else stored
        assert stored.shape == (4, 2, 5)
        assert np.array_equal(stored, expected)
        real = run(dequantize, stored.view(np.int8) if low == 0 else stored)
        assert np.array_equal(real, (stored - zero).astype(np.float32) * scale)


def test_scalars(run: Callable[[Module, np.ndarray], np.ndarray]) -> None:
    module = lowered(qcast("{}", "!quant.uniform<i8:f32, 2.0:3>"))
    assert run(module, np.array(-3.0, np.float32)) == 1  # -1.5 rounds to -2, which is even
    assert run(module, np.array(-5.0, np.float32)) == 1  # -2.5 does, too
    assert run(module, np.array(1e9, np.float32)) == 127
    assert run(lowered(dcast("{}", "!quant.uniform<i8:f32, 2.0:3>")), np.array(-128, np.int8)) == -262.0


def test_saturation_where_the_bound_is_no_float(run: Callable[[Module, np.ndarray], np.ndarray]) -> None:
    module = lowered(qcast("tensor<3x{}>", "!quant.uniform<i32:f32, 1.0>"))
    stored = run(module, np.array([3e9, -3e9, 16777217], np.float32))
    assert stored.tolist() == [2147483520, -2147483648, 16777216]


@given(
    st.lists(st.floats(-(2**20), 2**20, width=32), min_size=2, max_size=2),
    st.integers(-128, 127),
    st.floats(2**-9, 2**20, width=32),
)
@example([0.0, 0.25], 0, 0.5)  # a half is rounded to even
def test_it_computes_what_the_evaluator_computes(values: list[float], zero_point: int, scale: float) -> None:
    source = qcast("tensor<2x{}>", f"!quant.uniform<i8:f32, {scale!r}:{zero_point}>")
    x = np.array(values, np.float32)
    direct, made = parse_module(source).main, lowered(source).main
    expected = evaluate_function(direct, {direct.inputs[0]: x})[direct.outputs[0]]
    assert np.array_equal(evaluate_function(made, {made.inputs[0]: x})[made.outputs[0]], expected)


def test_golden_per_layer() -> None:
    module = lowered(qcast("tensor<3x5x{}>", "!quant.uniform<i8<-8:7>:f32, 2.0:10>"))
    assert [line.strip() for line in print_module(module).splitlines()[2:-2]] == [
        "%cst0 = arith.constant 2.0 : f32",
        '%0 = "tensor.splat"(%cst0) : (f32) -> tensor<3x5xf32>',
        '%1 = "arith.divf"(%arg0, %0) : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>',
        '%2 = "math.roundeven"(%1) : (tensor<3x5xf32>) -> tensor<3x5xf32>',
        '%cst1 = "tosa.const"() {values = dense<[[10.0]]> : tensor<1x1xf32>} : () -> tensor<1x1xf32>',
        '%3 = "tosa.add"(%2, %cst1) : (tensor<3x5xf32>, tensor<1x1xf32>) -> tensor<3x5xf32>',
        '%cst2 = "tosa.const"() {values = dense<[[-8.0]]> : tensor<1x1xf32>} : () -> tensor<1x1xf32>',
        '%4 = "tosa.maximum"(%3, %cst2) : (tensor<3x5xf32>, tensor<1x1xf32>) -> tensor<3x5xf32>',
        '%cst3 = "tosa.const"() {values = dense<[[7.0]]> : tensor<1x1xf32>} : () -> tensor<1x1xf32>',
        '%5 = "tosa.minimum"(%4, %cst3) : (tensor<3x5xf32>, tensor<1x1xf32>) -> tensor<3x5xf32>',
        '%6 = "tosa.cast"(%5) : (tensor<3x5xf32>) -> tensor<3x5xi8>',
        "%7 = quant.scast %6 : tensor<3x5xi8> to tensor<3x5x!quant.uniform<i8<-8:7>:f32, 2.0:10>>",
        "return %7 : tensor<3x5x!quant.uniform<i8<-8:7>:f32, 2.0:10>>",
    ]


def test_neighbouring_casts_meet_in_storage() -> None:
    q = "!quant.uniform<i8:f32:1, {2.0, 3.0}>"
    source = f"""func.func @f(%0: tensor<*x{q}>) -> tensor<*x{q}> {{
  %1 = quant.dcast %0 : tensor<*x{q}> to tensor<*xf32>
  %3 = "tfl.tanh"(%1) : (tensor<*xf32>) -> tensor<*xf32>
  %4 = quant.qcast %3 {{tflq.tensors = [{{name = "t"}}]}} : tensor<*xf32> to tensor<*x{q}>
  %5 = quant.dcast %4 : tensor<*x{q}> to tensor<*xf32>
  %6 = quant.qcast %5 {{tflq.tensors = [{{name = "out"}}]}} : tensor<*xf32> to tensor<*x{q}>
  return %6 : tensor<*x{q}>
}}"""
    module = parse_module(source)
    parse_pipeline("lower-quant-ops{dialect=tosa},strip-func-quant-types,canonicalize,cse,dce").run(module)
    assert not any(op.name.startswith("quant.") for op in module.main.ops)
    assert module.main.outputs[0].name == "out"


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_every_rounding_is_of_the_quotient(rounding: Rounding, run: Callable[[Module, np.ndarray], np.ndarray]) -> None:
    module = parse_module(qcast("tensor<9x{}>", "!quant.uniform<i8:f32, 2.0:3>"))
    parse_pipeline(f"lower-quant-ops{{dialect=tosa rounding={rounding}}}").run(module)
    x = np.array([-5, -3, -2, -1, 0, 1, 3, 5, 300], np.float32)
    assert np.array_equal(run(module, x), np.clip(round_float(x / 2, rounding) + 3, -128, 127))


def test_what_is_lowered_to_tosa_is_converted() -> None:
    """The text, with its mixture of dialects; the shift of tosa.mul is an operand there."""
    kind = "tensor<64x4x!quant.uniform<i8:f32:1, {0.1:3, 0.2, 0.3:-9, 0.4}>>"
    source = f"""func.func @f(%0: {kind}) -> {kind} {{
      %1 = quant.dcast %0 : {kind} to tensor<64x4xf32>
      %2 = arith.negf %1 : tensor<64x4xf32>
      %3 = quant.qcast %2 : tensor<64x4xf32> to {kind}
      return %3 : {kind}
    }}"""
    module = parse_module(source)
    parse_pipeline("lower-quant-ops{dialect=tosa},strip-func-quant-types,canonicalize,dce").run(module)
    x = np.arange(256, dtype=np.uint8).view(np.int8).reshape(64, 4)
    ((found,),) = interpret(tflq.convert(print_module(module).encode()).data, [[x]])
    function = module.main
    assert np.array_equal(found, evaluate_function(function, {function.inputs[0]: x})[function.outputs[0]])


def test_what_has_no_lowering_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="expressed type bf16"):
        lowered(text("quant.qcast", "tensor<2xbf16>", "tensor<2x!quant.uniform<i8:bf16, 1.0>>"))
    with pytest.raises(UnsupportedError, match="static shape for sub-channel"):
        lowered(qcast("tensor<?x2x{}>", "!quant.uniform<i8:f32:{0:1}, {{1.0}}>"))
    source = qcast("tensor<2x{}>", "!quant.uniform<i8:f32, 1.0>")
    with pytest.raises(UnsupportedError, match=r"not the sum with the zero point.*use dialect=core"):
        lowered(source.replace("quant.qcast %0", 'quant.qcast %0 {sum_rounding = "half_up"}'))
