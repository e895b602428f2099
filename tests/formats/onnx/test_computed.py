"""Operands that say where or how much, and are computed; types for which ONNX's operators need another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_onnx import need_onnx

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ElementType, TensorType, UniformQuantizedType, f32, i8, i16, i32, i64

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")

Q: Final = UniformQuantizedType.of(i8, 0.1, 3)
Q16: Final = UniformQuantizedType.of(i16, 0.1, 0)
MASKS: Final = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def x(element: ElementType, *shape: int | None, name: str = "x") -> Value:
    return argument(shape, element, name)


def c(*numbers: Any) -> Value:
    return const(np.asarray(numbers), i32)


def masks(*bits: int) -> dict[str, Any]:
    return dict(zip(MASKS, bits, strict=True)) | {"offset": False}


BEGIN, END, PADS = (argument(shape, i32, name) for shape, name in (((2,), "begin"), ((2,), "end"), ((2, 2), "pads")))
CASES: Final[dict[str, tuple[str, Sequence[Value], Value, dict[str, Any]]]] = {
    "begin": ("strided_slice", [x(Q, 5, 4), BEGIN, c(5, 4), c(1, 1)], x(Q, None, None), masks(0, 0, 0, 0, 0)),
    "begin and end": ("strided_slice", [x(Q, 5, 4), BEGIN, END, c(1, 1)], x(Q, None, None), masks(0, 0, 0, 0, 0)),
    "backwards": ("strided_slice", [x(Q, 5, 4, 3), BEGIN, c(0, 0), c(2, -1)], x(Q, None, 4, 3), masks(2, 3, 0, 0, 0)),
    "a row": ("strided_slice", [x(Q, 5, 4), BEGIN, END, c(1, 1)], x(Q, 4), masks(2, 2, 0, 0, 1)),
    "pad": ("pad", [x(Q, 2, 3), PADS], x(Q, None, None), {}),
    "pad int16": ("pad", [x(Q16, 2, 3), PADS], x(Q16, None, None), {}),
    "pad with": ("padv2", [x(Q, 2, 3), c([1, 0], [0, 2]), x(Q, name="fill")], x(Q, 3, 5), {}),
    "pad by and with": ("padv2", [x(Q16, 2, 3), PADS, x(Q16, 1, name="fill")], x(Q16, None, None), {}),
    "mean of int32": ("mean", [x(i32, 2, 3), c(1)], x(i32, 2), {"keep_dims": False}),
    "where of int8": ("where", [x(i8, 2, 3)], x(i64, None, 2), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_the_interpreter(name: str) -> None:
    need_onnx()
    operator, operands, result, attributes = CASES[name]
    model = one_op(f"tfl.{operator}", operands, [result], attributes, 2 if "pad" in operator else 1)
    conversion = tflq.convert(model, format="onnx")
    rng = np.random.default_rng(1)
    inputs = {
        v.name: rng.integers(0, 3, v.type.sizes).astype(v.type.storage.dtype) for v in operands if not v.is_constant
    }
    assert tflq.verify(model, conversion.data, inputs=inputs).verdict == "equal"


def test_sparse_floats_are_spread() -> None:
    need_onnx()
    rows = {"format": "DENSE", "dense_size": 3}
    columns = {
        "format": "SPARSE_CSR",
        "array_segments": ("Int32Vector", {"values": (0, 1, 3, 4)}),
        "array_indices": ("Int32Vector", {"values": (0, 1, 3, 2)}),
    }
    sparsity = {"traversal_order": (0, 1), "block_map": None, "dim_metadata": [rows, columns]}
    buffer = Buffer.of(np.asarray([5, -6, 7, 8], np.float32))
    weights = Value(TensorType((3, 4), f32), "w", buffer=buffer, info={"sparsity": sparsity})
    a, y = argument((1, 4), f32, "x"), argument((1, 3), f32, "y")
    op = Op("tfl.fully_connected", [a, weights], [y], {}, info={"version": 8})
    model = bytes(write(Module([Function("main", [a], [y], [op])])))
    assert tflq.verify(model, tflq.convert(model, format="onnx").data).passed


@pytest.mark.parametrize("format", ["onnx", "tosa"])
@pytest.mark.parametrize("activation", ["TANH", "SIGN_BIT"])
@pytest.mark.parametrize("operator", ["add", "max_pool_2d"])
def test_an_activation_that_kernels_ignore(operator: str, activation: str, format: Any) -> None:
    """Kernels of floats clamp, or take no activation."""
    if format == "onnx":
        need_onnx()
    else:
        pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    window = {"padding": "VALID", "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    attributes = {"fused_activation_function": activation} | (window if operator == "max_pool_2d" else {})
    size = 2 if operator == "max_pool_2d" else 3
    operands = [x(f32, 1, 3, 3, 2), *([x(f32, 1, 3, 3, 2, name="z")] if operator == "add" else [])]
    model = one_op(f"tfl.{operator}", operands, [x(f32, 1, size, size, 2, name="y")], attributes)
    assert tflq.verify(model, tflq.convert(model, format=format).data).verdict == "equal"
