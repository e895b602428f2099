"""Products in float32, rounded half to even: their thresholds, and forms of them, on all sums of a range."""

from __future__ import annotations

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
