"""Pooling as kernels, with padding that has a name in TFLite and without."""

from __future__ import annotations

import pytest
from support.lowered import assert_lowered, draw

from tflq.dialects.builder import Builder
from tflq.dialects.tosa.convolution import AvgPool2D, MaxPool2D, Pool
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, ui8

SHAPE = (2, 5, 6, 3)


def pooled(b: Builder, x: Value, kind: type[Pool], pad: tuple[int, int, int, int], out: tuple[int, int]) -> Value:
    zero_points = {"input_zp": 0, "output_zp": 0} if kind is AvgPool2D else {}
    type = TensorType((2, *out, 3), x.type.storage)
    return b.emit(kind, [x], type, kernel=(3, 2), stride=(2, 2), pad=pad, **zero_points)


@pytest.mark.parametrize("kind", [AvgPool2D, MaxPool2D])
@pytest.mark.parametrize(("pad", "out"), [((0, 0, 0, 0), (2, 3)), ((1, 1, 0, 0), (3, 3))])
@pytest.mark.parametrize("element", [i8, ui8, i16], ids=str)
def test_padding(element: ScalarType, kind: type[Pool], pad: tuple[int, int, int, int], out: tuple[int, int]) -> None:
    assert_lowered(lambda b, v: pooled(b, v, kind, pad, out), [draw(element, SHAPE)], [element])


@pytest.mark.parametrize("kind", [AvgPool2D, MaxPool2D])
@pytest.mark.parametrize("element", [i8, ui8, i16], ids=str)
def test_padding_without_a_name(element: ScalarType, kind: type[Pool]) -> None:
    assert_lowered(lambda b, v: pooled(b, v, kind, (2, 0, 0, 0), (3, 3)), [draw(element, SHAPE)], [element])
