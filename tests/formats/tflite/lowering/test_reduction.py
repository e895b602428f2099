"""Reductions and ARGMAX as kernels: chains are one kernel, whatever follows them."""

from __future__ import annotations

import numpy as np
import pytest
from support.lowered import assert_lowered, draw, kernels_of

from tflq.dialects.builder import Builder
from tflq.dialects.tosa.elementwise import BitwiseNot
from tflq.dialects.tosa.movement import ArgMax
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32, i64, ui8

SHAPE = (2, 3, 5, 7)


def summed(b: Builder, x: Value) -> Value:
    return b.reduce("sum", b.reduce("sum", x, 1), -2)


def extremes(b: Builder, x: Value) -> Value:
    """Reductions of two kinds."""
    return b.reduce("max", b.reduce("min", x, 1), 1)


def argmin(b: Builder, x: Value) -> Value:
    complement = b.emit(BitwiseNot, [x], x.type)
    index = b.emit(ArgMax, [complement], TensorType((2, 3, 7), i32), axis=2)
    return b.cast(index, i64)


def test_a_chain_is_one_kernel() -> None:
    x = draw(i32, SHAPE)
    assert_lowered(summed, [x], [i32])
    assert kernels_of(summed, [i32], [SHAPE]) == ["sum"]
    assert kernels_of(extremes, [i32], [SHAPE]) == ["reduce_min", "reduce_max"]
    assert_lowered(extremes, [x], [i32])


@pytest.mark.parametrize(
    ("shape", "names"), [((2, 7), ["sum"]), ((14,), ["sum", "reshape"]), ((7, 2), ["sum", "reshape"])]
)
def test_reshape_after_a_chain(shape: tuple[int, ...], names: list[str]) -> None:
    x = draw(i32, SHAPE)
    assert_lowered(lambda b, v: b.reshape(summed(b, v), shape), [x], [i32])
    assert kernels_of(lambda b, v: b.reshape(summed(b, v), shape), [i32], [SHAPE]) == names


@pytest.mark.parametrize("element", [i8, ui8, i16, i32])
def test_extremes_of_any_storage_type(element: ScalarType) -> None:
    assert_lowered(extremes, [draw(element, SHAPE)], [element])


@pytest.mark.parametrize("element", [i8, ui8, i16, i32])
def test_complement(element: ScalarType) -> None:
    assert_lowered(lambda b, v: b.emit(BitwiseNot, [v], v.type), [draw(element, SHAPE)], [element])


@pytest.mark.parametrize("element", [i8, ui8, i16, i32])
def test_least_index(element: ScalarType) -> None:
    x = draw(element, SHAPE)
    assert_lowered(argmin, [x], [element])
    assert kernels_of(argmin, [element], [SHAPE])[-1] == "arg_min"


def test_first_of_equals() -> None:
    def index(b: Builder, x: Value) -> Value:
        return b.emit(ArgMax, [x], TensorType((2, 3, 5), i32), axis=3)

    assert_lowered(index, [np.ones(SHAPE, np.int8)], [i8])
