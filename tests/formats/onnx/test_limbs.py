"""Requantization by limbs and in int64, and shifts, for numbers at random and where they round."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument
from support.on_onnx import assert_same, function_of, need_onnx

from tflq.formats.onnx import rescale
from tflq.formats.onnx.limbs import limbs_of
from tflq.formats.onnx.rescale import by_limbs
from tflq.ir.types import ScalarType, i8, i16, i32

COUNT = 24
"""Channels of a rescaling, each with numbers of its own."""


def test_limbs_make_up_the_number() -> None:
    numbers = np.asarray([0, 1, -1, 2**62, -(2**62), 2**31 - 1, 2047, -2048, 12345678901], object)
    limbs = limbs_of(numbers)
    np.testing.assert_array_equal(sum(limb.astype(object) << 11 * i for i, limb in enumerate(limbs)), numbers)
    assert all((limb >= 0).all() and (limb < 2048).all() for limb in limbs[:-1])
    assert (np.abs(limbs[-1]) <= 2048).all()


@pytest.mark.parametrize("way", [by_limbs, rescale.by_integers], ids=["limbs", "int64"])
@pytest.mark.parametrize("to", [i8, i16, i32], ids=str)
@pytest.mark.parametrize("mode", ["SINGLE_ROUND", "DOUBLE_ROUND"])
def test_a_rescale_of_any_numbers(way: rescale.By, to: ScalarType, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need_onnx()
    monkeypatch.setattr(rescale, "FORMS", (way, rescale.by_integers))
    rng = np.random.default_rng(sum(map(ord, f"{way}{to}{mode}")))
    multiplier = rng.integers(1 << 30, (1 << 31) - 1, COUNT, endpoint=True).astype(np.int32)
    shift = rng.integers(31, 46, COUNT).astype(np.int8)
    options = {
        "multiplier": multiplier,
        "shift": shift,
        "input_zp": 0,
        "output_zp": 3 if to == i8 else 0,
        "rounding_mode": mode,
        "scale32": True,
        "per_channel": True,
    }
    x, y = argument((999, COUNT), i32), argument((999, COUNT), to, "y")
    function = function_of("tosa.rescale", [x], [y], options)
    levels = rng.integers(-40000, 40000, (999, COUNT))
    edges = ((2 * levels - 1) * 2.0 ** (shift - 1.0) / multiplier).clip(-(2.0**31), 2.0**31 - 1).astype(np.int64)
    near = (edges + rng.integers(-1, 2, edges.shape)).clip(i32.minimum, i32.maximum).astype(np.int32)
    ends = np.broadcast_to(np.resize([i32.minimum, i32.maximum, 0, 1, -1], (999, 1)), (999, COUNT)).astype(np.int32)
    assert_same(function, [[near], [ends], [rng.integers(i32.minimum, i32.maximum, (999, COUNT)).astype(np.int32)]])


@pytest.mark.parametrize("rounds", [False, True])
def test_shifts_of_any_numbers(rounds: bool) -> None:
    need_onnx()
    x, n, y = (argument((32 * 50,), i32, name) for name in ("x", "n", "y"))
    function = function_of("tosa.arithmetic_right_shift", [x, n], [y], {"round": rounds})
    rng = np.random.default_rng(3)
    places = np.repeat(np.arange(32, dtype=np.int32), 50)
    ends = np.resize(np.asarray([i32.minimum, i32.maximum, -1, 0, 1, 65535, -65536, 65536], np.int32), places.size)
    drawn = rng.integers(i32.minimum, i32.maximum, places.size, endpoint=True).astype(np.int32)
    assert_same(function, [[ends, places], [drawn, places]])
