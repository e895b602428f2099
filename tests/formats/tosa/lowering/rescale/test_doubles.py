"""Requantization by a double, and halves away from zero, on TOSA."""

from __future__ import annotations

import numpy as np
import pytest
from support.tosa_integers import Body, check, lowered_outputs, single

from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32, i64, ui8
from tflq.numerics.requantize.staircase import float_thresholds
from tflq.transforms import pass_manager


def near_thresholds(scale: np.ndarray, to: ScalarType, zero: int, reach: int) -> np.ndarray:
    """int32 [n, C]: every threshold of each channel, its neighbours, and random values."""
    levels = np.arange(to.minimum - zero + 1, to.maximum - zero + 1)
    if to.bits > 8:
        levels = np.unique(np.concatenate([levels[::97], levels[-40:], levels[:40], np.arange(-40, 40)]))
    thresholds = float_thresholds(levels, scale)
    rng = np.random.default_rng(3)
    wide = rng.integers(-reach, reach, (500, scale.size), endpoint=True)
    ends = np.broadcast_to([[-reach], [reach], [0]], (3, scale.size))
    x = np.concatenate([thresholds, thresholds - 1, thresholds + 1, wide, ends])
    return np.clip(x, -reach, reach).astype(np.int32)


def real(scale: np.ndarray, to: ScalarType, zero: int, reach: int | None) -> Body:
    def body(b: Builder, x: Value) -> Value:
        bounds = {} if reach is None else {"input_range": (-reach, reach)}
        return b.emit("ext.rescale_f64", [x], x.type.with_element(to), scale=scale, output_zp=zero, **bounds)

    return body


SCALES = {
    "per layer": np.asarray([0.00123]),
    "halves": np.asarray([2.0**-8, 3 * 2.0**-10, 2.0**-9, 5 * 2.0**-12]),
    "channels": 2.0 ** np.linspace(-15, -7, 40) * 0.987,
    "above a half": np.asarray([0.77, 1.0, 1.9, 0.5]),
}


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize(("to", "zero"), [(i8, 0), (i8, -128), (i8, 5), (ui8, 128), (ui8, 3)])
@pytest.mark.parametrize("known", [True, False])
def test_to_8_bits(scale: np.ndarray, to: ScalarType, zero: int, known: bool) -> None:
    reach = int(min(2000 / scale.min(), 1 << 30))
    x = near_thresholds(scale, to, zero, reach)
    check([(x.shape, i32)], real(scale, to, zero, reach if known else None), [x])


@pytest.mark.parametrize("exponent", [-12, -20, -26])
def test_to_int16(exponent: int) -> None:
    scale = np.asarray([0.9, 1.0, 0.75, 0.61]) * 2.0**exponent
    reach = int(min(40000 / scale.min(), (1 << 31) - 1))
    x = near_thresholds(scale, i16, 0, reach)
    check([(x.shape, i32)], real(scale, i16, 0, reach), [x])


def test_uint8_layer_to_int16() -> None:
    scale = np.asarray([0.0371])
    x = near_thresholds(scale, i16, 0, 1 << 22)
    check([(x.shape, i32)], real(scale, i16, 0, 1 << 22), [x])


def test_a_search_in_32_channels_is_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = np.random.default_rng(0).uniform(0.001, 0.004, 32)
    module = single([((4, 32), i32)], real(scale, i16, 0, 1 << 27))
    monkeypatch.setattr(pass_manager, "_SEARCHES", 1)
    lower(module, Target())
    monkeypatch.setattr(pass_manager, "_SEARCHES", 0)
    with pytest.raises(UnsupportedError, match="searches for one would take longer than a file of this size may"):
        lower(module, Target())


@pytest.mark.parametrize("sign", [-1, 1])
def test_sums_that_are_all_beyond_the_result(sign: int) -> None:
    """What they are limited to is not among them."""
    least, most = sorted((sign * 1126125854, sign * 1126385949))

    def body(b: Builder, x: Value) -> Value:
        options = {"scale": np.asarray([0.7838]), "output_zp": 0, "input_range": (least, most)}
        return b.emit("ext.rescale_f64", [x], x.type.with_element(i16), **options)

    x = np.linspace(least, most, 50).astype(np.int32)[:, None]
    check([(x.shape, i32)], body, [x])


def pot(exponent: int) -> Body:
    def body(b: Builder, x: Value) -> Value:
        one = b.emit(
            "tosa.resize",
            [x],
            TensorType((1, 1, x.type.shape[2], 1), i64),  # type: ignore[index]
            scale=(1, 1, 1, 1),
            offset=(0, 0),
            border=(0, 0),
            mode="BILINEAR",
        )
        return b.emit("ext.rounding_divide_by_pot", [one], one.type.with_element(i16), exponent=exponent)

    return body


@pytest.mark.parametrize("exponent", [0, 1, 4, 15, 16])
def test_halves_away_from_zero(exponent: int) -> None:
    x = np.concatenate([np.arange(-3000, 3000), [-32768, 32767, -32767]]).astype(np.int16)
    check([((1, 1, x.size, 1), i16)], pot(exponent), [x.reshape(1, 1, -1, 1)])


def test_wide_halves_are_refused() -> None:
    def body(b: Builder, x: Value) -> Value:
        return b.emit("ext.rounding_divide_by_pot", [b.cast(x, i64)], x.type, exponent=17)

    with pytest.raises(UnsupportedError, match="rounded away from zero"):
        lower(single([((4,), i16)], body), Target())


def product(scale: float, reach: int) -> Body:
    """int16 by int16, summed in 64 bits and scaled."""

    def body(b: Builder, x: Value, y: Value) -> Value:
        sums = b.emit("tosa.matmul", [x, y], TensorType((1, 40, 40), i64), a_zp=0, b_zp=0)
        return real(np.asarray([scale]), i16, 0, reach)(b, sums)

    return body


def test_sums_of_48_bits() -> None:
    """Within int32, exactly; beyond it, one count off near the middle between two results, and the report says so."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-32768, 32767, shape).astype(np.int16) for shape in ((1, 40, 3), (1, 3, 40)))
    types = [(x.shape, i16), (y.shape, i16)]
    small = (x // 8).astype(np.int16)
    check(types, product(2.0**-13 * 0.77, 3 << 27), [small, y])
    module = single(types, product(2.0**-18 * 0.77, 3 << 30))
    _, notes = lower(module, Target())
    assert [("one count off" in note.text, note.exception) for note in notes] == [(True, "inexact")]
    exact = np.rint((x.astype(np.int64) @ y).astype(np.float64) * 2.0**-18 * 0.77)
    assert np.abs(lowered_outputs(module, [x, y]) - exact).max() <= 1


def test_only_channels_beyond_int32_lose_bits() -> None:
    """A channel without weights, whose bias of 35 bits gives 0, beside one whose sums are exact."""
    rng = np.random.default_rng(0)
    weights, bias = np.zeros((2, 1, 1, 8), np.int8), np.asarray([-(1 << 34), 77], np.int64)
    weights[1] = rng.integers(-127, 128, 8)
    scale = np.asarray([2.0**-36, 0.00175])

    def body(b: Builder, x: Value) -> Value:
        sums = b.conv2d(x, b.constant(weights, i8), b.constant(bias, i64), (2000, 1, 1, 2), acc=i64)
        return b.emit("ext.rescale_f64", [sums], sums.type.with_element(i16), scale=scale, output_zp=0)

    x = rng.integers(-32768, 32768, (2000, 1, 1, 8)).astype(np.int16)
    check([(x.shape, i16)], body, [x])
    _, notes = lower(single([(x.shape, i16)], body), Target())
    assert notes == []
