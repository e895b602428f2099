"""RESIZE, division and rounding as kernels, with steps no TFLite operator has, too."""

from __future__ import annotations

import pytest
from support.lowered import assert_lowered, draw, kernels_of

from tflq.dialects.builder import Builder
from tflq.dialects.tosa.movement import Resize
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32, i64, ui8

SHAPE = (2, 5, 6, 3)
STEPS = [
    ((4, 2, 3, 1), (0, 0), (9, 17)),
    ((4, 2, 3, 1), (-1, -1), (9, 17)),
    ((7, 9, 5, 5), (3, 0), (3, 6)),
    ((1, 1, 1, 1), (0, 0), (5, 6)),
    ((1024, 683, 1024, 512), (-171, -256), (7, 12)),
]


def resized(b: Builder, x: Value, case: int, mode: str) -> Value:
    scale, offset, out = STEPS[case]
    widened = i64 if x.type.storage == i16 else i32
    element = x.type.storage if mode == "NEAREST_NEIGHBOR" else widened
    border = tuple((out[i] - 1) * scale[2 * i + 1] + offset[i] - (SHAPE[1 + i] - 1) * scale[2 * i] for i in (0, 1))
    type = TensorType((2, *out, 3), element)
    return b.emit(Resize, [x], type, scale=scale, offset=offset, border=border, mode=mode)


@pytest.mark.parametrize("mode", ["BILINEAR", "NEAREST_NEIGHBOR"])
@pytest.mark.parametrize("case", range(len(STEPS)))
@pytest.mark.parametrize("element", [i8, ui8, i16], ids=str)
def test_resize(element: ScalarType, case: int, mode: str) -> None:
    assert_lowered(lambda b, v: resized(b, v, case, mode), [draw(element, SHAPE)], [element])


def test_a_dim_taken_in_order_is_not_gathered() -> None:
    assert "gather" not in kernels_of(lambda b, v: resized(b, v, 3, "BILINEAR"), [i8], [SHAPE])
