"""Factors: their thresholds are where the kernel's own arithmetic climbs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.fixed_point import multiply, quantize_multipliers
from tflq.numerics.requantize.scaling import Bounds, Factor, FixedPoint, Float64, Range, Scaling

LEVELS = np.arange(-300, 301)


@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["once", "twice", "double", "tie"]))
@settings(max_examples=60, deadline=None)
def test_thresholds_are_where_a_factor_climbs(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    scales = 2.0 ** (rng.integers(-12, 2, 6) if kind == "tie" else rng.uniform(-12, 1, 6))
    mantissa, left = quantize_multipliers(scales)
    fixed = FixedPoint(mantissa.astype(np.int64), 31 - left.astype(np.int64), kind == "twice")
    factor: Factor = Float64(scales) if kind == "double" else fixed
    thresholds = factor.thresholds(LEVELS)
    assert (factor.apply(thresholds) >= LEVELS[:, None]).all()
    assert (factor.apply(thresholds - 1) < LEVELS[:, None]).all()
    np.testing.assert_allclose(factor.slope, scales, rtol=1e-8)


def test_a_factor_of_fixed_point_is_the_kernels_multiplication() -> None:
    rng = np.random.default_rng(0)
    mantissa, left = quantize_multipliers(2.0 ** rng.uniform(-20, 0, 50))
    factor = FixedPoint(mantissa.astype(np.int64), 31 - left.astype(np.int64))
    x = rng.integers(-(1 << 31), 1 << 31, (2000, 50)).astype(np.int32)
    np.testing.assert_array_equal(factor.apply(x), multiply(x, mantissa, left))
    some = np.asarray([3, 17])
    np.testing.assert_array_equal(factor.of_channels(some).apply(x[:, some]), factor.apply(x)[:, some])


def test_a_staircase_climbs_to_the_ends_of_the_result() -> None:
    factor = FixedPoint(np.asarray([1 << 30]), np.asarray([35]))
    s = Scaling(factor, 7, -3, Bounds.of(-1000, 1000), Range(-128, 127))
    assert s.levels == (-125, 130)
    stairs = s.staircase()
    assert (int(stairs.bottom[0]), int(stairs.top[0])) == (-124, 130)
    np.testing.assert_array_equal(stairs.thresholds(stairs.levels), s.thresholds())
    assert s.accumulator.range.reach == 1000


@pytest.mark.parametrize(("shift", "reach", "one"), [(30, 1000, True), (31, 1000, False), (30, 1 << 24, False)])
def test_a_scale_of_one_is_that_of_few_integers(shift: int, reach: int, one: bool) -> None:
    factor = FixedPoint(np.asarray([1 << 30]), np.asarray([shift]))
    assert Scaling(factor, 0, 0, Bounds.of(-5, reach), Range(-128, 127)).is_one == one


def test_equal_scalings_have_equal_keys() -> None:
    def scaling(multiplier: int, high: int) -> Scaling[FixedPoint]:
        factor = FixedPoint(np.asarray([multiplier]), np.asarray([40]))
        return Scaling(factor, 0, 0, Bounds.of(-5, high), Range(-128, 127))

    assert scaling(5, 9).key == scaling(5, 9).key
    assert len({scaling(m, high).key for m in (5, 6) for high in (9, 10)}) == 4
    assert Scaling(Float64(np.ones(1)), 0, 0, Bounds.of(-5, 9), Range(-128, 127)).key != scaling(5, 9).key
