"""MEAN's multiplier: 1 / count within its precision, and never out of RESCALE's range."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.numerics.convolution import mean_multiplier
from tflq.numerics.fixed_point import ratio_multiplier

scales = st.floats(2.0**-19, 2.0**10, width=32)  # whose ratios need no left shift beyond int32


@given(scales, scales, st.integers(1, 1 << 24))
def test_mean_is_the_ratio_over_the_count(scale_in: float, scale_out: float, count: int) -> None:
    mantissa, left = mean_multiplier(scale_in, scale_out, count)
    assert 0 <= mantissa < 1 << 31
    assert left >= -31
    real = scale_in / scale_out / count
    if left > -31:
        assert mantissa * 2.0 ** (left - 31) == pytest.approx(real, rel=2.0**-28)


def test_of_one_element() -> None:
    assert mean_multiplier(0.5, 0.3, 1) == ratio_multiplier(0.5, 0.3)


def test_a_power_of_two_is_exact() -> None:
    assert mean_multiplier(0.1, 0.1, 64) == (1 << 30, -5)


def test_division_truncates() -> None:
    assert mean_multiplier(0.1, 0.1, 3) == ((1 << 31) // 3, 0)


def test_ratios_that_cpp_leaves_undefined() -> None:
    assert ratio_multiplier(2.0**40, 1.0) == (1 << 30, 41)
    assert ratio_multiplier(1.0, 0.0) == ratio_multiplier(0.0, 0.0) == (0, 0)
