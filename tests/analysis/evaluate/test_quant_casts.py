"""Reals, fixed point and affine values: what the casts of quantization compute, and what holds of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.dialects.quant import Dcast, Qcast
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    AnyQuantizedType,
    CalibratedQuantizedType,
    ScalarType,
    TensorType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f32,
    i4,
    i8,
    i16,
    ui8,
)
from tflq.tools.quantize.regions.ranges import Range, parameters

STORAGES = [i8, ui8, i16]
SCALES = st.floats(2.0**-20, 2.0**10, width=32)
REALS = st.lists(st.floats(-(2.0**20), 2.0**20, width=32), min_size=1, max_size=50)


@st.composite
def types(draw: st.DrawFn) -> UniformQuantizedType:
    """A quantized type whose zero point is in its range."""
    storage = draw(st.sampled_from(STORAGES))
    zero_point = draw(st.integers(storage.minimum, storage.maximum))
    return UniformQuantizedType.of(storage, draw(SCALES), zero_point)


def cast(kind: type[Op], array: np.ndarray, before: object, after: object) -> np.ndarray:
    operand, result = (Value(TensorType(array.shape, element)) for element in (before, after))  # type: ignore[arg-type]
    (made,) = evaluate_op(Op(kind.op_name, [operand], [result], {}), [array])  # type: ignore[attr-defined,misc]
    return made


def stored(reals: np.ndarray, kind: UniformQuantizedType) -> np.ndarray:
    return cast(Qcast, reals, f32, kind)


def real(affine: np.ndarray, kind: UniformQuantizedType) -> np.ndarray:
    return cast(Dcast, affine, kind, f32)


@given(types(), REALS)
def test_reals_become_affine_values_by_the_formula(kind: UniformQuantizedType, values: list[float]) -> None:
    """clamp(round(real / scale) + zero point): the quotient is a Single, its rounding, half to even, an integer."""
    reals = np.array(values, np.float32)
    quotients = [int(np.rint(x / np.float32(kind.scale))) + kind.zero_point for x in reals]
    wanted = [min(max(q, kind.storage_min), kind.storage_max) for q in quotients]
    assert stored(reals, kind).tolist() == wanted


@given(types())
def test_affine_values_become_reals_by_the_formula(kind: UniformQuantizedType) -> None:
    """float(affine - zero point) · scale, in Singles."""
    affine = np.arange(kind.storage_min, kind.storage_max + 1).astype(kind.storage.dtype)
    differences = np.array([int(a) - kind.zero_point for a in affine], np.float32)
    np.testing.assert_array_equal(real(affine, kind), differences * np.float32(kind.scale))


@given(types(), st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_a_real_in_range_is_off_by_half_a_scale_at_most(kind: UniformQuantizedType, places: list[float]) -> None:
    low, high = ((end - kind.zero_point) * float(kind.scale) for end in (kind.storage_min, kind.storage_max))
    reals = np.array([low + place * (high - low) for place in places], np.float32)
    errors = np.abs(real(stored(reals, kind), kind).astype(np.float64) - reals)
    rounding = np.abs(reals) * 2.0**-23  # of the real itself, of the quotient and of the product
    assert (errors <= float(kind.scale) / 2 + 2 * rounding).all()


POWERS = st.integers(-8, 8).map(lambda exponent: 2.0**exponent)  # products and sums of Singles are exact


@given(POWERS, POWERS, st.integers(-127, 127), st.integers(-127, 127))
def test_scaled_values_multiply_as_integers_and_add_with_one_scale(left: float, right: float, a: int, b: int) -> None:
    x, y = (UniformQuantizedType.of(i16, scale) for scale in (left, right))
    product = UniformQuantizedType.of(i16, left * right)
    first, second, both, total = (np.array([v], np.int16) for v in (a, b, a * b, a + b))
    assert real(both, product) == real(first, x) * real(second, y)
    assert real(total, x) == real(first, x) + real(second, x)


@given(st.integers(-127, 127), st.integers(-127, 127), st.integers(-20, 20).filter(bool))
def test_affine_values_must_lose_their_zero_point_first(a: int, b: int, zero_point: int) -> None:
    affine, fixed = UniformQuantizedType.of(i16, 0.5, zero_point), UniformQuantizedType.of(i16, 0.5)
    first, second = np.array([a], np.int16), np.array([b], np.int16)
    wanted = real(first, affine) + real(second, affine)
    assert real(first + second, affine) != wanted
    assert real(first - zero_point + second - zero_point, fixed) == wanted


@given(types())
def test_the_real_zero_is_exact(kind: UniformQuantizedType) -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    assert stored(zeros, kind).tolist() == [kind.zero_point] * 2
    assert real(stored(zeros, kind), kind).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("storage", STORAGES, ids=str)
@given(ends=st.tuples(st.floats(-100, 100, width=32), st.floats(-100, 100, width=32)))
def test_a_range_is_widened_to_contain_zero(storage: ScalarType, ends: tuple[float, float]) -> None:
    low, high = sorted(ends)
    seen = CalibratedQuantizedType.of(f32, low, max(high, low + 0.125))
    kind = parameters(Range.of(seen), AnyQuantizedType(storage, f32, storage.minimum, storage.maximum), None)
    assert isinstance(kind, UniformQuantizedType)
    assert kind.storage_min <= kind.zero_point <= kind.storage_max
    assert real(stored(np.zeros(1, np.float32), kind), kind).tolist() == [0.0]


def test_blocks_become_reals_by_the_scale_of_each() -> None:
    rng = np.random.default_rng(0)
    affine, scales = rng.integers(-8, 8, (3, 64)).astype(np.int8), rng.uniform(1e-3, 1, (3, 2)).astype(np.float32)
    kind = UniformQuantizedSubChannelType.of(i4, (0, 1), (1, 32), scales)
    made = cast(Dcast, affine, kind, f32)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, affine.astype(np.float32) * np.repeat(scales, 32, axis=1))
