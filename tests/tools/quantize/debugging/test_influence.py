"""Whose errors are added together, and the shares that follow."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.tools.quantize.debugging.debugging import ALONE, grouped, shares


def test_the_worst_are_taken_alone_and_the_others_together() -> None:
    noise = [0.0, *np.linspace(1, 2, ALONE + 3)]
    groups = grouped(noise)
    assert groups[0] == (ALONE + 3,)
    assert [len(group) for group in groups] == [1] * ALONE + [3]
    assert groups[-1] == (1, 2, 3)
    assert grouped(noise, [1])[:2] == [(1,), (ALONE + 3,)]
    assert grouped([0.0, 0.0]) == []


def test_shares_of_a_group_go_by_own_errors() -> None:
    noise = [0.5, 0.0, 0.1, 0.3]
    made = shares([(0,), (2, 3)], np.array([3.0, 1.0]), noise)
    assert made == pytest.approx([0.75, 0.0, 0.0625, 0.1875])
    assert shares([(0,)], np.array([0.0]), [0.5]) == [0.0]
