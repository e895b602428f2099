"""Float operators of TOSA as TFLite builtins: within a few units in the last place of evaluator and reference model."""

from __future__ import annotations

import numpy as np
import pytest
from support.lowered import draw
from support.raised import assert_same, one_op

from tflq.base.errors import UnsupportedError
from tflq.formats.tosa.raising import raise_module
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value
from tflq.ir.types import ScalarType, TensorType, bf16, f16, f32, i1, i8, i16, i32

SHAPE = (2, 3, 5)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, shape).astype(np.float32)


@pytest.mark.parametrize("name", ["ceil", "floor", "abs"])
def test_whole_numbers(name: str) -> None:
    x = np.concatenate([normal(20), [0.5, -0.5, 1e9, -1e9, 0, 7]]).astype(np.float32)
    assert_same(one_op(name, [x], (x.shape, f32)), [x])


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sin", "cos"])
def test_functions(name: str) -> None:
    x = normal(*SHAPE)
    assert_same(one_op(name, [x], (SHAPE, f32)), [x], ulps=4)


@pytest.mark.parametrize("name", ["log", "rsqrt", "reciprocal"])
def test_functions_of_positive_numbers(name: str) -> None:
    x = np.abs(normal(*SHAPE)) + np.float32(0.01)
    assert_same(one_op(name, [x], (SHAPE, f32)), [x], ulps=4)


def test_erf() -> None:
    x = np.concatenate([normal(1000), np.linspace(-5, 5, 1001), [0, 1, -1]]).astype(np.float32)
    assert_same(one_op("erf", [x], (x.shape, f32)), [x], ulps=3)


def test_negate() -> None:
    x = normal(*SHAPE)
    assert_same(one_op("negate", [x], (SHAPE, f32), {"input1_zp": 0, "output_zp": 0}), [x])


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "maximum", "minimum", "pow", "greater", "greater_equal", "equal"]
)
def test_two_operands(name: str) -> None:
    arrays = [np.abs(normal(*SHAPE)), normal(2, 1, 5, seed=1)]
    result = i1 if name in ("greater", "greater_equal", "equal") else f32
    attributes = {"shift": 0} if name == "mul" else {}
    assert_same(one_op(name, arrays, (SHAPE, result), attributes), arrays, ulps=4 if name == "pow" else 0)


LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("low", "high", "builtins"),
    [
        (-1.0, 2.5, ["maximum", "minimum"]),
        (0.0, 6.0, ["relu6"]),
        (0.0, LARGEST, ["relu"]),
        (0.0, float("inf"), ["relu"]),
        (-LARGEST, 1.0, ["minimum"]),
    ],
)
def test_clamp(low: float, high: float, builtins: list[str]) -> None:
    x = normal(*SHAPE)
    module = one_op("clamp", [x], (SHAPE, f32), {"min_val": low, "max_val": high})
    assert assert_same(module, [x]) == builtins


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_max", "reduce_min", "reduce_product"])
def test_reductions(name: str) -> None:
    x = normal(*SHAPE)
    assert_same(one_op(name, [x], ((2, 1, 5), f32), {"axis": 1}), [x], ulps=4)


HALVES = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, 127.5, 4194304.5, -4194303.5, 8388607.0, 16777218.0, 3e9, -3e9, 1e20]


@pytest.mark.parametrize("element", [i8, i16, i32], ids=str)
def test_cast_to_integers_rounds_half_to_even_and_saturates(element: ScalarType) -> None:
    x = np.concatenate([normal(20) * 100, HALVES]).astype(np.float32)
    assert_same(one_op("cast", [x], (x.shape, element)), [x])


def test_cast_from_integers() -> None:
    for element in (i8, i16, i32):
        x = draw(element, SHAPE)
        assert_same(one_op("cast", [x], (SHAPE, f32)), [x])


@pytest.mark.parametrize("element", [f16, bf16], ids=str)
def test_other_floats_are_refused_by_name(element: ScalarType) -> None:
    x, y = (Value(TensorType((4,), element), name) for name in "xy")
    op = Op("tosa.exp", [x], [y], {}, Location("a.tosa", 0, 3, "EXP", "y"))
    with pytest.raises(UnsupportedError, match="exp does not compute in"):
        raise_module(Module([Function("main", [x], [y], [op])]))


def test_what_has_no_builtin_is_refused_by_name() -> None:
    x, y, z = (Value(TensorType((1, 4, 4), f32), name) for name in "xyz")
    op = Op("tosa.rfft2d", [x], [y, z], {}, Location("a.tosa", 0, 3, "RFFT2D", "y"))
    with pytest.raises(UnsupportedError, match=r"tosa\.rfft2d"):
        raise_module(Module([Function("main", [x], [y, z], [op])]))
