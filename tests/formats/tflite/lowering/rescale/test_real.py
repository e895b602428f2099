"""ext.rescale_f64 as kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.lowered import accumulators, assert_lowered, draw

from tflq.dialects.builder import Builder
from tflq.dialects.quant import RescaleF64
from tflq.formats.tflite.lowering import rescale_double
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32, i64, ui8

SHAPE = (2, 5, 7)


def _rescale_f64(b: Builder, x: Value, to: ScalarType, scale: np.ndarray, **more: Any) -> Value:
    return b.emit(RescaleF64, [x], TensorType(x.type.shape, to), scale=scale, **more)


@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("log2", [-24, -18, -14, -10, -5, -1])
@pytest.mark.parametrize("tie", [False, True])
def test_float64(channels: int, log2: int, tie: bool) -> None:
    scale = np.full(channels, 2.0**log2) if tie else 2.0 ** (log2 + np.random.default_rng(5).random(channels))
    for element, to, zero, reach in ((i32, i8, -3, 31), (i32, ui8, 100, 22), (i32, i16, 0, 28), (i64, i16, 0, 30)):
        low, high = -(1 << reach), (1 << reach) - 1
        x = accumulators(element, (*SHAPE, max(channels, 3)), 2.0**log2, low, high, to.bits)
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


@pytest.mark.parametrize("form", rescale_double.FORMS_64[1:], ids=lambda form: form.__name__)
def test_each_form_of_a_rescaling_in_float64_is_it(form: rescale_double.By, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alone, as a new one in the list would be."""
    monkeypatch.setattr(rescale_double, "FORMS_64", (form,))
    scale, low, high = 2.0 ** (-10 + np.random.default_rng(5).random(5)), -(1 << 20), (1 << 20) - 1
    assert_lowered(
        lambda b, v: _rescale_f64(b, v, i8, scale, output_zp=-3, input_range=(low, high)),
        [accumulators(i32, (*SHAPE, 5), 2.0**-10, low, high, 8)],
        [i32],
    )
