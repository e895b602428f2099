"""RESHAPE by its option where kernels do not read its operand: they read a vector of int32 alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tflq
from tflq.analysis.evaluate.registry import evaluate_op
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i32

UNREAD = {"int8": constant(np.asarray([0, 2], np.int8), i8), "scalar": constant(np.asarray(4, np.int32), i32)}


def reshape(operand: Value) -> Module:
    element = UniformQuantizedType.of(i8, 0.5)
    x, y = Value(TensorType((4,), element), name="x"), Value(TensorType((2, 2), element), name="y")
    return Module([Function("main", [x], [y], [Op("tfl.reshape", [x, operand], [y], {"new_shape": (2, 2)})])])


@pytest.mark.parametrize("operand", UNREAD.values(), ids=UNREAD)
@pytest.mark.parametrize("options", [{"format": "tosa"}, {"format": "onnx"}, {"target": "portable"}], ids=str)
def test_the_option_counts_where_no_kernel_reads_the_operand(operand: Value, options: dict[str, Any]) -> None:
    module = tflq.convert(tflq.write(reshape(operand)), **options).module
    assert [value.type.shape for value in module.functions[0].outputs] == [(2, 2)]


@pytest.mark.parametrize("operand", UNREAD.values(), ids=UNREAD)
def test_the_evaluator_reads_what_kernels_read(operand: Value) -> None:
    (op,) = reshape(operand).ops()
    results = evaluate_op(op, [np.arange(4, dtype=np.int8), operand.array])
    assert results is not None
    assert results[0].tolist() == [[0, 1], [2, 3]]
