"""Elementwise integer operators and comparisons on TOSA, on every type of the integer form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.tosa_integers import check, single

from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, i1, i8, i16, i32, i64, ui8

SMALL = Target(extensions=frozenset())


def some(storage: ScalarType, seed: int = 0, reach: int = 1 << 31) -> np.ndarray:
    """All of 8 bits in some order; ends and random values of the others."""
    rng = np.random.default_rng(seed)
    if storage == i1:
        return rng.integers(0, 2, 300).astype(bool)
    low, high = max(storage.minimum, -reach), min(storage.maximum, reach - 1)
    if storage.bits == 8:
        return rng.permutation(np.arange(low, high + 1)).astype(storage.dtype)
    ends = np.asarray([low, high, 0, -1, 1, low + 1])
    return np.concatenate([ends, rng.integers(low, high, 300, endpoint=True)]).astype(storage.dtype)


def binary(name: str) -> Callable[..., Value]:
    def body(b: Builder, x: Value, y: Value) -> Value:
        return getattr(b, name)(x, y)

    return body


@pytest.mark.parametrize("storage", [i8, ui8, i16, i32])
@pytest.mark.parametrize("name", ["maximum", "minimum", "equal", "greater", "greater_equal"])
def test_order(storage: ScalarType, name: str) -> None:
    x, y = some(storage), some(storage, 1)
    y[::3] = x[::3]
    check([(x.shape, storage), (y.shape, storage)], binary(name), [x, y])
    check([((x.size, 1), storage), (y.shape, storage)], binary(name), [x[:, None], y])


def test_equal_truth_values() -> None:
    x, y = some(i1), some(i1, 1)
    check([(x.shape, i1), (y.shape, i1)], binary("equal"), [x, y])


@pytest.mark.parametrize("target", [Target(), SMALL])
@pytest.mark.parametrize("storage", [i8, ui8, i16, i32])
@pytest.mark.parametrize("bounds", [(3, 100), (-5, 90), (0, 1 << 40), (-(1 << 40), 77)])
def test_clamp(storage: ScalarType, bounds: tuple[int, int], target: Target) -> None:
    x = some(storage)
    check([(x.shape, storage)], lambda b, v: b.clamp(b.identity(v), *bounds), [x], target=target)


@pytest.mark.parametrize("source", [i1, i8, ui8, i16, i32])
@pytest.mark.parametrize("to", [i1, i8, ui8, i16, i32])
def test_casts(source: ScalarType, to: ScalarType) -> None:
    x = some(source)
    check([(x.shape, source)], lambda b, v: b.cast(b.identity(v), to), [x])


def test_cast_of_what_is_known_to_fit_uint8() -> None:
    x = some(i32)
    check([(x.shape, i32)], lambda b, v: b.cast(b.clamp(v, 0, 255), ui8), [x])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "greater", "equal"])
@pytest.mark.parametrize("source", [i8, ui8, i16])
def test_int64_that_was_widened(name: str, source: ScalarType) -> None:
    x, y = some(source), some(source, 1)

    def body(b: Builder, v: Value, w: Value) -> Value:
        result: Value = getattr(b, name)(b.cast(v, i64), b.cast(w, i64))
        return result if result.type.storage == i1 else b.cast(result, i32)

    check([(x.shape, source), (y.shape, source)], body, [x, y])


def test_int64_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="int64"):
        lower(single([((2,), i64), ((2,), i64)], binary("add")), Target())


@pytest.mark.parametrize("shift", [1, 15, 31, 40])
def test_shifted_products(shift: int) -> None:
    reach = min(int(1.4 * 2.0 ** (15 + shift / 2)), (1 << 31) - 1)
    x, y = some(i32, 0, reach), some(i32, 1, reach)
    check([(x.shape, i32), (y.shape, i32)], lambda b, v, w: b.mul(v, w, shift=shift), [x, y])


@pytest.mark.parametrize("factor", [2, 1 << 13, 1 << 30])
def test_products_by_powers_of_two_wrap(factor: int) -> None:
    x = some(i32)
    check([(x.shape, i32)], lambda b, v: b.mul(v, b.constant(np.asarray(factor))), [x])


@pytest.mark.parametrize("storage", [i8, i16])
def test_products_that_widen(storage: ScalarType) -> None:
    x, y = some(storage), some(storage, 1)

    def body(b: Builder, v: Value, w: Value) -> Value:
        return b.emit("tosa.mul", [v, w], v.type.with_element(i32), shift=0)

    check([(x.shape, storage), (y.shape, storage)], body, [x, y], x.astype(np.int32) * y)


@pytest.mark.parametrize("storage", [i1, i8, ui8, i16, i32])
def test_select(storage: ScalarType) -> None:
    x, y = some(storage), some(storage, 1)
    condition = some(i1)[: x.size]
    x, y = x[: condition.size], y[: condition.size]
    types = [(condition.shape, i1), (x.shape, storage), (y.shape, storage)]
    check(types, lambda b, c, v, w: b.select(c, v, w), [condition, x, y])


@pytest.mark.parametrize("rounded", [True, False])
def test_right_shifts(rounded: bool) -> None:
    x, y = some(i32), np.resize(np.arange(32, dtype=np.int32), some(i32).shape)

    def body(b: Builder, v: Value, w: Value) -> Value:
        return b.arithmetic_right_shift(v, w, round=rounded)

    check([(x.shape, i32), (y.shape, i32)], body, [x, y])


@pytest.mark.parametrize("storage", [i8, ui8, i16, i32])
def test_complement(storage: ScalarType) -> None:
    x = some(storage)
    check([(x.shape, storage)], lambda b, v: b.emit("tosa.bitwise_not", [v], v.type), [x])


def test_quotients_and_leading_zeros() -> None:
    x, y = some(i32, 0, (1 << 31) - 1), some(i32, 1, 1000)
    y[y == 0] = 7
    check([(x.shape, i32), (y.shape, i32)], lambda b, v, w: b.emit("tosa.intdiv", [v, w], v.type), [x, y])
    check([(x.shape, i32)], lambda b, v: b.clz(v), [x])


@pytest.mark.parametrize("storage", [i8, ui8])
@pytest.mark.parametrize("zero", [0, 5, -128, 127, 200])
@pytest.mark.parametrize("up", [0, 7, 20])
def test_centring_is_one_rescale(storage: ScalarType, zero: int, up: int) -> None:
    x = some(storage)

    def body(b: Builder, v: Value) -> Value:
        centred = b.sub(b.cast(v, i32), b.constant(np.asarray(zero)))
        return b.mul(centred, b.constant(np.asarray(1 << up))) if up else centred

    check([(x.shape, storage)], body, [x])
    names = [op.name for op in lower(single([(x.shape, storage)], body), Target())[0].main.ops]
    within = storage.minimum <= zero <= storage.maximum
    assert not within or names == ["tosa.rescale"] * (1 if storage == i8 else 2)


@pytest.mark.parametrize("reach", [1 << 28, 1 << 31])
@pytest.mark.parametrize("to", [i8, ui8, i16])
def test_saturating_casts(to: ScalarType, reach: int) -> None:
    x = some(i32)

    def body(b: Builder, v: Value) -> Value:
        bounded = b.clamp(v, -reach, reach - 1)
        return b.cast(b.clamp(b.add(bounded, b.constant(np.asarray(0))), to.minimum, to.maximum), to)

    check([(x.shape, i32)], body, [x])
