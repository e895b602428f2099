"""Evaluators of TFLite's arithmetic on plain numbers: the interpreter's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, interpret, one_op

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.ir.ops import Op
from tflq.ir.types import ScalarType, f32, i1, i32

NONE = {"fused_activation_function": "NONE"}
SHAPES = ((2, 3, 4), (1, 4))
OUT = (2, 3, 4)


def numbers(element: ScalarType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Of both signs, without 0; the least and the greatest int32 among them."""
    rng = np.random.default_rng(seed)
    if element is i1:
        return rng.integers(0, 2, shape).astype(bool)
    if element is f32:
        return np.asarray(rng.uniform(0.5, 9, shape) * rng.choice([-1, 1], shape), np.float32)
    found = rng.integers(1, 50, shape, np.int32) * rng.choice([-1, 1], shape).astype(np.int32)
    if len(shape) == 3:
        found[0, 0, :2] = (1 << 31) - 1, -(1 << 31) + 1
    return np.asarray(found, np.int32)


def same(op: Op, arrays: list[np.ndarray], resolver: str = "BUILTIN_REF") -> None:
    model = one_op(op.name, op.operands, op.results, op.attributes)
    inputs = [a for a, v in zip(arrays, op.operands, strict=True) if v is not None and not v.is_constant]
    ((want,),) = interpret(model, [inputs], resolver)
    (got,) = evaluate_op(op, list(arrays)) or []
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype


BINARY = [
    *((name, dict(NONE), element) for name in ("add", "sub", "mul", "div") for element in (i32, f32)),
    ("add", {"fused_activation_function": "RELU"}, i32),
    ("sub", {"fused_activation_function": "RELU6"}, f32),
    ("div", {"fused_activation_function": "RELU_N1_TO_1"}, f32),
    *((name, {}, element) for name in ("maximum", "minimum", "floor_div", "floor_mod") for element in (i32, f32)),
]


@pytest.mark.parametrize(("name", "attributes", "element"), BINARY, ids=str)
def test_two_operands(name: str, attributes: dict[str, Any], element: ScalarType) -> None:
    arrays = [numbers(element, shape, i) for i, shape in enumerate(SHAPES)]
    values = [argument(shape, element, f"x{i}") for i, shape in enumerate(SHAPES)]
    same(Op(f"tfl.{name}", list(values), [argument(OUT, element, "y")], attributes), arrays)


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
@pytest.mark.parametrize("element", [i32, f32], ids=str)
def test_comparisons(name: str, element: ScalarType) -> None:
    first = numbers(element, OUT, 0)
    second = np.where(np.arange(24).reshape(OUT) % 3, numbers(element, OUT, 1), first)
    values = [argument(OUT, element, f"x{i}") for i in range(2)]
    same(Op(f"tfl.{name}", list(values), [argument(OUT, i1, "y")]), [first, second])


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_truth_values(name: str) -> None:
    values = [argument(OUT, i1, f"x{i}") for i in range(2)]
    same(Op(f"tfl.{name}", list(values), [argument(OUT, i1, "y")]), [numbers(i1, OUT, i) for i in range(2)])


@pytest.mark.parametrize("name", ["abs", "ceil", "floor", "neg", "square", "zeros_like", "logical_not"])
def test_one_operand(name: str) -> None:
    element = i1 if name == "logical_not" else f32
    op = Op(f"tfl.{name}", [argument(OUT, element)], [argument(OUT, element, "y")])
    same(op, [numbers(element, OUT, 3)], "BUILTIN")  # the reference resolver has no CEIL


@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("name", ["sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all"])
def test_reductions(name: str, keep_dims: bool) -> None:
    element = i1 if name in ("reduce_any", "reduce_all") else i32
    axes = const(np.asarray([0, -1], np.int32), i32, "axes")
    shape = (1, 3, 1) if keep_dims else (3,)
    op = Op(f"tfl.{name}", [argument(OUT, element), axes], [argument(shape, element, "y")], {"keep_dims": keep_dims})
    same(op, [numbers(element, OUT, 4), axes.array])


def test_a_divisor_of_zero_and_an_activation_that_does_not_clamp() -> None:
    values = [argument((1,), i32, f"x{i}") for i in range(2)]
    one, zero = np.ones(1, np.int32), np.zeros(1, np.int32)
    for name in ("div", "floor_div", "floor_mod"):
        with pytest.raises(ZeroDivisionError):
            evaluate_op(Op(f"tfl.{name}", list(values), [argument((1,), i32, "y")]), [one, zero])
    with pytest.raises(NotImplementedError, match="TANH"):
        evaluate_op(
            Op("tfl.add", list(values), [argument((1,), i32, "y")], {"fused_activation_function": "TANH"}), [one, zero]
        )


@pytest.mark.parametrize("name", ["tfl.div", "tosa.intdiv", "stablehlo.divide"])
def test_quotients_of_the_least_integer(name: str) -> None:
    least, divisors = -(1 << 31), (1, 2, -2, 3, -7, -(1 << 31))
    values = [argument((6,), i32, f"x{i}") for i in range(2)]
    op = Op(name, list(values), [argument((6,), i32, "y")], dict(NONE) if name == "tfl.div" else {})
    (got,) = evaluate_op(op, [np.full(6, least, np.int32), np.asarray(divisors, np.int32)]) or []
    assert got.tolist() == [abs(least) // abs(d) * (-1 if d > 0 else 1) for d in divisors]
