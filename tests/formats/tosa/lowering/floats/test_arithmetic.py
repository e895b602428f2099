"""Quotients and remainders of floats where a / b is near a whole number, and fused activations."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import Refused
from tflq.formats.tosa.lowering.context import Tosa
from tflq.formats.tosa.lowering.floats import float_activation, float_div, float_floor_div, float_floor_mod, float_sign
from tflq.formats.tosa.rules import Target
from tflq.ir.module import Function
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, f32


def compute(function: object, *arrays: np.ndarray) -> np.ndarray:
    t = Tosa(Target(), lambda *_: None)
    operands = [Value(TensorType(a.shape, f32), f"x{i}") for i, a in enumerate(arrays)]
    result = function(t, *operands)  # type: ignore[operator]
    with np.errstate(all="ignore"):
        values = evaluate_function(
            Function("main", operands, [result], t.ops), dict(zip(operands, arrays, strict=True))
        )
    return values[result]


def near_whole(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose quotient is a whole number, or as near to one as floats can be."""
    rng = np.random.default_rng(seed)
    b = (rng.normal(0, 1, 100_000) * 10.0 ** rng.uniform(-6, 6, 100_000)).astype(np.float32)
    a = (b.astype(np.float64) * rng.integers(-(2**21), 2**21, b.size)).astype(np.float32)
    return np.nextafter(a, (a * rng.choice([-2, 1, 2], a.size)).astype(np.float32)), b


@pytest.mark.parametrize("seed", range(4))
def test_floor_quotient(seed: int) -> None:
    a, b = near_whole(seed)
    want = np.floor(a.astype(np.float64) / b).astype(np.float32)
    np.testing.assert_array_equal(compute(float_floor_div, a, b), want)


@pytest.mark.parametrize("seed", range(4))
def test_floor_remainder(seed: int) -> None:
    a, b = near_whole(seed)
    rest = np.fmod(a, b)
    want = np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)
    np.testing.assert_array_equal(compute(float_floor_mod, a, b), want)


def test_small_dividends() -> None:
    a, b = np.asarray([-1e-30, 1e-30, -1e-8, 0], np.float32), np.full(4, 0.5, np.float32)
    np.testing.assert_array_equal(compute(float_floor_div, a, b), [-1, 0, -1, 0])
    np.testing.assert_array_equal(compute(float_floor_mod, a, b), np.asarray([0.5, 1e-30, 0.5, 0], np.float32))


def test_quotient_within_two_units() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 100, (2, 1_000_000)).astype(np.float32)
    want = (a / b).astype(np.float64)
    assert (np.abs(compute(float_div, a, b) - want) <= 2 * np.spacing(np.abs(a / b))).all()


def test_sign() -> None:
    x = np.asarray([2.5, -3, 0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    np.testing.assert_array_equal(compute(float_sign, x), np.asarray([1, -1, 0, 1, -1, np.nan, 1], np.float32))


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("NONE", [-9, -0.5, 0.5, 9]),
        ("RELU", [0, 0, 0.5, 9]),
        ("RELU6", [0, 0, 0.5, 6]),
        ("RELU_N1_TO_1", [-1, -0.5, 0.5, 1]),
        ("TANH", np.tanh([-9, -0.5, 0.5, 9])),
    ],
)
def test_fused_activation(name: str, want: list[float]) -> None:
    x = np.asarray([-9, -0.5, 0.5, 9], np.float32)
    got = compute(lambda t, v: t.identity(float_activation(t, v, name)), x)
    np.testing.assert_allclose(got, np.asarray(want), rtol=1e-7)


def test_unknown_activation_is_refused() -> None:
    with pytest.raises(Refused, match="SIGN_BIT"):
        compute(lambda t, v: float_activation(t, v, "SIGN_BIT"), np.zeros(3, np.float32))
