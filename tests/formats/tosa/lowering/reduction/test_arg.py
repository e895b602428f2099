"""ARGMAX of every type, by TOSA's operator or by comparison with the extreme; the least element's index."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_tosa import INTEGER, assert_exact, assert_near_kernel

from tflq.dialects.builder import Builder
from tflq.formats.tosa.rules import Target
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, f32, i1, i8, i16, i32, ui8


def draw(element: ScalarType, shape: tuple[int, ...] = (3, 4, 50)) -> np.ndarray:
    rng = np.random.default_rng(0)
    if element == i1:
        return rng.integers(0, 2, shape).astype(bool)
    if element.is_float:
        return rng.integers(-5, 6, shape).astype(element.dtype)
    x = rng.integers(element.minimum, element.maximum, shape, np.int64, endpoint=True)
    x[0] = rng.choice([element.minimum, element.maximum], shape[1:])
    return x.astype(element.dtype)


@pytest.mark.parametrize("target", [INTEGER, Target(profiles=frozenset({"pro_int"}), extensions=frozenset())])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("element", [i8, ui8, i16, i32], ids=str)
def test_greatest(element: ScalarType, axis: int, target: Target) -> None:
    def emit(b: Builder, x: Value) -> Value:
        shape = tuple(d for a, d in enumerate(x.type.shape or ()) if a != axis % 3)
        return b.emit("tosa.argmax", [x], TensorType(shape, i32), axis=axis)

    assert_exact(emit, [element], [draw(element)], target)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("element", [f32, i1, i8, ui8, i32], ids=str)
@pytest.mark.parametrize("name", ["arg_max", "arg_min"])
def test_kernels(name: str, element: ScalarType, axis: int) -> None:
    x = draw(element)
    out = tuple(d for a, d in enumerate(x.shape) if a != axis % 3)
    operands = [argument(x.shape, element), const(np.asarray(axis), i32, "axis")]
    file = one_op(f"tfl.{name}", operands, [argument(out, i32, "y")], {"output_type": "INT32"})
    assert_near_kernel(file, [x])
