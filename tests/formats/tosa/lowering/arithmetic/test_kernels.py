"""TFLite's arithmetic on plain integers, on TOSA: against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.harness import argument, one_op
from support.tosa_integers import check, single

import tflq
from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.dialects.inference import broadcast
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, i1, i8, i16, i32, i64, ui8

PLAIN = [i8, ui8, i16, i32]


def some(storage: ScalarType, seed: int = 0, reach: int = 1 << 31) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if storage == i1:
        return rng.integers(0, 2, 300).astype(bool)
    low, high = max(storage.minimum, -reach), min(storage.maximum, reach)
    ends = np.asarray([low, high, 0, 1, low + 1, max(low, -1)])
    return np.concatenate([ends, rng.integers(low, high, 294, endpoint=True)]).astype(storage.dtype)


def kernel(name: str, to: ScalarType | None = None, **attributes: Any) -> Callable[..., Value]:
    def body(b: Builder, *xs: Value) -> Value:
        shape = broadcast(*(x.type.shape for x in xs))
        return b.emit(f"tfl.{name}", list(xs), TensorType(shape, to or xs[-1].type.storage), **attributes)

    return body


ACTIVATIONS: dict[str, tuple[int | None, int | None]] = {
    "NONE": (None, None),
    "RELU": (0, None),
    "RELU6": (0, 6),
    "RELU_N1_TO_1": (-1, 1),
}
ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name: str, activation: str) -> None:
    reach = (1 << 15) - 1 if name == "mul" else (1 << 30) - 1
    x, y = some(i32, 0, reach), some(i32, 1, reach)
    low, high = ACTIVATIONS[activation]
    expected = ARITHMETIC[name](x, y)
    expected = expected if low is None else np.clip(expected, low, high)
    body = kernel(name, fused_activation_function=activation)
    check([(x.shape, i32), (y.shape, i32)], body, [x, y], expected)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_int16_wraps_and_broadcasts(name: str) -> None:
    x, y = some(i16)[:, None], some(i16, 1)
    expected = ARITHMETIC[name](x, y)
    check([(x.shape, i16), (y.shape, i16)], kernel(name, fused_activation_function="NONE"), [x, y], expected)


@pytest.mark.parametrize("storage", PLAIN)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes(name: str, storage: ScalarType) -> None:
    x, y = some(storage), some(storage, 1)
    check([(x.shape, storage), (y.shape, storage)], kernel(name), [x, y], getattr(np, name)(x, y))


@pytest.mark.parametrize("storage", [*PLAIN, i1])
@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_comparisons(name: str, storage: ScalarType) -> None:
    if storage == i1 and name not in ("equal", "not_equal"):
        pytest.skip("no kernel orders truth values")
    x, y = some(storage), some(storage, 1)
    y[::4] = x[::4]
    check([(x.shape, storage), (y.shape, storage)], kernel(name, i1), [x, y], getattr(np, name)(x, y))


@pytest.mark.parametrize("storage", [i8, i16, i32])
@pytest.mark.parametrize("name", ["floor_div", "floor_mod"])
def test_floor_division(name: str, storage: ScalarType) -> None:
    x, y = some(storage, 0, (1 << 31) - 1), some(storage, 1, 90)
    x, y = np.where(x == storage.minimum, 5, x).astype(x.dtype), np.where(y == 0, -3, y).astype(y.dtype)
    expected = {"floor_div": np.floor_divide, "floor_mod": np.mod}[name](x, y)
    check([(x.shape, storage), (y.shape, storage)], kernel(name), [x, y], expected)


def test_division_truncates() -> None:
    x, y = some(i32, 0, (1 << 31) - 1), some(i32, 1, 90)
    y[y == 0] = -3
    expected = np.sign(x) * np.sign(y) * (np.abs(x.astype(np.int64)) // np.abs(y))
    check([(x.shape, i32), (y.shape, i32)], kernel("div", fused_activation_function="NONE"), [x, y], expected)


@pytest.mark.parametrize("storage", [i8, i16, i32])
def test_unary(storage: ScalarType) -> None:
    x = some(storage, 0, (1 << 31) - 1)
    check([(x.shape, storage)], kernel("abs"), [x], np.abs(x))
    check([(x.shape, storage)], kernel("neg"), [x], -x)
    check([(x.shape, i32)], kernel("sign"), [x.astype(np.int32)], np.sign(x))


def test_squared_difference() -> None:
    x, y = some(i32, 0, 20000), some(i32, 1, 20000)
    check([(x.shape, i32), (y.shape, i32)], kernel("squared_difference"), [x, y], (x - y) ** 2)


def test_logical() -> None:
    x, y = some(i1), some(i1, 1)
    for name in ("logical_and", "logical_or"):
        check([(x.shape, i1), (y.shape, i1)], kernel(name), [x, y], getattr(np, name)(x, y))
    check([(x.shape, i1)], kernel("logical_not"), [x], ~x)


@pytest.mark.parametrize("storage", PLAIN)
def test_bits(storage: ScalarType) -> None:
    x, y = some(storage), some(storage, 1)
    check([(x.shape, storage), (y.shape, storage)], kernel("bitwise_xor"), [x, y], x ^ y)
    amount = np.resize(np.arange(0 if storage == ui8 else -3, 40), y.shape).astype(storage.dtype)
    expected = x >> np.clip(amount, 0, storage.bits - 1)
    check([(x.shape, storage), (y.shape, storage)], kernel("right_shift"), [x, amount], expected)


@pytest.mark.parametrize("storage", [i1, *PLAIN])
def test_selection(storage: ScalarType) -> None:
    c, x, y = some(i1), some(storage), some(storage, 1)
    types = [(c.shape, i1), (x.shape, storage), (y.shape, storage)]
    check(types, kernel("select_v2"), [c, x, y], np.where(c, x, y))
    grid = x[:, None].repeat(3, 1), y[:, None].repeat(3, 1)
    types = [(c.shape, i1), (grid[0].shape, storage), (grid[1].shape, storage)]

    def by_first_dim(b: Builder, *xs: Value) -> Value:
        return b.emit("tfl.select", list(xs), xs[1].type)

    check(types, by_first_dim, [c, *grid], np.where(c[:, None], *grid))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((3, 7, 2), 1), ((8,), 0), ((2, 1), -1), ((2, 3, 16), -1)])
def test_cumulative_sum(shape: tuple[int, ...], axis: int, reverse: bool, exclusive: bool) -> None:
    x = np.random.default_rng(0).integers(-1000, 1000, shape).astype(np.int32)
    turned = np.flip(x, axis) if reverse else x
    expected = np.cumsum(turned, axis, dtype=np.int32) - (turned if exclusive else 0)
    expected = np.flip(expected, axis) if reverse else expected

    def body(b: Builder, v: Value) -> Value:
        along = b.constant(np.asarray(axis))
        return b.emit("tfl.cumsum", [v, along], v.type, exclusive=exclusive, reverse=reverse)

    check([(shape, i32)], body, [x], expected)


@pytest.mark.parametrize("name", ["add", "add_n", "maximum", "abs"])
def test_int64_is_refused(name: str) -> None:
    count = 1 if name == "abs" else 2
    body = kernel(name, fused_activation_function="NONE")
    with pytest.raises(UnsupportedError, match="int64"):
        lower(single([((2,), i64)] * count, body), Target())


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_plain_integers_that_kernels_scale_are_refused(name: str) -> None:
    """Their scale is 0 then: the kernel makes zeros of them, or dies."""
    operands = [argument((2, 3), i8, at) for at in "xy"]
    model = one_op(f"tfl.{name}", operands, [argument((2, 3), i8, "z")], {"fused_activation_function": "NONE"}, 2)
    with pytest.raises(UnsupportedError, match="scales i8, but 'x' has no quantization parameters"):
        tflq.convert(model, format="tosa")
