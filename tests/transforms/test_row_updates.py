"""Rows written by slices and a concatenation: recognized, and the same as before; anything else is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, interpret

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import Shape, TensorType, UniformQuantizedType, f32, i8, i32
from tflq.transforms.floats import RowUpdates

ROWS = 5
QUANTIZED = UniformQuantizedType.of(i8, 0.5, 3)
NONE = {"fused_activation_function": "NONE"}


def ints(*values: int) -> Value:
    return const(np.asarray(values), i32)


def written(element: Any = f32, step: int = 1, begin: int = 0, axis: int = 0, width: int = -1) -> Module:
    """Row i of x replaced, if the numbers are those of TensorFlow's converter."""
    x, row, i = argument((ROWS, 1, 3), element, "x"), argument((1, 1, 3), element, "row"), argument((), i32, "i")
    ops: list[Op] = []

    def emit(name: str, operands: list[Value | None], shape: Shape, of: Any, **options: Any) -> Value:
        result = Value(TensorType(shape, of), f"r{len(ops)}")
        ops.append(Op(f"tfl.{name}", operands, [result], options))
        return result

    after = emit("add", [i, const(np.asarray(step), i32)], (), i32, pot_scale_int16=False, **NONE)
    size = emit("reshape", [i, ints(1)], (1,), i32, new_shape=None)
    size = emit("concatenation", [size, ints(width, -1)], (3,), i32, axis=0, **NONE)
    start = emit("reshape", [after, ints(1)], (1,), i32, new_shape=None)
    start = emit("concatenation", [start, ints(0, 0)], (3,), i32, axis=0, **NONE)
    first = emit("slice", [x, ints(begin, 0, 0), size], (None, 1, 3), element)
    last = emit("slice", [x, start, ints(-1, -1, -1)], (None, 1, 3), element)
    y = emit("concatenation", [first, row, last], (ROWS if axis == 0 else None, 1, 3), element, axis=axis, **NONE)
    return Module([Function("main", [x, row, i], [y], ops)])


def names(module: Module) -> list[str]:
    return [op.name.removeprefix("tfl.") for op in module.ops()]


@pytest.mark.parametrize("element", [f32, QUANTIZED])
@pytest.mark.parametrize("width", [-1, 1])
def test_a_row_is_written_in_place(element: Any, width: int) -> None:
    model = bytes(write(written(element, width=width)))
    rng = np.random.default_rng(0)
    dtype = np.float32 if element is f32 else np.int8
    batches = [
        [rng.integers(-99, 99, (ROWS, 1, 3)).astype(dtype), np.asarray([[[1, 2, 3]]], dtype), np.asarray(i, np.int32)]
        for i in range(ROWS)
    ]
    result = RowUpdates().run(tflq.read(model))
    assert result.modified
    assert names(result.module) == ["reshape", "concatenation", "dynamic_update_slice"]
    made = bytes(write(result.module))
    for want, got in zip(interpret(model, batches), interpret(made, batches), strict=True):
        assert np.array_equal(want[0], got[0])


@pytest.mark.parametrize("numbers", [{"step": 2}, {"begin": 1}, {"axis": 1}, {"width": 0}])
def test_other_slices_are_left_alone(numbers: dict[str, int]) -> None:
    module = written(**numbers)
    before = names(module)
    assert not RowUpdates().run(module).modified
    assert names(module) == before


def test_a_tosa_file_has_the_row_written() -> None:
    conversion = tflq.convert(bytes(write(written())), format="tosa")
    assert "tosa.scatter" in [op.name for op in conversion.module.ops()]
