"""Shapes that a model with an open batch computes."""

from __future__ import annotations

import numpy as np
from support.harness import argument, const, interpret

import tflq
from tflq.analysis.known import known_elements
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32


def sizes(x: Value, tail: list[int]) -> tuple[list[Op], Value]:
    """[batch of x, *tail], as Keras models compute it."""
    shape, batch = argument((4,), i32, "shape"), argument((), i32, "batch")
    packed = argument((1 + len(tail),), i32, "sizes")
    first = [const(np.asarray([v]), i32, f"at{i}") for i, v in enumerate((0, 1, 1))]
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 1}
    ops = [
        Op("tfl.shape", [x], [shape], {"out_type": "INT32"}),
        Op("tfl.strided_slice", [shape, *first], [batch], {**masks, "offset": False}),
        Op("tfl.pack", [batch, *(const(np.asarray(v), i32) for v in tail)], [packed], {"values_count": 4, "axis": 0}),
    ]
    return ops, packed


def test_what_is_known() -> None:
    x = argument((None, 3, 3, 2), UniformQuantizedType.of(i8, 0.5, 3))
    _, packed = sizes(x, [6, 6, 4])
    assert known_elements(packed) == [None, 6, 6, 4]
    assert known_elements(const(np.asarray([1, 2]), i32)) == [1, 2]
    assert known_elements(argument((3,), i32)) == [None] * 3
    assert known_elements(argument((None,), i32)) is None
    joined = argument((3,), i32)
    Op("tfl.concatenation", [argument((1,), i32), const(np.asarray([7, 8]), i32)], [joined])
    assert known_elements(joined) == [None, 7, 8]


def test_transpose_conv_whose_size_follows_the_batch() -> None:
    rng = np.random.default_rng(0)
    x = argument((None, 3, 3, 2), UniformQuantizedType.of(i8, 0.5, 3))
    ops, packed = sizes(x, [6, 6, 4])
    weights = const(
        rng.integers(-127, 128, (4, 3, 3, 2)), UniformQuantizedPerAxisType.of(i8, 0, [0.01, 0.02, 0.03, 0.04]), "w"
    )
    y = Value(TensorType((None, 6, 6, 4), UniformQuantizedType.of(i8, 0.4, -5)), "y")
    options = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "fused_activation_function": "NONE"}
    ops.append(Op("tfl.transpose_conv", [packed, weights, x], [y], options, info={"version": 3}))
    data = bytes(tflq.write(Module([Function("main", [x], [y], ops)])))
    conversion = tflq.convert(data)
    assert conversion.report.counts["float"] == 0
    for batch in (1, 3):
        inputs = [[rng.integers(-128, 128, (batch, 3, 3, 2), np.int8)]]
        np.testing.assert_array_equal(interpret(conversion.data, inputs)[0][0], interpret(data, inputs)[0][0])
