"""DILATE, MATRIX_DIAG, MATRIX_SET_DIAG and ADD_N on TOSA's operators, against their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret, one_op
from support.running import validate

import tflq
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, UniformQuantizedType, f32, i8, i16, i32, ui8

Q8, Q16 = UniformQuantizedType.of(i8, 0.1, 5), UniformQuantizedType.of(i16, 0.01)
QU8 = UniformQuantizedType.of(ui8, 0.1, 5)


def assert_same(name: str, operands: Sequence[Value], shape: tuple[int, ...], tmp_path: Any, version: int = 1) -> None:
    tool = pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    result = argument(shape, operands[0].type.element, "y")
    model = one_op(name, operands, [result], {}, version)
    inputs = edge_inputs([v for v in operands if not v.is_constant])
    inputs = [[a // 8 if a.dtype == np.int32 else a for a in arrays] for arrays in inputs]  # sums stay within int32
    conversion = tflq.convert(model, format="tosa")
    validate(tflq.convert(conversion.data, format="mlir").data.decode(), tmp_path)
    for arrays, (want,) in zip(inputs, interpret(model, inputs), strict=True):
        (got,), status = tool.run(conversion.data, arrays)
        assert status.name == "TOSA_VALID"
        assert got.shape == want.shape
        assert got.view(want.dtype).tolist() == want.tolist()


@pytest.mark.parametrize("element", [f32, i32], ids=str)
@pytest.mark.parametrize(
    ("shape", "steps", "out"),
    [((4,), (3,), (10,)), ((2, 3), (1, 2), (2, 5)), ((2, 1, 3, 2), (2, 4, 1, 3), (3, 1, 3, 4))],
    ids=str,
)
def test_dilate(
    element: ElementType, shape: tuple[int, ...], steps: tuple[int, ...], out: tuple[int, ...], tmp_path: Any
) -> None:
    operands = [argument(shape, element), const(np.asarray(steps), i32), const(np.asarray(7), element)]
    assert_same("tfl.dilate", operands, out, tmp_path)


@pytest.mark.parametrize("element", [f32, i32, Q8, QU8, Q16], ids=["f32", "i32", "i8", "ui8", "i16"])
def test_diagonals(element: ElementType, tmp_path: Any) -> None:
    assert_same("tfl.matrix_diag", [argument((2, 3), element)], (2, 3, 3), tmp_path)
    for shape in ((2, 3, 4), (2, 4, 3), (2, 3, 3)):
        operands = [argument(shape, element), argument((2, 3), element, "d")]
        assert_same("tfl.matrix_set_diag", operands, shape, tmp_path)


@pytest.mark.parametrize("element", [f32, i32], ids=str)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_add_n(element: ElementType, count: int, tmp_path: Any) -> None:
    operands = [argument((2, 3), element, f"x{i}") for i in range(count)]
    assert_same("tfl.add_n", operands, (2, 3), tmp_path)
