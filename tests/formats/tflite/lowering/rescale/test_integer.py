"""RESCALE, ext.rescale_i64 and ext.rounding_divide_by_pot as kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.lowered import accumulators, assert_lowered, draw, kernels_of

from tflq.dialects.builder import Builder
from tflq.dialects.quant import RescaleI64, RoundingDivideByPot
from tflq.dialects.tosa.movement import Rescale
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32, i64, ui8
from tflq.numerics.fixed_point import quantize_multipliers, reduce_to_16_bits

SHAPE = (2, 5, 7)


def _multipliers(log2: float, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """int32 multipliers and right shifts of scales around 2^log2."""
    mantissa, left = quantize_multipliers(2.0 ** (log2 + np.random.default_rng(7).random(channels)))
    return mantissa, (31 - left).astype(np.int8)


def _rescale(b: Builder, x: Value, to: ScalarType, mantissa: np.ndarray, shift: np.ndarray, **more: Any) -> Value:
    attributes: dict[str, Any] = {
        "multiplier": np.atleast_1d(np.asarray(mantissa, np.int32)),
        "shift": np.atleast_1d(np.asarray(shift, np.int8)),
        "input_zp": 0,
        "output_zp": 0,
        "rounding_mode": "DOUBLE_ROUND",
        "scale32": True,
        "per_channel": np.size(mantissa) > 1,
        **more,
    }
    return b.emit(Rescale, [x], TensorType(x.type.shape, to), **attributes)


@pytest.mark.parametrize("to", [i8, ui8, i16, i32])
@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("log2", [-40, -31, -19, -14, -9, -3, 0, 4, 11])
def test_int32(to: ScalarType, channels: int, log2: int) -> None:
    mantissa, shift = _multipliers(log2, channels)
    mantissa, shift = np.where(shift > 62, 0, mantissa), np.minimum(shift, 62)
    x = accumulators(i32, (*SHAPE, max(channels, 3)), 2.0**log2, i32.minimum, i32.maximum, to.bits)
    zero = 0 if to is i32 else 7
    assert_lowered(lambda b, v: _rescale(b, v, to, mantissa, shift, output_zp=zero), [x], [i32])
    assert_lowered(lambda b, v: _rescale(b, v, to, mantissa, shift, rounding_mode="SINGLE_ROUND"), [x], [i32])


@pytest.mark.parametrize("bits", [12, 17, 24, 30])
@pytest.mark.parametrize("clamp", [None, (-5, 100), (-128, 20), (10, 50), (-128, -100), (90, 127)])
def test_accumulator_of_a_known_range(bits: int, clamp: tuple[int, int] | None) -> None:
    mantissa, shift = _multipliers(-9, 5)
    low, high = -(1 << bits), 1 << bits

    def emit(b: Builder, x: Value) -> Value:
        y = _rescale(b, x, i8, mantissa, shift, output_zp=-5, input_range=(low, high))
        return b.clamp(y, *clamp) if clamp else y

    assert_lowered(emit, [accumulators(i32, (*SHAPE, 5), 2.0**-9, low, high, 8)], [i32])


def test_a_known_range_needs_neither_int64_nor_slow_clamps() -> None:
    mantissa, shift = _multipliers(-9, 5)
    made = kernels_of(
        lambda b, x: _rescale(b, x, i8, mantissa, shift, output_zp=-5, input_range=(-(1 << 24), 1 << 24)),
        [i32],
        [(None, 4, 4, 5)],
    )
    assert "div" in made
    assert not {"bitcast", "right_shift", "maximum", "minimum"} & set(made)


@pytest.mark.parametrize(("element", "zero"), [(i8, -128), (ui8, 28), (i16, 0)])
@pytest.mark.parametrize(
    ("to", "log2"), [*((to, log2) for to in (i8, ui8, i16, i32) for log2 in (-20, -3, 0, 4)), (i8, 20), (i16, 20)]
)
def test_narrow_inputs(element: ScalarType, zero: int, to: ScalarType, log2: int) -> None:
    mantissa, shift = _multipliers(log2, 1)
    x = draw(element, (*SHAPE, 9))
    assert_lowered(lambda b, v: _rescale(b, v, to, mantissa, shift, input_zp=zero, output_zp=0), [x], [element])


def test_a_scale_of_one_moves_zero_points() -> None:
    assert_lowered(
        lambda b, v: _rescale(b, v, i8, np.asarray(1 << 30), np.asarray(30), input_zp=128, output_zp=-3),
        [draw(ui8, (*SHAPE, 9))],
        [ui8],
    )


@pytest.mark.parametrize("to", [i16, i32])
@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("log2", [-30, -16, -9, -1])
def test_int64(to: ScalarType, channels: int, log2: int) -> None:
    mantissa, shift = _multipliers(log2, channels)
    small, by = reduce_to_16_bits(mantissa), shift - 16
    x = accumulators(i64, (*SHAPE, max(channels, 3)), 2.0**log2, -(1 << 47), (1 << 47) - 1, to.bits)
    assert_lowered(lambda b, v: _rescale(b, v, to, small, by, rounding_mode="SINGLE_ROUND", scale32=False), [x], [i64])


def test_odd_multipliers() -> None:
    """Zero, the least and the largest shift, a negative one."""
    x = draw(i32, (*SHAPE, 5))
    mantissa, shift = np.asarray([0, 1 << 30, (1 << 31) - 1, (1 << 30) + 5, 1 << 30]), np.asarray([31, 62, 33, 2, 31])
    for to in (i8, i32):
        assert_lowered(lambda b, v, to=to: _rescale(b, v, to, mantissa, shift), [x], [i32])
    assert_lowered(lambda b, v: _rescale(b, v, i16, np.asarray([-(1 << 30) - 7]), np.asarray([40])), [x], [i32])


def test_five_dims() -> None:
    mantissa, shift = _multipliers(-19, 5)
    x = draw(i32, (1, 2, 3, 4, 5))
    assert_lowered(lambda b, v: _rescale(b, v, i32, mantissa, shift), [x], [i32])


@pytest.mark.parametrize("channels", [1, 7])
def test_the_low_word_of_scaled_int64_sums(channels: int) -> None:
    rng = np.random.default_rng(6)
    x = draw(i64, (4, 50, 7), 1, -(1 << 62), 1 << 62)
    for shifts in ([0, 1, 2, 31, 32, 33, 63], [15] * 7, [46, 40, 33, 34, 60, 62, 63], rng.integers(0, 64, 7)):
        attributes = {
            "multiplier": rng.integers(1 << 14, 1 << 15, channels).astype(np.int32),
            "shift": np.asarray(shifts[:channels], np.int8),
        }
        assert_lowered(lambda b, v, a=attributes: b.emit(RescaleI64, [v], v.type.with_element(i32), **a), [x], [i64])


@pytest.mark.parametrize("exponent", [1, 10, 20])
def test_rounding_half_away_from_zero(exponent: int) -> None:
    halves = (np.arange(-8, 8) << exponent - 1).astype(np.int64)
    x = np.concatenate([halves - 1, halves, halves + 1, draw(i64, (40,), 1, -(2**14) << exponent, 2**14 << exponent)])

    def divided(b: Builder, v: Value) -> Value:
        return b.emit(RoundingDivideByPot, [v], v.type.with_element(i16), exponent=exponent)

    assert_lowered(divided, [x.reshape(8, 11)], [i64])


@pytest.mark.parametrize("zero", [0, 100_000, -100_000])
@pytest.mark.parametrize("to", [i8, i16])
def test_a_noted_range_is_that_of_the_operand_less_its_zero_point(zero: int, to: ScalarType) -> None:
    bounds = zero - 3000, zero + 3000
    assert_lowered(
        lambda b, v: b.rescale(v, (1518500250, -1), to, input_zp=zero, output_zp=7, input_range=bounds),
        [draw(i32, (2, 50, 3), 0, bounds[0] + zero, bounds[1] + zero)],
        [i32],
    )
