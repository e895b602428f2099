"""Windows, multipliers and accumulator bounds of the convolution family."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.numerics.convolution import (
    Window,
    channel_sums,
    crude_bounds,
    double_scales,
    exact_bounds,
    exact_end,
    legacy_scale,
    window,
)


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
