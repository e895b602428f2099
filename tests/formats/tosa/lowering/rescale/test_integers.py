"""RESCALE of the integer form on TOSA's."""

from __future__ import annotations

import numpy as np
import pytest
from support.tosa_integers import Body, check, single

from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, i8, i16, i32, i64, ui8
from tflq.numerics.fixed_point import quantize_multiplier, quantize_multipliers

SINGLE = Target(extensions=frozenset({"int16", "int4"}))
TARGETS = [Target(), SINGLE]


def values(storage: ScalarType, count: int = 4000, reach: int | None = None) -> np.ndarray:
    """All of 8 bits; ends, neighbours of zero, and random ones of the others."""
    if storage.bits == 8:
        return np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype)
    low, high = (storage.minimum, storage.maximum) if reach is None else (-reach, reach)
    rng = np.random.default_rng(7)
    wide = rng.integers(low, high, count, endpoint=True)
    near = rng.integers(-5000, 5000, count)
    ends = np.asarray([low, low + 1, high - 1, high, -1, 0, 1])
    return np.concatenate([wide, near, ends]).astype(storage.dtype)


def rescaled(real: float, to: ScalarType, reach: int | None = None, input_zp: int = 0, output_zp: int = 0) -> Body:
    def body(b: Builder, x: Value) -> Value:
        y = b.rescale(x, quantize_multiplier(real), to, input_zp=input_zp, output_zp=output_zp)
        if reach is not None and y.producer is not None:
            y.producer.attributes["input_range"] = (-reach, reach)
        return y

    return body


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", [i8, ui8])
@pytest.mark.parametrize("to", [i8, ui8, i16, i32])
@pytest.mark.parametrize("real", [1.0, 0.37, 0.0021, 1.9, 37.5, 2.0**-31, 0.0])
def test_from_8_bits(source: ScalarType, to: ScalarType, real: float, target: Target) -> None:
    x = values(source)
    zero = {i8: -7, ui8: 130, i16: 0, i32: 0}
    body = rescaled(real, to, input_zp=zero[source], output_zp=zero[to])
    check([(x.shape, source)], body, [x], target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("to", [i8, ui8, i16, i32])
@pytest.mark.parametrize("real", [0.99, 0.5, 0.37, 0.0021, 2.0**-20, 1.7, 3.0, 900.0])
def test_from_int32(to: ScalarType, real: float, target: Target) -> None:
    reach = min((1 << 31) - 1, int(((1 << 30) - 1) / real))
    x = values(i32, reach=reach)
    check([(x.shape, i32)], rescaled(real, to, reach), [x], target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("to", [i8, i16, i32])
@pytest.mark.parametrize("zero", [0, 5, -100])
def test_zero_points_of_wide_types(to: ScalarType, zero: int, target: Target) -> None:
    x = values(i16)
    check([(x.shape, i16)], rescaled(0.73, to, input_zp=-zero, output_zp=zero), [x], target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("to", [i8, ui8, i16])
def test_per_channel(to: ScalarType, target: Target) -> None:
    scales = np.asarray([0.3, 0.007, 1e-5, 0.9, 1.3, 2.0**-9])
    reach = 1 << 27
    x = values(i32, 6000, reach=reach)
    x = np.resize(x, (len(x) // 6, 6))

    def body(b: Builder, v: Value) -> Value:
        y = b.rescale(v, quantize_multipliers(scales), to, output_zp=3 if to != i16 else 0)
        assert y.producer is not None
        y.producer.attributes["input_range"] = (-reach, reach)
        return y

    check([(x.shape, i32)], body, [x], target=target)


def test_left_shift_of_a_saturated_result() -> None:
    """Values that TOSA's RESCALE does not take are bounded first."""
    x = values(i32)
    for to in (i8, i16):
        check([(x.shape, i32)], rescaled(40.0, to), [x])


@pytest.mark.parametrize("real", [0.004, 0.7, 2.0**-13])
def test_widened_int32(real: float) -> None:
    x = values(i32, reach=1 << 30)

    def body(b: Builder, v: Value) -> Value:
        return b.rescale(b.cast(v, i64), quantize_multiplier(real), i32)

    check([(x.shape, i32)], body, [x])


@pytest.mark.parametrize("real", [0.9 * 2.0**-13, 2.0**-16])
def test_product_of_int64(real: float) -> None:
    x, y = values(i32, reach=1 << 28), values(i16)

    def body(b: Builder, v: Value, w: Value) -> Value:
        product = b.mul(b.cast(v, i64), b.cast(b.cast(w, i32), i64))
        result = b.rescale(product, quantize_multiplier(real), i16)
        assert result.producer is not None
        result.producer.attributes["input_range"] = (-(1 << 43), 1 << 43)
        return result

    check([(x.shape, i32), (y.shape, i16)], body, [x, np.resize(y, x.shape)])


def test_shift_that_has_no_form_is_refused() -> None:
    def body(b: Builder, v: Value) -> Value:
        return b.rescale(v, quantize_multipliers(np.asarray([900.0, 0.2])), i32)

    with pytest.raises(UnsupportedError, match="may leave int32"):
        lower(single([((3, 2), i32)], body), Target())


@pytest.mark.parametrize("left", [-8, 0, 4, 11])
@pytest.mark.parametrize("zero", [0, 1_000_000, -1_000_000])
def test_a_noted_range_is_that_of_the_operand_less_its_zero_point(zero: int, left: int) -> None:
    def body(b: Builder, x: Value) -> Value:
        return b.rescale(x, (1518500250, left), i32, input_zp=zero, input_range=(zero - 9, zero + 9))

    check([((1, 19), i32)], body, [np.arange(2 * zero - 9, 2 * zero + 10, dtype=np.int32)[None]])
