"""Binding of an open batch: all shapes known, sizes constant, results those of the resized original."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matrix.run import case_of
from support.harness import argument, const, edge_inputs, interpret, one_op

import tflq
from tflq.base.errors import TflqError, UnsupportedError
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import Shape, TensorType, UniformQuantizedType, f32, i1, i8, i32
from tflq.transforms.pass_manager import verify_stage
from tflq.transforms.shape_binding import bind_batch
from tflq.transforms.shape_inference import Inference, infer, stale

MASKS = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")} | {"offset": False}


def ints(*values: int) -> Value:
    return const(np.asarray(values), i32)


def emit(
    ops: list[Op], name: str, operands: Sequence[Value | None], shape: Shape, element: Any = f32, **options: Any
) -> Value:
    result = Value(TensorType(shape, element), f"r{len(ops)}")
    ops.append(Op(f"tfl.{name}", list(operands), [result], options))
    return result


def scaled_by_size() -> Module:
    """Half as large, resized by what the model computes of its input's size, then flattened by its batch."""
    x = argument((None, 4, 6, 2), f32)
    ops: list[Op] = []
    size = emit(ops, "shape", [x], (4,), i32, out_type="INT32")
    plane = emit(ops, "strided_slice", [size, ints(1), ints(3), ints(1)], (2,), i32, **MASKS)
    wide = emit(ops, "cast", [plane], (2,), f32, in_data_type="INT32", out_data_type="FLOAT32")
    half = emit(ops, "mul", [wide, const(np.asarray(0.5), f32)], (2,), f32, fused_activation_function="NONE")
    whole = emit(ops, "cast", [half], (2,), i32, in_data_type="FLOAT32", out_data_type="INT32")
    options = {"align_corners": False, "half_pixel_centers": False}
    small = emit(ops, "resize_nearest_neighbor", [x, whole], (None, None, None, 2), **options)
    count = emit(ops, "gather", [size, const(np.asarray(0), i32)], (), i32, axis=0, batch_dims=0)
    shape = emit(ops, "pack", [count, const(np.asarray(12), i32)], (2,), i32, values_count=2, axis=0)
    flat = emit(ops, "reshape", [small, shape], (None, None), new_shape=None)
    return Module([Function("main", [x], [flat], ops)])


def fixed(*shape: int) -> Module:
    """Every first dim is 1."""
    x = argument((1, 4), f32)
    ops: list[Op] = []
    y = emit(ops, "abs", [x], (1, 4))
    z = emit(ops, "reshape", [y, ints(*shape)], (1, 2, 2), new_shape=None)
    return Module([Function("main", [x], [z], ops)])


def check_equal(module: Module, bound: Module, n: int) -> None:
    """Both give the same for the same inputs, and the bound one needs no resize."""
    verify_stage(bound, "tfl", "binding")
    assert all(v.type.is_static for f in bound.functions for v in f.values())
    data = bytes(write(bound))
    read(data)
    batches = edge_inputs(bound.main.inputs)
    assert all(a.shape[0] == n for a in batches[0])
    for want, got in zip(interpret(bytes(write(module)), batches), interpret(data, batches), strict=True):
        for w, g in zip(want, got, strict=True):
            np.testing.assert_array_equal(g, w)
            assert g.shape == w.shape


def test_sizes_that_the_model_computes_are_constants() -> None:
    bound = bind_batch(scaled_by_size(), 5)
    assert [op.name for op in bound.ops()] == ["tfl.resize_nearest_neighbor", "tfl.reshape"]
    resized, flat = (op.result.type.shape for op in bound.ops())
    assert resized == (5, 2, 3, 2)
    assert flat == (5, 12)
    assert [int(v) for v in bound.main.ops[1].operand(1).array] == [5, 12]
    check_equal(scaled_by_size(), bound, 5)


@pytest.mark.parametrize("number", range(6))
def test_flattened_batches_of_the_matrix(number: int) -> None:
    data = case_of("flatten", number).model
    bound = bind_batch(read(data), 3)
    assert not {op.name for op in bound.ops()} & {"tfl.shape", "tfl.strided_slice", "tfl.pack"}
    check_equal(read(data), bound, 3)


@pytest.mark.parametrize("name", ["cnn_int8", "cnn_uint8", "cnn_int16x8"])
def test_models(name: str, models: Path) -> None:
    path = models / f"{name}.tflite"
    try:
        module = read(path)
        bound = bind_batch(
            module, dims={v.name: [2, *(d or 0 for d in (v.type.shape or ())[1:])] for v in module.main.inputs}
        )
    except UnsupportedError as error:
        assert "RESHAPE" in str(error)  # noqa: PT017 - made for one batch
        return
    check_equal(read(path), bound, 2)


def test_a_model_made_for_one_item_takes_another_shape() -> None:
    bound = bind_batch(fixed(-1, 2, 2), dims={"x": (8, 4)})
    assert bound.main.outputs[0].type.shape == (8, 2, 2)
    check_equal(fixed(-1, 2, 2), bound, 8)


def test_a_batch_needs_an_open_dim() -> None:
    with pytest.raises(TflqError, match=r"no open dim for a batch: input 'x' \[1, 4\]; give .*--shape"):
        bind_batch(fixed(-1, 2, 2), 8)


def test_a_constant_batch_inside_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"tfl.reshape: \[8, 4\] does not have as many elements") as error:
        bind_batch(fixed(1, 2, 2), dims={"x": (8, 4)})
    assert len(error.value.reasons) == 1


def test_a_refused_module_stays_as_it_was() -> None:
    module = fixed(1, 2, 2)
    with pytest.raises(UnsupportedError):
        bind_batch(module, dims={"x": (8, 4)})
    assert module == fixed(1, 2, 2)


def test_other_open_dims_are_named() -> None:
    def make() -> Module:
        x = argument((None, None, 6, 2), f32, "image")
        ops: list[Op] = []
        y = emit(ops, "abs", [x], (None, None, 6, 2))
        return Module([Function("main", [x], [y], ops)], [Signature("run", 0, [("picture", x)], [("y", y)])])

    with pytest.raises(UnsupportedError, match=r"input 'image' \[2, \?, 6, 2\]: dim\(s\) 1 are not known"):
        bind_batch(make(), 2)
    for name in ("image", "picture"):
        bound = bind_batch(make(), dims={name: (2, 5, 6, 2)})
        assert bound.main.outputs[0].type.shape == (2, 5, 6, 2)
    with pytest.raises(TflqError, match="there is no input 'img'; the inputs are 'image', 'picture'"):
        bind_batch(make(), dims={"img": (2, 5, 6, 2)})


def test_without_a_batch_only_sizes_become_constants() -> None:
    with pytest.raises(UnsupportedError, match=r"input 'x' \[\?, 4, 6, 2\]: dim\(s\) 0 are not known; give a batch"):
        bind_batch(scaled_by_size())
    module = bind_batch(bind_batch(scaled_by_size(), 2))
    assert module == bind_batch(scaled_by_size(), 2)


def test_a_size_can_be_what_the_model_gives() -> None:
    def make() -> Module:
        x = argument((None, 4), f32)
        ops: list[Op] = []
        y = emit(ops, "shape", [x], (2,), i32, out_type="INT32")
        return Module([Function("main", [x], [y, x], ops)])

    bound = bind_batch(make(), 3)
    assert bound.main.ops == []
    check_equal(make(), bound, 3)


def test_what_only_the_data_say_is_named() -> None:
    x = argument((None, 3), f32)
    ops: list[Op] = []
    zero = emit(ops, "zeros_like", [x], (None, 3))
    condition = Value(TensorType((None, 3), i1), "c")
    ops.append(Op("tfl.greater", [x, zero], [condition]))
    where = emit(ops, "where", [condition], (None, 2), i32)
    emit(ops, "abs", [where], (None, 2), i32)
    module = Module([Function("main", [x], [ops[-1].result], ops)])
    with pytest.raises(UnsupportedError, match=r"tfl\.where: the size of its result depends on what") as error:
        bind_batch(module, 4)
    assert len(error.value.reasons) == 1


def custom(shape: tuple[int | None, ...]) -> Module:
    """A custom operator of the input, one of a constant."""
    x = argument((None, 3), f32)
    ops: list[Op] = []
    emit(ops, "custom", [const(np.zeros(3), f32)], (7,), custom_code="Table")
    emit(ops, "custom", [x], shape, custom_code="Magic")
    return Module([Function("main", [x], [op.result for op in ops], ops)])


def test_custom_operators_of_the_batch_are_named() -> None:
    with pytest.raises(UnsupportedError, match="what shape Magic gives for an operand 'x' of another shape") as error:
        bind_batch(custom((1, 3)), 4)
    assert len(error.value.reasons) == 1


def test_stated_shapes_that_are_wrong_are_named() -> None:
    x = argument((None, 3), f32)
    ops: list[Op] = []
    y = emit(ops, "concatenation", [x, x], (None, 5), axis=1, fused_activation_function="NONE")
    module = Module([Function("main", [x], [y], ops)])
    reason = r"function 0, tfl.concatenation: 'r0' is stated as \[\?, 5\], but .* \[\?, 6\]"
    with pytest.raises(UnsupportedError, match=reason):
        bind_batch(module, 4)
    assert len(list(stale(module, Inference(module, {})))) == 1
    assert infer(module).main.outputs[0].type.shape == (None, 6)
    assert not list(stale(module, Inference(module, {})))


def test_stated_batches_of_results_follow() -> None:
    """A converter states 1 for a batch that its signature leaves open only at the input."""
    x = argument((None, 3), f32)
    ops: list[Op] = []
    y = emit(ops, "abs", [x], (1, 3))
    module = bind_batch(Module([Function("main", [x], [y], ops)]), 4)
    assert y.type.shape == (4, 3)
    assert module.main.outputs == [y]


def test_stored_forms_of_a_shape_go_with_it() -> None:
    x = Value(TensorType((None, 3), f32), "x", info={"shape": (7, 3), "is_variable": False})
    ops: list[Op] = []
    emit(ops, "abs", [x], (None, 3))
    bound = bind_batch(Module([Function("main", [x], [ops[0].result], ops)]), 4)
    assert bound.main.inputs[0].info == {"is_variable": False}


def test_every_input_may_be_given_another_shape() -> None:
    a, b = argument((4, 3), f32, "a"), argument((2, 4, 3), f32, "b")
    ops: list[Op] = []
    y = emit(ops, "add", [a, b], (2, 4, 3), fused_activation_function="NONE")
    module = Module([Function("main", [a, b], [y], ops)])
    assert bind_batch(module, dims={"a": (8, 3), "b": (2, 8, 3)}).main.outputs[0].type.shape == (2, 8, 3)


def test_an_open_batch_beside_a_fixed_input_is_bound() -> None:
    a, b = argument((None, 3), f32, "a"), argument((1, 3), f32, "b")
    ops: list[Op] = []
    y = emit(ops, "add", [a, b], (None, 3), fused_activation_function="NONE")
    module = bind_batch(Module([Function("main", [a, b], [y], ops)]), 8)
    assert [v.type.shape for v in (*module.main.inputs, y)] == [(8, 3), (1, 3), (8, 3)]


def test_a_batch_is_at_least_one() -> None:
    with pytest.raises(TflqError, match="a batch of 0"):
        bind_batch(fixed(-1, 2, 2), 0)


def test_a_shape_that_is_stated_wrong_is_the_one_computed_in_tosa() -> None:
    """As in an interpreter, which computes all shapes anew."""
    element = UniformQuantizedType.of(i8, 0.5, 3)
    x, weights = argument((1, 2, 2, 8), element), const(np.ones((3, 8), np.int8), UniformQuantizedType.of(i8, 0.1, 0))
    y = argument((1, 2, 2, 3), element, "y")
    model = one_op("tfl.fully_connected", [x, weights], [y], {"keep_num_dims": False}, 4)
    assert tflq.convert(model, format="tosa").module.main.outputs[0].type.shape == (4, 3)
