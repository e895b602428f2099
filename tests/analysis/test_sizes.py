"""Shapes that a model with an open batch computes."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, interpret

import tflq
from tflq.analysis.known import known_elements
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32, ui8

MASKS = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis")} | {"offset": False}


def sizes(x: Value, tail: list[int]) -> tuple[list[Op], Value]:
    """[batch of x, *tail], as Keras models compute it."""
    shape, batch = argument((4,), i32, "shape"), argument((), i32, "batch")
    packed = argument((1 + len(tail),), i32, "sizes")
    first = [const(np.asarray([v]), i32, f"at{i}") for i, v in enumerate((0, 1, 1))]
    ops = [
        Op("tfl.shape", [x], [shape], {"out_type": "INT32"}),
        Op("tfl.strided_slice", [shape, *first], [batch], {**MASKS, "shrink_axis_mask": 1}),
        Op("tfl.pack", [batch, *(const(np.asarray(v), i32) for v in tail)], [packed], {"values_count": 4, "axis": 0}),
    ]
    return ops, packed


def elements(value: Value, *, any_batch: bool = False) -> list[int | None] | None:
    known = known_elements(value, any_batch=any_batch)
    return None if known is None else known.elements()


def test_what_is_known() -> None:
    x = argument((None, 3, 3, 2), UniformQuantizedType.of(i8, 0.5, 3))
    _, packed = sizes(x, [6, 6, 4])
    assert elements(packed) == [None, 6, 6, 4]
    assert elements(const(np.asarray([1, 2]), i32)) == [1, 2]
    assert elements(argument((3,), i32)) is None
    joined = argument((3,), i32)
    Op("tfl.concatenation", [argument((1,), i32), const(np.asarray([7, 8]), i32)], [joined])
    assert elements(joined) == [None, 7, 8]


def test_the_batch_of_a_static_model_is_not_known_where_it_may_be_another() -> None:
    _, packed = sizes(argument((1, 3, 3, 2), i8), [6, 6, 4])
    assert elements(packed) == [1, 6, 6, 4]
    assert elements(packed, any_batch=True) == [None, 6, 6, 4]


def test_a_long_chain_of_sizes() -> None:
    """Neither recursion nor the same walk twice."""
    value = const(np.asarray([0, 0]), i32)
    for _ in range(3000):
        total = argument((2,), i32)
        Op("tfl.add", [value, value], [total], {"fused_activation_function": "NONE"})
        value = total
    assert elements(value) == [0, 0]


def enlarged(x: Value, factors: list[int], first: int = 0) -> tuple[list[Op], Value]:
    """The dims of x from one on, times factors: computed from its SHAPE."""
    shape, part, size = (
        argument((n,), i32, name) for n, name in ((4, "shape"), (4 - first, "part"), (4 - first, "size"))
    )
    bounds = [const(np.asarray(v), i32) for v in ([first], [4], [1])]
    ops = [
        Op("tfl.shape", [x], [shape], {"out_type": "INT32"}),
        Op("tfl.strided_slice", [shape, *bounds], [part], {**MASKS, "shrink_axis_mask": 0}),
        Op("tfl.mul", [part, const(np.asarray(factors), i32)], [size], {"fused_activation_function": "NONE"}),
    ]
    return ops, size


def same_in_batches(x: Value, y: Value, ops: list[Op], seed: int = 0) -> None:
    """Converts a model without the float fallback, and compares the results in batches of 1 and 3."""
    rng, storage = np.random.default_rng(seed), x.type.storage
    data = bytes(tflq.write(Module([Function("main", [x], [y], ops)])))
    conversion = tflq.convert(data, fallback="error")
    for batch in (1, 3):
        shape = (batch, *(d or 1 for d in x.type.dims[1:]))
        inputs = [[rng.integers(storage.minimum, storage.maximum, shape, storage.dtype, endpoint=True)]]
        np.testing.assert_array_equal(interpret(conversion.data, inputs)[0][0], interpret(data, inputs)[0][0])


@pytest.mark.parametrize("batch", [None, 1])
def test_transpose_conv_of_a_computed_size(batch: int | None) -> None:
    rng = np.random.default_rng(0)
    x = argument((batch, 3, 5, 2), UniformQuantizedType.of(i8, 0.5, 3))
    ops, size = enlarged(x, [1, 2, 2, 2])
    parameters = UniformQuantizedPerAxisType.of(i8, 0, [0.01, 0.02, 0.03, 0.04])
    weights = const(rng.integers(-127, 128, (4, 3, 3, 2)), parameters, "w")
    y = Value(TensorType((batch, 6, 10, 4), UniformQuantizedType.of(i8, 0.4, -5)), "y")
    options = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "fused_activation_function": "NONE"}
    same_in_batches(x, y, [*ops, Op("tfl.transpose_conv", [size, weights, x], [y], options, info={"version": 3})])


@pytest.mark.parametrize("storage", [i8, ui8])
@pytest.mark.parametrize("batch", [None, 1])
@pytest.mark.parametrize("name", ["resize_bilinear", "resize_nearest_neighbor"])
def test_resize_to_a_computed_size(name: str, batch: int | None, storage: ScalarType) -> None:
    x = argument((batch, 3, 5, 2), UniformQuantizedType.of(storage, 0.5, 3))
    ops, size = enlarged(x, [2, 3, 1], 1)
    plane, y = argument((2,), i32, "plane"), Value(TensorType((batch, 6, 15, 2), x.type.element), "y")
    bounds = [const(np.asarray(v), i32) for v in ([0], [2])]
    options = {"align_corners": False, "half_pixel_centers": True}
    version = {"version": 3 if storage is i8 or "nearest" in name else 1}
    last = Op(f"tfl.{name}", [x, plane], [y], options, info=version)
    same_in_batches(x, y, [*ops, Op("tfl.slice", [size, *bounds], [plane], {}), last])


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
    same_in_batches(x, y, ops)
