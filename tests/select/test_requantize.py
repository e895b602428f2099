"""RESCALE, ext.rescale_f64 and ext.rescale_i64 as kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.lowered import assert_lowered, draw, kernels_of

from tflq.builder import Builder
from tflq.dialects.ext.rescale import RescaleF64
from tflq.ir.core import Value
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
    return b.emit("tosa.rescale", [x], TensorType(x.type.shape, to), **attributes)


def _accumulators(element: ScalarType, scale: float, channels: int, low: int, high: int, bits: int) -> np.ndarray:
    """Values that are not saturated, for the most part, and the ends of the range."""
    span = int(min(1.3 * 2**bits / scale, 2.0**46))
    near = draw(element, (*SHAPE, channels), 1, max(low, -span), min(high, span))
    far = draw(element, (*SHAPE, channels), 2, low, high)
    return np.where(np.random.default_rng(3).random(near.shape) < 0.8, near, far)


@pytest.mark.parametrize("to", [i8, ui8, i16, i32])
@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("log2", [-40, -31, -19, -14, -9, -3, 0, 4, 11])
def test_int32(to: ScalarType, channels: int, log2: int) -> None:
    mantissa, shift = _multipliers(log2, channels)
    mantissa, shift = np.where(shift > 62, 0, mantissa), np.minimum(shift, 62)
    x = _accumulators(i32, 2.0**log2, max(channels, 3), i32.minimum, i32.maximum, to.bits)
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

    assert_lowered(emit, [_accumulators(i32, 2.0**-9, 5, low, high, 8)], [i32])


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
    x = _accumulators(i64, 2.0**log2, max(channels, 3), -(1 << 47), (1 << 47) - 1, to.bits)
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


def _rescale_f64(b: Builder, x: Value, to: ScalarType, scale: np.ndarray, **more: Any) -> Value:
    return b.emit(RescaleF64, [x], TensorType(x.type.shape, to), scale=scale, **more)


@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("log2", [-24, -18, -14, -10, -5, -1])
@pytest.mark.parametrize("tie", [False, True])
def test_float64(channels: int, log2: int, tie: bool) -> None:
    scale = np.full(channels, 2.0**log2) if tie else 2.0 ** (log2 + np.random.default_rng(5).random(channels))
    for element, to, zero, reach in ((i32, i8, -3, 31), (i32, ui8, 100, 22), (i32, i16, 0, 28), (i64, i16, 0, 30)):
        low, high = -(1 << reach), (1 << reach) - 1
        x = _accumulators(element, 2.0**log2, max(channels, 3), low, high, to.bits)
        assert_lowered(
            lambda b, v, to=to, zero=zero, bounds=(low, high): _rescale_f64(
                b, v, to, scale, output_zp=zero, input_range=bounds
            ),
            [x],
            [element],
        )


@pytest.mark.parametrize("scale", [0.77, 3.7])
def test_float64_of_scales_near_one(scale: float) -> None:
    x = draw(i32, (*SHAPE, 3), low=-1000, high=1000)
    for to in (i8, i16):
        assert_lowered(
            lambda b, v, to=to: _rescale_f64(b, v, to, np.asarray([scale]), output_zp=0, input_range=(-1000, 1000)),
            [x],
            [i32],
        )


def test_float64_of_wide_sums_and_of_scales_far_apart() -> None:
    """More than 31 bits of the sum are told apart, or no one product serves all channels."""
    for scale, reach in (([2.0**-27, 1.3 * 2.0**-31], 44), ([2.0**14, 3.3 * 2.0**-20, 2.0**-30], 40), ([0.7], 46)):
        low, high, channels = -(1 << reach), 1 << reach, len(scale)
        x = np.concatenate([draw(i64, (3, 40, channels), 1, low, high), draw(i64, (3, 40, channels), 2, -1000, 1000)])
        ties = np.ceil((np.random.default_rng(4).integers(-32768, 32768, (3, 40, channels)) - 0.5) / scale)
        x = np.concatenate([x, np.clip(ties, low, high).astype(np.int64)])
        bounds = (low, high)
        assert_lowered(
            lambda b, v, s=scale, r=bounds: _rescale_f64(b, v, i16, np.asarray(s), output_zp=0, input_range=r),
            [x],
            [i64],
        )


@pytest.mark.parametrize("channels", [1, 7])
def test_the_low_word_of_scaled_int64_sums(channels: int) -> None:
    rng = np.random.default_rng(6)
    x = draw(i64, (4, 50, 7), 1, -(1 << 62), 1 << 62)
    for shifts in ([0, 1, 2, 31, 32, 33, 63], [15] * 7, [46, 40, 33, 34, 60, 62, 63], rng.integers(0, 64, 7)):
        attributes = {
            "multiplier": rng.integers(1 << 14, 1 << 15, channels).astype(np.int32),
            "shift": np.asarray(shifts[:channels], np.int8),
        }
        assert_lowered(
            lambda b, v, a=attributes: b.emit("ext.rescale_i64", [v], v.type.with_element(i32), **a), [x], [i64]
        )
