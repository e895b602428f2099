"""Windows, multipliers and bounds of convolutions; pooling, reductions, recurrent scales."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.numerics.convolution import (
    Window,
    average_is_exact,
    average_pool,
    channel_sums,
    clip_bound,
    crude_bounds,
    double_scales,
    exact_bounds,
    exact_end,
    hidden_scale,
    legacy_scale,
    max_pool,
    mean_multiplier,
    peephole_scale,
    power_of_two,
    reciprocal_average_pool,
    reciprocal_scale,
    window,
    window_counts,
)
from tflq.numerics.fixed_point import float_ratio, ratio_multiplier

# Windows, multipliers and accumulator bounds of the convolution family.


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "padding", "expected"),
    [
        (9, 3, 1, 1, "SAME", Window(9, 1, 1)),
        (8, 3, 2, 1, "SAME", Window(4, 0, 1)),
        (9, 3, 2, 1, "SAME", Window(5, 1, 1)),
        (6, 1, 2, 1, "SAME", Window(3, 0, 0)),
        (9, 3, 1, 2, "SAME", Window(9, 2, 2)),
        (9, 4, 1, 1, "SAME", Window(9, 1, 2)),
        (9, 3, 2, 1, "VALID", Window(4, 0, 0)),
        (2, 3, 1, 1, "VALID", Window(0, 0, 0)),
        (None, 3, 1, 1, "SAME", Window(None, 1, 1)),
        (None, 4, 1, 1, "SAME", Window(None, 1, 2)),
        (None, 3, 2, 1, "VALID", Window(None, 0, 0)),
        (None, 1, 2, 1, "SAME", Window(None, 0, 0)),
        (None, 3, 2, 1, "SAME", None),
    ],
)
def test_window(
    size: int | None, kernel: int, stride: int, dilation: int, padding: str, expected: Window | None
) -> None:
    assert window(size, kernel, stride, dilation, padding) == expected


def test_multipliers_differ_in_where_they_round() -> None:
    """The legacy product is rounded to float32 before it is divided."""
    x, w, y = 0.1, 0.3, 0.7
    double = double_scales(x, [w], y)
    assert double.tolist() == [float(np.float32(x)) * float(np.float32(w)) / float(np.float32(y))]
    assert legacy_scale(x, w, y) == float(np.float32(x) * np.float32(w)) / float(np.float32(y))
    assert legacy_scale(x, w, y) != double[0]


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.int8, np.uint8]), st.integers(0, 200))
def test_exact_bounds_are_reached_and_hold(seed: int, dtype: type, weight_zp: int) -> None:
    rng = np.random.default_rng(seed)
    info: np.iinfo = np.iinfo(dtype)
    weight_zp = min(weight_zp, info.max)
    weights: np.ndarray = rng.integers(info.min, info.max, (3, 2, 2, 4), endpoint=True).astype(dtype)
    bias = rng.integers(-1000, 1000, 3)
    low, high = -int(rng.integers(0, 256)), int(rng.integers(0, 256))
    least, greatest = exact_bounds(weights, (1, 2, 3), weight_zp, low, high, bias)
    flat = weights.reshape(3, -1).astype(np.int64) - weight_zp
    assert greatest == (np.where(flat > 0, flat * high, flat * low).sum(1) + bias).max()
    assert least == (np.where(flat > 0, flat * low, flat * high).sum(1) + bias).min()
    reach = int(np.abs(flat).max())
    crude = crude_bounds(16, reach, low, high, bias)
    assert crude[0] <= least <= greatest <= crude[1]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_channel_sums_do_not_overflow(dtype: type) -> None:
    extreme: np.ndarray = np.full((2, 1 << 17), np.iinfo(dtype).max, dtype)
    assert channel_sums(extreme, (1,)).tolist() == [int(np.iinfo(dtype).max) << 17] * 2


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 7), st.integers(1, 3), st.sampled_from(["SAME", "VALID"]))
def test_windows_use_up_what_they_read(size: int, kernel: int, stride: int, dilation: int, padding: str) -> None:
    found, extent = window(size, kernel, stride, dilation, padding), (kernel - 1) * dilation + 1
    assert found is not None
    if found.output is None or found.output < 1:
        return
    read, after = exact_end(size, extent, stride, found.before, found.after, found.output)
    assert read + found.before + after == (found.output - 1) * stride + extent
    assert 0 < read <= size
    assert 0 <= after <= found.after


def test_windows_beyond_the_padding() -> None:
    with pytest.raises(ValueError, match="2 windows read 6 elements of 4 and 1"):
        exact_end(4, 3, 3, 0, 1, 2)


# Pooling: TOSA's AVG_POOL2D is the kernels' average, and windows hang over the edges without being counted.


@pytest.mark.parametrize(
    ("reach", "counts"),
    [
        (255, range(1, 4097)),
        (32768, range(1, 17)),
        (32768, (99, 100, 127, 128, 1000, 4095, 4096, 4097, 16381, 16383)),
    ],
)
def test_tosa_reciprocal_is_the_division(reach: int, counts: Sequence[int]) -> None:
    """Both are monotone, so that they agree on all sums if they do on either side of every half."""
    means = np.arange(-reach, reach + 1)
    for count in counts:
        assert average_is_exact((1, count), -reach, reach, 0)
        half = means * count + (count + 1) // 2
        total = np.concatenate([half + step for step in range(-2, 3)])
        multiplier, shift = reciprocal_scale(count)
        tosa = (total * multiplier + (1 << (shift - 1))) >> shift
        np.testing.assert_array_equal(tosa, np.sign(total) * ((np.abs(total) + count // 2) // count))


def test_padding_is_not_counted() -> None:
    x = np.asarray([[1, -2], [-4, 8]], np.int8).reshape(1, 2, 2, 1)
    average = average_pool(x, (2, 2), (1, 1), (1, 1, 1, 1)).reshape(3, 3)
    np.testing.assert_array_equal(average, [[1, -1, -2], [-2, 1, 3], [-4, 2, 8]])


def test_greatest() -> None:
    x = np.arange(12, dtype=np.uint8).reshape(1, 3, 4, 1)
    np.testing.assert_array_equal(max_pool(x, (2, 3), (2, 2), (0, 1, 0, 1)).reshape(2, 2), [[6, 7], [10, 11]])


def test_padding_is_never_the_greatest() -> None:
    x = np.full((1, 1, 1, 1), -128, np.int8)
    assert max_pool(x, (3, 3), (1, 1), (1, 1, 1, 1)).item() == -128


def test_both_averages_are_the_same_number_also_where_windows_hang_over() -> None:
    x = np.random.default_rng(0).integers(-128, 128, (2, 7, 6, 3), np.int8)
    window = ((3, 4), (2, 1), (1, 2, 0, 3))
    np.testing.assert_array_equal(reciprocal_average_pool(x, *window), average_pool(x, *window))


def test_elements_of_windows() -> None:
    counts = window_counts((3, 2), (2, 2), (1, 1), (1, 0, 0, 1))
    np.testing.assert_array_equal(counts, [[2, 1], [4, 2], [4, 2]])


def test_the_average_of_floats_is_the_quotient() -> None:
    x = np.asarray([[1, 2], [4, 8]], np.float32).reshape(1, 2, 2, 1)
    assert average_pool(x, (2, 2), (1, 1), (0, 0, 0, 0)).item() == 3.75


# MEAN's multiplier: 1 / count within its precision, and never out of RESCALE's range.

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


# Numbers of the recurrent kernels.


def test_scales_are_of_float32() -> None:
    assert float_ratio(0.1, 0.7, 0.3) == float(np.float32(0.1) * np.float32(0.3) / np.float32(0.7))
    assert hidden_scale(0.0078) == float(np.float32(2.0**-30 / float(np.float32(0.0078))))
    assert peephole_scale(-11, 0.0002) == float(np.float32(2.0 * float(np.float32(0.0002))))


@pytest.mark.parametrize("exponent", range(-15, 1))
def test_powers_of_two(exponent: int) -> None:
    assert power_of_two(2.0**exponent) == exponent
    with pytest.raises(ValueError, match="power of two"):
        power_of_two(2.0**exponent * 1.01)


def test_clips_are_truncated_and_saturated() -> None:
    assert clip_bound(0.0, 0.1, 127) == 0
    assert clip_bound(1.0, 0.15, 127) == 6
    assert clip_bound(10.0, 2.0**-12, 32767) == 32767
