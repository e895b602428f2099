"""Products in float32, rounded half to even: their thresholds, and forms of them, on all sums of a range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tflq.numerics.requantize.division import Division
from tflq.numerics.requantize.numpy_ops import NUMPY
from tflq.numerics.requantize.rounded import Fallen, Rounded
from tflq.numerics.requantize.scaling import Bounds, Float32, Range, Scaling

REACH = 60_000
SCALES = np.asarray([0.00271, 0.0043, 2.0**-7, 0.75 * 2.0**-9], np.float32)  # the last two meet ties
FACTORS = [Float32(SCALES), Float32(SCALES[:1], 1300, np.float32(-3.7), -7)]


def scaling(factor: Float32, zero: int = -7) -> Scaling[Float32]:
    return Scaling(factor, 0, zero, Bounds.of(-REACH, REACH), Range(-128, 127))


def levels(s: Scaling[Float32], x: np.ndarray) -> np.ndarray:
    product = (x + s.factor.before).astype(np.float32) * s.factor.scale
    if s.factor.after is None:
        return np.clip(np.rint(product), *s.levels)
    return np.clip(np.rint(product + s.factor.after) - s.zero_out, *s.levels)


@pytest.mark.parametrize("factor", FACTORS)
def test_a_level_begins_at_its_threshold(factor: Float32) -> None:
    s, x = scaling(factor), np.arange(-REACH, REACH + 1)[:, None]
    wanted, thresholds = levels(s, x), s.thresholds()
    for channel in range(factor.scale.size):
        counts = np.searchsorted(thresholds[:, channel], x[:, 0], side="right") + s.levels.low
        np.testing.assert_array_equal(counts, wanted[:, channel])


def test_thresholds_of_sums_that_float32_rounds() -> None:
    factor, rows = Float32(np.asarray([3.1e-8, 7.77e-8, 1e-7], np.float32)), np.arange(-40, 41)
    first = factor.thresholds(rows)
    assert np.abs(first).max() > 1 << 24
    assert (factor.apply(first) >= rows[:, None]).all()
    assert (factor.apply(first - 1) < rows[:, None]).all()


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("form", [Rounded, Fallen])
def test_forms_are_the_kernels_operations(form: type[Rounded | Fallen], factor: Float32) -> None:
    s, x = scaling(factor), np.arange(-REACH, REACH + 1)[:, None]
    fit = form.of(s)
    assert fit is not None
    np.testing.assert_array_equal(fit(x) + fit.offset(s.levels.low), levels(s, x))


@pytest.mark.parametrize("zero", [-7, -128])
def test_a_convolution_prepares_sums(zero: int) -> None:
    s, x = scaling(FACTORS[0], zero), np.arange(-REACH, REACH + 1)[:, None]
    fit = Fallen.of_convolution(s)
    assert fit is not None
    assert fit.prepare().relu == (zero == -128)
    np.testing.assert_array_equal(fit(x) + fit.offset(s.levels.low), levels(s, x))


@pytest.mark.parametrize("zero", [-7, -128])
@pytest.mark.parametrize("of", [Rounded.of, Fallen.of_convolution])
def test_sums_of_one_level_need_not_be_exact(
    of: Callable[[Scaling[Float32]], Rounded | Fallen | None], zero: int
) -> None:
    """As where a channel of weights is zero, and its bias is as large as int32 holds."""
    ends = np.asarray([[-(1 << 30), 26_000_000, -REACH], [-(1 << 30), 26_000_900, REACH]])
    s = scaling(Float32(np.asarray([4.58e-9, 1.1e-6, 0.0027], np.float32)), zero)
    s = s.replace(accumulator=Bounds(*ends))
    fit = of(s)
    assert fit is not None
    assert fit.live.tolist() == [False, False, True]
    x = np.linspace(ends[0], ends[1], 50_000).astype(np.int64)
    inexact = x + np.asarray([100_000, -100_000, 0])
    np.testing.assert_array_equal(fit(inexact) + fit.offset(s.levels.low), levels(s, x))


@pytest.mark.parametrize("zero", [-7, -128])
def test_numbers_are_taken_from_sums_that_float32_does_not_hold(zero: int) -> None:
    low, high = np.asarray([-REACH, 26_480_370, -25_900_000]), np.asarray([REACH, 26_636_685, -25_800_000])
    s = scaling(Float32(np.asarray([0.0027, 6.950277e-07, 3e-6], np.float32)), zero)
    s = s.replace(accumulator=Bounds(low, high))
    fit = Fallen.of_convolution(s)
    assert fit is not None
    assert max(np.abs(end + fit.prepare().add)[fit.live].max() for end in (low, high)) < 1 << 24
    for channel in range(3):
        x, one = np.arange(low[channel], high[channel] + 1)[:, None], np.asarray([channel])
        part = replace(fit, **{name: np.broadcast_to(getattr(fit, name), 3)[one] for name in ("m", "high", "add")})
        alone = s.replace(factor=s.factor.of_channels(one))
        np.testing.assert_array_equal(part(x) + part.offset(s.levels.low), levels(alone, x))


def test_a_division_is_proven_at_each_threshold() -> None:
    x, ends = np.arange(-REACH, REACH + 1)[:, None], np.full(1, REACH)
    for scale in SCALES:
        s = scaling(Float32(np.asarray([scale])))
        fit = Division.fit(s.staircase(), -ends, ends)
        if fit is not None:
            np.testing.assert_array_equal(np.clip(fit.apply(x, NUMPY), *s.levels), levels(s, x))


def test_ties_go_to_even_numbers() -> None:
    factor = Float32(np.asarray([0.5], np.float32))
    assert factor.apply(np.asarray([1, 3, 5, -1, -3])).tolist() == [0, 2, 2, 0, -2]
