"""The plot of a layers page is scaled to its data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tflq.tools.pages import Row, axis_for, plots
from tflq.tools.verify.difference import Difference, difference


def row(operator: int, found: Difference | None, entry: str = "") -> Row:
    return Row(entry, operator, "ADD", "y", "int8[4]", found, False, [], [], 0, "")


def counts(largest: int) -> Difference:
    zeros = np.zeros(4, np.int16)
    return difference(zeros + np.int16(largest), zeros)


def test_two_counts_are_as_high_as_a_plot_in_which_nothing_is_larger() -> None:
    (plot,) = plots([row(0, counts(0)), row(1, counts(1)), row(2, counts(2)), row(3, None)])
    assert plot.heights == [None, 50.0, 100.0, None]
    assert [(tick.at, tick.label) for tick in plot.axis.ticks] == [(100, "2"), (50, "1")]
    assert [(tick.at, tick.label) for tick in plot.across] == [(12.5, "0"), (37.5, "1"), (62.5, "2"), (87.5, "3")]


@pytest.mark.parametrize(
    ("values", "integers", "labels"),
    [
        ([1, 2], True, ["2", "1"]),
        ([200], True, ["256", "64", "16", "4", "1"]),
        ([3, 65535], True, ["65,536", "8,192", "1,024", "128", "16", "2"]),
        ([1e-3], False, ["0.001"]),
        ([2e-7, 0.3], False, ["1", "0.01", "1e-4", "1e-6"]),
        ([1e-30, 5.0], False, ["10", "0.1", "0.001", "1e-5", "1e-7", "1e-9"]),
        ([math.inf], True, ["2", "1"]),
    ],
)
def test_axes_have_few_labels_and_end_where_the_data_does(
    values: list[float], integers: bool, labels: list[str]
) -> None:
    axis = axis_for(values, integers=integers)
    assert [tick.label for tick in axis.ticks] == labels
    assert axis.ticks[0].at == 100
    heights = [axis.height(value) for value in values]
    assert heights == sorted(heights)
    assert heights[0] >= 2
    assert heights[-1] > 40


def test_integers_and_floats_have_plots_of_their_own() -> None:
    floats = difference(np.array([1.5], np.float32), np.array([1.0], np.float32))
    broken = difference(np.array([np.nan], np.float32), np.array([1.0], np.float32))
    first, second = plots([row(0, counts(4), "a"), row(0, floats, "b"), row(1, broken, "b")])
    assert (first.heights, second.heights[0]) == ([100.0, None, None], None)
    assert second.heights[1] is not None
    assert second.heights[2] == 100.0
    assert [tick.label for tick in second.across] == ["a: 0", "b: 0", "b: 1"]


def test_without_differences_there_is_no_plot() -> None:
    assert plots([row(0, counts(0)), row(1, None)]) == []
