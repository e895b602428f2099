"""Float operators on the reference model against TFLite's kernels: how far apart they are, operator by operator.

Errors are those of the decomposition and of the reference model's own functions together. SIGMOID, TANH and POW of the
reference model are accurate to a part of 1, or of a few units in the last place, themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, interpret, one_op
from support.reference import resolver_of
from support.running import reference, validate

from tflq.base.errors import UnsupportedError
from tflq.formats.tflite.reader import read
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.formats.tosa.text import mlir_text
from tflq.ir.module import Module
from tflq.ir.types import f16, f32, i32

SHAPE = (250, 40)
NONE = {"fused_activation_function": "NONE"}


def normal(deviation: float) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.normal(0, deviation, SHAPE).astype(np.float32)


def positive(rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.normal(0, 4, SHAPE)).astype(np.float32)


def quarters(rng: np.random.Generator) -> np.ndarray:
    return (rng.integers(-40, 40, SHAPE) / 4).astype(np.float32)


def whole(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-6, 7, SHAPE).astype(np.float32)


CASES: list[tuple[str, Mapping[str, Any], list[Callable[[np.random.Generator], np.ndarray]], float, float]] = [
    # operator, options, operands, greatest relative error, greatest absolute error: one of the two must hold
    ("relu", {}, [normal(5)], 0, 0),
    ("relu6", {}, [normal(5)], 0, 0),
    ("relu_n1_to_1", {}, [normal(5)], 0, 0),
    ("relu_0_to_1", {}, [normal(5)], 0, 0),
    ("leaky_relu", {"alpha": 0.3}, [normal(1)], 0, 0),
    ("prelu", {}, [normal(1), normal(1)], 0, 0),
    ("ceil", {}, [quarters], 0, 0),
    ("floor", {}, [quarters], 0, 0),
    ("round", {}, [quarters], 0, 0),
    ("square", {}, [normal(5)], 0, 0),
    ("sign", {}, [whole], 0, 0),
    ("floor_div", {}, [normal(9), normal(1)], 0, 0),
    ("floor_mod", {}, [normal(9), normal(1)], 0, 0),
    ("exp", {}, [normal(5)], 1.2e-7, 0),
    ("log", {}, [positive], 1.2e-7, 0),
    ("sin", {}, [normal(5)], 1.2e-7, 0),
    ("cos", {}, [normal(5)], 1.2e-7, 0),
    ("rsqrt", {}, [positive], 1.2e-7, 0),
    ("sqrt", {}, [positive], 1.2e-7, 0),
    ("div", NONE, [normal(1), normal(1)], 1.2e-7, 0),
    ("hard_swish", {}, [normal(3)], 1.2e-7, 0),
    ("elu", {}, [normal(3)], 0, 6e-8),
    ("logistic", {}, [normal(5)], 2e-7, 2e-8),
    ("tanh", {}, [normal(2)], 0, 1.2e-7),
    ("gelu", {"approximate": False}, [normal(1.5)], 2e-7, 3e-7),
    ("gelu", {"approximate": True}, [normal(1.5)], 2e-7, 1e-6),
    ("atan2", {}, [normal(1), normal(1)], 2.4e-7, 0),
    ("pow", {}, [positive, normal(1)], 4e-6, 0),
    ("pow", {}, [normal(2), whole], 6e-6, 0),
    ("softmax", {"beta": 1.0}, [normal(4)], 2.4e-7, 0),
    ("softmax", {"beta": 0.7}, [normal(4)], 1e-6, 0),
    ("log_softmax", {}, [normal(4)], 1.2e-7, 0),
    ("l2_normalization", NONE, [normal(1)], 2.4e-7, 0),
    ("local_response_normalization", {"radius": 3, "bias": 1.0, "alpha": 0.1, "beta": 0.75}, [normal(2)], 3e-7, 0),
]


def model(name: str, options: Mapping[str, Any], arrays: list[np.ndarray]) -> bytes:
    operands = [argument(a.shape, f32, f"x{i}") for i, a in enumerate(arrays)]
    return one_op(f"tfl.{name}", operands, [argument(arrays[0].shape, f32, "y")], options)


def lowered(data: bytes, target: Target | None = None) -> Module:
    return lower(read(data), target or Target())[0]


def agree(got: np.ndarray, want: np.ndarray, relative: float, absolute: float) -> None:
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where((got == want) | np.isnan(want), 0, np.abs(got.astype(np.float64) - want))
        allowed = np.where(np.isfinite(want), np.maximum(relative * np.abs(want), absolute), 0)
        assert (error <= allowed).all(), f"off by {error.max()}, relatively {np.nanmax(error / np.abs(want))}"


@pytest.mark.parametrize(("name", "options", "draws", "relative", "absolute"), CASES)
def test_operator(
    name: str,
    options: Mapping[str, Any],
    draws: list[Callable[[np.random.Generator], np.ndarray]],
    relative: float,
    absolute: float,
) -> None:
    rng = np.random.default_rng(0)
    arrays = [draw(rng) for draw in draws]
    if name == "local_response_normalization":
        arrays = [a.reshape(5, 10, 10, 20) for a in arrays]
    data = model(name, options, arrays)
    got = reference(lowered(data), arrays)[0]
    agree(got, interpret(data, [arrays], resolver_of(name))[0][0], relative, absolute)


@pytest.mark.parametrize(("name", "options", "draws", "relative", "absolute"), CASES[::3])
def test_operator_is_valid(
    name: str, options: Mapping[str, Any], draws: list[Any], relative: float, absolute: float, tmp_path: Any
) -> None:
    arrays = [draw(np.random.default_rng(0)) for draw in draws]
    if name == "local_response_normalization":
        arrays = [a.reshape(5, 10, 10, 20) for a in arrays]
    target = Target(profiles=frozenset({"pro_fp"}), extensions=frozenset())
    validate(mlir_text(lowered(model(name, options, arrays), target), target), tmp_path)


@pytest.mark.parametrize("name", ["exp", "logistic", "softmax", "l2_normalization", "pow", "atan2", "floor_mod"])
def test_an_integer_target_refuses_by_name(name: str) -> None:
    count = 2 if name in ("pow", "atan2", "floor_mod") else 1
    known: dict[str, Mapping[str, Any]] = {"softmax": {"beta": 1.0}, "l2_normalization": NONE}
    options = known.get(name, {})
    data = model(name, options, [np.zeros((2, 3), np.float32)] * count)
    with pytest.raises(UnsupportedError, match=f"{name.upper()} in float needs the profile pro_fp"):
        lowered(data, Target(profiles=frozenset({"pro_int"})))


EDGES = np.asarray([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e30, -1e30], np.float32)


@pytest.mark.parametrize("name", ["relu", "relu6", "sqrt", "rsqrt", "log", "exp", "round", "sign", "floor"])
def test_ends_of_the_range(name: str) -> None:
    data = model(name, {}, [EDGES])
    want = interpret(data, [[EDGES]], resolver_of(name))[0][0]
    known = ~np.isnan(EDGES) if name.startswith("relu") else np.full(EDGES.shape, True)
    agree(reference(lowered(data), [EDGES])[0][known], want[known], 1.2e-7, 0)


@pytest.mark.parametrize("exponent", [-4, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 5, 2.25, 7])
def test_constant_exponents(exponent: float) -> None:
    x = np.asarray([0, 1, -1, 2, -2, 0.3, -0.7, 1e-3, 40, -33], np.float32)
    y = const(np.full((1,), exponent, np.float32), f32)
    data = one_op("tfl.pow", [argument(x.shape, f32), y], [argument(x.shape, f32, "y")], {})
    agree(reference(lowered(data), [x])[0], interpret(data, [[x]])[0][0], 4e-6, 0)


def test_constant_base() -> None:
    y = np.random.default_rng(0).normal(0, 3, (50,)).astype(np.float32)
    base = const(np.full((1,), 2.5, np.float32), f32)
    data = one_op("tfl.pow", [base, argument(y.shape, f32)], [argument(y.shape, f32, "y")], {})
    module = lowered(data)
    assert len(module.main.ops) == 2  # a clamp beside it
    agree(reference(module, [y])[0], interpret(data, [[y]])[0][0], 2e-6, 0)


def test_rows_of_zeros_have_no_direction() -> None:
    x = np.asarray([[0, 0, 0], [3, 4, 0], [1e-8, 0, 0]], np.float32)
    data = model("l2_normalization", NONE, [x])
    agree(reference(lowered(data), [x])[0], interpret(data, [[x]])[0][0], 2.4e-7, 0)


def test_half_precision_is_widened() -> None:
    x = argument((4,), f16)
    data = one_op("tfl.exp", [x], [argument((4,), f16, "y")], {})
    names = [op.name for op in lowered(data).ops()]
    assert names == ["tosa.cast", "tosa.exp", "tosa.cast"]


def test_integers_are_refused() -> None:
    data = one_op("tfl.square", [argument((4,), i32)], [argument((4,), i32, "y")], {})
    with pytest.raises(UnsupportedError, match="SQUARE of i32"):
        lowered(data)
