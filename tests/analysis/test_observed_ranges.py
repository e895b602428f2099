"""Which range follows from statistics, and what each method needs."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.analysis.statistics import Method, PointStatistics, observed_range
from tflq.base.errors import OptionError
from tflq.numerics.ranges import finite_bins, histogram

VALUES = np.array([[-1.0, 3.0], [0.0, 1.0], [-2.0, 0.5]], np.float32)
POINT = PointStatistics(
    6,
    -2.0,
    3.0,
    sample_minima=(-1.0, None, 0.0, -2.0),
    sample_maxima=(3.0, None, 1.0, 0.5),
    bins=finite_bins(histogram(VALUES)),
)


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("minmax", (-2.0, 3.0)),
        ("ema", (0.95 * -0.95 + 0.05 * -2, 0.95 * 2.9 + 0.05 * 0.5)),
        ("percentile:100", (-2.0, 3.0)),
    ],
)
def test_the_range_of_each_method(method: str, wanted: tuple[float, float]) -> None:
    assert observed_range(POINT, Method.of(method), "p") == pytest.approx(wanted)


def test_the_least_squared_error_depends_on_the_levels() -> None:
    few, many = (observed_range(POINT, Method.of("mse"), "p", levels) for levels in (4, 256))
    assert few is not None
    assert many is not None
    assert few != many


@pytest.mark.parametrize("method", ["minmax", "ema", "percentile:99", "mse"])
def test_without_elements_there_is_no_range(method: str) -> None:
    assert observed_range(PointStatistics(0), Method.of(method), "p") is None


@pytest.mark.parametrize("method", ["ema", "percentile:99", "mse"])
def test_a_method_says_what_it_lacks(method: str) -> None:
    with pytest.raises(OptionError, match=f"range '{method.partition(':')[0]}' needs .*, which 'p' lacks"):
        observed_range(PointStatistics(1, 0.0, 1.0), Method.of(method), "p")


@pytest.mark.parametrize("text", ["max", "minmax:3", "percentile", "percentile:", "percentile:50", "percentile:x"])
def test_what_is_no_method(text: str) -> None:
    with pytest.raises(OptionError, match=r"not known|not a percentile"):
        Method.of(text)
