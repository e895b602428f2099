"""Comparisons and choices as kernels."""

from __future__ import annotations

import pytest
from support.lowered import assert_lowered, draw

from tflq.dialects.builder import Builder
from tflq.ir.types import ScalarType, i8, i16, i32, i64, ui8

SHAPE = (2, 3, 5, 7)


@pytest.mark.parametrize("element", [i8, ui8, i16, i32, i64])
def test_comparisons_and_select(element: ScalarType) -> None:
    arrays = [draw(element, SHAPE, seed, 0, 9) for seed in (1, 2)]
    for compare in (Builder.equal, Builder.greater, Builder.greater_equal):
        assert_lowered(lambda b, x, y, f=compare: f(b, x, y), arrays, [element] * 2)
        assert_lowered(lambda b, x, y, f=compare: b.select(f(b, x, y), y, x), arrays, [element] * 2)
