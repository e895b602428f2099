"""TOSA's data movement as TFLite builtins, on every element type."""

from __future__ import annotations

import numpy as np
import pytest
from support.lowered import draw
from support.raised import assert_same, one_op

from tflq.ir.types import ScalarType, f32, i1, i8, i16, i32

SHAPE = (2, 3, 5)
EVERY = pytest.mark.parametrize("element", [i1, i8, i16, i32, f32], ids=str)


def elements(element: ScalarType, *shape: int) -> np.ndarray:
    if element == f32:
        return np.random.default_rng(0).normal(0, 2, shape).astype(np.float32)
    return draw(i8, shape) > 0 if element == i1 else draw(element, shape)


@EVERY
def test_pad(element: ScalarType) -> None:
    x = elements(element, *SHAPE)
    value = {i1: 1, f32: 2.5}.get(element, 5)
    attributes = {"padding": (1, 0, 0, 0, 2, 1), "pad_const": value}
    assert_same(one_op("pad", [x], ((3, 3, 8), element), attributes), [x])


def test_nothing_to_pad() -> None:
    x = elements(i8, *SHAPE)
    assert assert_same(one_op("pad", [x], (SHAPE, i8), {"padding": (0,) * 6, "pad_const": 0}), [x]) == ["cast"]


@EVERY
def test_tile(element: ScalarType) -> None:
    x = elements(element, *SHAPE)
    assert_same(one_op("tile", [x], ((4, 3, 15), element), {"multiples": (2, 1, 3)}), [x])


@EVERY
def test_reverse(element: ScalarType) -> None:
    x = elements(element, *SHAPE)
    assert_same(one_op("reverse", [x], (SHAPE, element), {"axis": 2}), [x])


@pytest.mark.parametrize("element", [i8, i16, i32, f32], ids=str)
def test_gather(element: ScalarType) -> None:
    arrays = [elements(element, *SHAPE), np.asarray([[0, 2, 1, 1], [2, 2, 0, 1]], np.int32)]
    assert_same(one_op("gather", arrays, ((2, 4, 5), element)), arrays)


@pytest.mark.parametrize("element", [i8, i16, i32, f32], ids=str)
@pytest.mark.parametrize("indices", [[[2, 0], [1, 2]], [[2, 0, 1]]], ids=len)
def test_scatter(element: ScalarType, indices: list[list[int]]) -> None:
    batch = len(indices)
    rows = elements(element, batch, len(indices[0]), 5)
    arrays = [elements(element, batch, 3, 5), np.asarray(indices, np.int32), rows[:, ::-1]]
    arrays[2] = np.ascontiguousarray(arrays[2])
    assert_same(one_op("scatter", arrays, ((batch, 3, 5), element)), arrays)


@pytest.mark.parametrize("element", [i16, f32], ids=str)
def test_concat(element: ScalarType) -> None:
    arrays = [elements(element, *SHAPE), elements(element, *SHAPE)]
    assert_same(one_op("concat", arrays, ((2, 6, 5), element), {"axis": 1}), arrays)


@EVERY
def test_six_dims(element: ScalarType) -> None:
    x = elements(element, 2, 3, 2, 2, 2, 3)
    assert_same(one_op("transpose", [x], ((3, 2, 2, 2, 3, 2), element), {"perms": (1, 0, 2, 4, 5, 3)}), [x])
    bounds = {"start": (1, 1, 0, 1, 0, 1), "size": (1, 2, 2, 1, 2, 2)}
    assert_same(one_op("slice", [x], (bounds["size"], element), bounds), [x])


@EVERY
def test_reshape_and_identity(element: ScalarType) -> None:
    x = elements(element, *SHAPE)
    assert_same(one_op("reshape", [x], ((6, 5), element)), [x])
    assert_same(one_op("identity", [x], (SHAPE, element)), [x])
