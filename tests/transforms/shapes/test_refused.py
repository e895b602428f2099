"""Operators that no interpreter runs on such operands are refused in every form, in words of the model's operators; the
nearest ones that it runs are converted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret, one_op

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    SCALARS,
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i1,
    i8,
    i32,
)

Q = UniformQuantizedType.of(i8, 0.1, 3)
WIDE = UniformQuantizedType.of(i8, 0.5, 0)
UNIT = UniformQuantizedType.of(i8, 1 / 256, -128)
WINDOW = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "fused_activation_function": "NONE"}
DILATION = {"dilation_w_factor": 1, "dilation_h_factor": 1}
CORNERS = {"align_corners": False, "half_pixel_centers": False}
FORMATS = ("tflite", "tosa", "onnx")


def x(*shape: int, of: ElementType = Q, name: str = "x") -> Value:
    return argument(shape, of, name)


def ints(values: Any) -> Value:
    return const(np.asarray(values), i32)


def y(*shape: int, of: ElementType = Q) -> Value:
    return argument(shape, of, "y")


Model: TypeAlias = tuple[bytes, list[list[np.ndarray]]]
"""A file and its inputs."""


def built(
    name: str, operands: Sequence[Value], results: Sequence[Value], attributes: Mapping[str, Any], version: int = 1
) -> Model:
    inputs = [v for v in operands if v.buffer is None]
    return one_op(name, operands, results, attributes, version), edge_inputs(inputs) if inputs else [[]]


def mirrored(before: int, mode: str) -> Model:
    return built("tfl.mirror_pad", [x(2, 2), ints([[0, 0], [before, 0]])], [y(2, 2 + before)], {"mode": mode})


def convolved(outputs: int, group: int) -> Model:
    """Six input channels, in groups."""
    scales = np.full(outputs, 0.02, np.float32)
    weights = const(np.ones((outputs, 1, 1, group)), UniformQuantizedPerAxisType.of(i8, 0, scales, 0))
    bias = const(np.zeros(outputs), UniformQuantizedPerAxisType.of(i32, 0, scales * np.float32(0.1), 0))
    return built("tfl.conv_2d", [x(1, 2, 2, 6), weights, bias], [y(1, 2, 2, outputs, of=WIDE)], {**WINDOW, **DILATION})


def resized(kind: str, height: int, width: int, rows: int = 4) -> Model:
    size = ints([height, width])
    return built(f"tfl.resize_{kind}", [x(1, rows, 4, 2), size], [y(1, height, width, 2)], CORNERS, 2)


def scattered(indices: Any, *updates: int) -> Model:
    return built("tfl.scatter_nd", [ints(indices), x(*updates), ints([4])], [y(4)], {})


def reversed_rows(lengths: Sequence[int], *, seq: int = 1) -> Model:
    attributes = {"seq_dim": seq, "batch_dim": 0}
    return built("tfl.reverse_sequence", [x(2, 3, of=f32), ints(lengths)], [y(2, 3, of=f32)], attributes)


def segmented(segments: Sequence[int], count: int) -> Model:
    operands = [x(3, 2, of=f32), ints(segments), ints(count)]
    return built("tfl.unsorted_segment_max", operands, [y(count, 2, of=f32)], {})


def split(sizes: Sequence[int]) -> Model:
    return built("tfl.split_v", [x(4), ints(sizes), ints(0)], [y(2), argument((2,), Q, "z")], {"num_splits": 2}, 2)


def chosen(rows: int) -> Model:
    return built("tfl.select", [x(rows, of=i1, name="c"), x(2, 3), x(2, 3, name="b")], [y(2, 3)], {})


def padded(rank: int) -> Model:
    return built("tfl.pad", [x(*[1] * rank), ints([[0, 1]] * rank)], [y(*[2] * rank)], {}, 2)


def blocks(*shape: int) -> Model:
    spatial = len(shape) - 2
    operands = [x(*shape), ints([1] * spatial), const(np.zeros((spatial, 2)), i32)]
    return built("tfl.space_to_batch_nd", operands, [y(*shape)], {}, 2)


def looked_up(index: int, rows: Value) -> Model:
    return built("tfl.embedding_lookup", [ints([index]), rows], [y(1, 4)], {}, 2)


def dense(index: int) -> Model:
    operands = [ints([[0], [index]]), ints([4]), x(2), x(name="d")]
    return built("tfl.sparse_to_dense", operands, [y(4)], {"validate_indices": False}, 3)


def gathered(index: int) -> Model:
    return built("tfl.gather", [x(2, 3), ints([index])], [y(1, 3)], {"axis": 0, "batch_dims": 0}, 2)


def picked(index: Any) -> Model:
    return built("tfl.gather_nd", [x(2, 3), ints([index])], [y(1)], {}, 2)


def normalized(*shape: int) -> Model:
    return built("tfl.softmax", [x(*shape)], [y(*shape, of=UNIT)], {"beta": 1.0}, 2)


def variable(assigned: ElementType, read: ElementType) -> Model:
    handle = Value(TensorType((), SCALARS["!tfl.resource"]), "handle")
    value, result = argument((1, 4), assigned), argument((1, 4), read, "y")
    ops = [
        Op("tfl.var_handle", [], [handle], {"shared_name": "state"}),
        Op("tfl.assign_variable", [handle, value], [], {}),
        Op("tfl.read_variable", [handle], [result], {}),
    ]
    return bytes(write(Module([Function("main", [value], [result], ops)]))), edge_inputs([value])


TABLE = const(np.ones((2, 4)), Q)
CASES = {
    "mirrored beyond the dim": (mirrored(2, "REFLECT"), mirrored(1, "REFLECT")),
    "mirrored beyond the dim and its edge": (mirrored(3, "SYMMETRIC"), mirrored(2, "SYMMETRIC")),
    "groups of outputs": (convolved(7, 3), convolved(8, 3)),
    "GATHER": (gathered(2), gathered(1)),
    "GATHER of a negative index": (gathered(-1), gathered(0)),
    "GATHER_ND": (picked([1, 3]), picked([1, 2])),
    "GATHER_ND, first dim": (picked([2, 0]), picked([1, 0])),
    "EMBEDDING_LOOKUP": (looked_up(2, TABLE), looked_up(1, TABLE)),
    "EMBEDDING_LOOKUP of a negative index": (looked_up(-1, x(2, 4)), looked_up(1, x(2, 4))),
    "SCATTER_ND": (scattered([[4]], 1), scattered([[3]], 1)),
    "SCATTER_ND of fewer updates": (scattered([[0], [1]], 1), scattered([[0], [1]], 2)),
    "SPARSE_TO_DENSE": (dense(4), dense(3)),
    "bilinear of no height": (resized("bilinear", 0, 3), resized("bilinear", 1, 3)),
    "bilinear of nothing": (resized("bilinear", 2, 2, rows=0), resized("nearest_neighbor", 0, 2)),
    "lengths of rows": (reversed_rows([4, 1]), reversed_rows([3, 1])),
    "number of lengths": (reversed_rows([1]), reversed_rows([1, 0])),
    "one dim for both": (reversed_rows([1, 1], seq=0), reversed_rows([1, 1])),
    "segments": (segmented([0, 2, 1], 2), segmented([0, 1, 1], 2)),
    "number of segments": (segmented([0, 1], 2), segmented([1, 1, -1], 2)),
    "parts left open": (split([-1, -1]), split([-1, 2])),
    "condition of rows": (chosen(3), chosen(2)),
    "rank of PAD": (padded(6), padded(5)),
    "rank of blocks": (blocks(1, 2), blocks(1, 2, 2)),
    "rank of blocks, above": (blocks(1, 2, 2, 2, 2), blocks(1, 2, 2, 2)),
    "SOFTMAX of a scalar": (normalized(), normalized(3)),
    "type of a variable": (variable(Q, f32), variable(Q, WIDE)),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_where_no_interpreter_runs_it(name: str) -> None:
    bad, good = CASES[name]
    with pytest.raises(RuntimeError):
        interpret(*bad)
    for kind in FORMATS:
        with pytest.raises((tflq.UnsupportedError, tflq.InvalidModelError)) as refused:
            tflq.convert(bad[0], format=kind)
        for words in ("tosa.", "for this batch", "cannot be bound"):
            assert words not in str(refused.value)
    wanted, found = interpret(*good), interpret(tflq.convert(good[0]).data, good[1])
    assert all(
        np.array_equal(a, b) for one, other in zip(wanted, found, strict=True) for a, b in zip(one, other, strict=True)
    )
