"""The reference set: the factors that TFLite's kernels compute, by types."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.ir.types import ScalarType, UniformQuantizedType, i4, i8, i16, ui8
from tflq.numerics.convolution import legacy_scale
from tflq.numerics.fixed_point import multiply, quantize_multiplier
from tflq.numerics.kernel_sets import REFERENCE
from tflq.numerics.requantize.scaling import Float64, QuantizedMultiplier

WEIGHTS = np.asarray([0.1, 0.3], np.float32)
ONE = np.asarray([0.1], np.float32)


def of(storage: ScalarType, scale: float = 0.2, zero_point: int = 0) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, scale, zero_point)


def test_convolutions_scale_by_products_in_double_but_of_uint8() -> None:
    factor = REFERENCE.convolution(of(i8, 0.7), WEIGHTS, of(i8, 0.9))
    assert isinstance(factor, QuantizedMultiplier)
    wide = [float(np.float32(v)) for v in (0.7, 0.1, 0.9)]
    assert factor.scale[0] == wide[0] * wide[1] / wide[2]
    legacy = REFERENCE.convolution(of(ui8, 0.7), ONE, of(ui8, 0.9))
    assert isinstance(legacy, QuantizedMultiplier)
    assert legacy.scale.tolist() == [legacy_scale(0.7, float(ONE[0]), 0.9)]


@pytest.mark.parametrize(
    ("x", "weights", "y", "scales", "kind"),
    [
        (i8, i8, i8, WEIGHTS, Float64),
        (i8, i4, i8, ONE, Float64),
        (i16, i8, i16, WEIGHTS, Float64),
        (ui8, ui8, ui8, ONE, Float64),
        (ui8, ui8, i16, ONE, Float64),
        (ui8, ui8, ui8, WEIGHTS, None),
        (ui8, ui8, i8, ONE, None),
        (i16, i16, i16, WEIGHTS, QuantizedMultiplier),
        (i8, ui8, i8, ONE, None),
        (i16, i8, i8, ONE, None),
    ],
)
def test_fully_connected_rounds_once_but_of_int16(
    x: ScalarType, weights: ScalarType, y: ScalarType, scales: np.ndarray, kind: type | None
) -> None:
    factor = REFERENCE.fully_connected(of(x), weights, scales, of(y))
    assert factor is None if kind is None else type(factor) is kind


def test_no_kernel_takes_int16_with_a_zero_point() -> None:
    assert REFERENCE.fully_connected(of(i16, zero_point=3), i8, ONE, of(i16)) is None


def test_a_factor_is_applied_as_the_kernel_does() -> None:
    factor = QuantizedMultiplier(np.asarray([0.0123, 0.75, 3.5]))
    x = np.random.default_rng(0).integers(-(1 << 24), 1 << 24, (1000, 3)).astype(np.int32)
    mantissa, left = (np.asarray(v) for v in zip(*map(quantize_multiplier, factor.scale), strict=True))
    np.testing.assert_array_equal(factor.apply(x), multiply(x, mantissa, left))
    wide = x.astype(np.int64) << 12
    reduced = (mantissa.astype(np.int64) + (1 << 15)) >> 16
    np.testing.assert_array_equal(
        factor.apply(wide)[:, 0], ((wide * reduced + (1 << (14 - left))) >> (15 - left))[:, 0]
    )


def test_absolute_values_of_one_scale_are_not_scaled() -> None:
    assert REFERENCE.absolute(of(i8, 0.0), of(i8, 0.0)) == quantize_multiplier(1.0)
    assert REFERENCE.relu(of(i8, 0.5), of(i8, 0.25)) == quantize_multiplier(2.0)
