"""Products and quotients as kernels."""

from __future__ import annotations

import numpy as np
import pytest
from support.lowered import assert_lowered, draw

from tflq.dialects.tosa.elementwise import IntDiv
from tflq.ir.types import ScalarType, i8, i16, i32, i64

SHAPE = (2, 3, 5, 7)
DEEP = (2, 3, 4, 5, 6)


@pytest.mark.parametrize("element", [i8, i16, i32, i64])
def test_mul(element: ScalarType) -> None:
    arrays = [draw(element, SHAPE, 1, -100, 100), draw(element, SHAPE[-1:], 2, -100, 100)]
    assert_lowered(lambda b, x, y: b.mul(x, y), arrays, [element] * 2)


@pytest.mark.parametrize("shift", [1, 15, 31, 32, 40])
def test_mul_with_a_shift(shift: int) -> None:
    """Products of which 32 bits are left."""
    limit = min((1 << shift) - 2, i32.maximum)
    x = draw(i32, SHAPE, 1, i32.minimum + 1)
    for other in (SHAPE, (*SHAPE[:-1], 1)):
        y = draw(i32, other, 2, -limit, limit)
        assert_lowered(lambda b, v, w: b.mul(v, w, shift), [x, y], [i32, i32])
    assert_lowered(lambda b, v: b.mul(v, b.constant(np.asarray(-limit)), shift), [x], [i32])
    assert_lowered(lambda b, v: b.mul(b.constant(np.asarray(limit)), v, shift), [x], [i32])


def test_division_truncates() -> None:
    arrays = [draw(i32, SHAPE), draw(i32, SHAPE[-1:], 1, 1, 1000)]
    assert_lowered(lambda b, v, w: b.emit(IntDiv, [v, w], v.type), arrays, [i32, i32])
