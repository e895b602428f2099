"""What was lost once when inputs were resized, each in the smallest model that shows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret
from support.memory import memory

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import Shape, TensorType, UniformQuantizedType, i8, i32, resource
from tflq.transforms.shape_settling import settle

Q, R = UniformQuantizedType.of(i8, 0.05, 3), UniformQuantizedType.of(i8, 0.04, -7)
FORMS: list[dict[str, Any]] = [{}, {"mac": "float32"}, {"target": "kernels"}]
FUSED = {"fused_activation_function": "NONE"}


def model(x: Value, *ops: Op) -> bytes:
    return bytes(write(Module([Function("main", [x], [ops[-1].result], list(ops))])))


def turned_mean() -> bytes:
    """The batch becomes a dim of which the mean is taken."""
    x, y, z = argument((1, 4, 3), Q), argument((4, 1, 3), Q, "y"), argument((4, 3), R, "z")
    axis = const(np.asarray([1]), i32, "axis")
    perm = const(np.asarray([1, 0, 2]), i32, "perm")
    turn = Op("tfl.transpose", [x, perm], [y], {}, info={"version": 2})
    return model(x, turn, Op("tfl.mean", [y, axis], [z], {"keep_dims": False}, info={"version": 2}))


def batch_among_columns() -> bytes:
    """RESHAPE by constants puts what the batch adds into another dim than the first."""
    x, y, z = argument((2, 4, 3), Q), argument((2, 4, 3), Q, "y"), argument((2, 3), R, "z")
    sizes = const(np.asarray([2, -1, 3]), i32, "sizes")
    fold = Op("tfl.reshape", [x, sizes], [y], {"new_shape": sizes.array})
    axis = const(np.asarray([1]), i32, "axis")
    return model(x, fold, Op("tfl.mean", [y, axis], [z], {"keep_dims": False}, info={"version": 2}))


def dense_rows() -> bytes:
    """FULLY_CONNECTED on rows of which the file leaves the number open, and the batch not."""
    x, y = argument((1, None, 4), Q), argument((1, None, 2), R, "y")
    x.info, y.info = {"shape": (1, 5, 4)}, {"shape": (1, 5, 2)}
    weights = const(np.arange(8).reshape(2, 4) * 9 - 30, UniformQuantizedType.of(i8, 0.02), "w")
    options = {"weights_format": "DEFAULT", "keep_num_dims": True, "asymmetric_quantize_inputs": False, **FUSED}
    return model(x, Op("tfl.fully_connected", [x, weights, None], [y], options, info={"version": 4}))


@pytest.mark.parametrize("options", FORMS, ids=str)
@pytest.mark.parametrize(
    ("data", "sizes"),
    [
        (turned_mean(), [(1, 4, 3), (3, 4, 3), (2, 4, 3)]),
        (batch_among_columns(), [(2, 4, 3), (1, 4, 3), (3, 4, 3)]),
        (dense_rows(), [(1, 5, 4), (3, 5, 4), (2, 7, 4)]),
    ],
    ids=["turned", "folded", "dense"],
)
def test_a_batch_that_shows_up_elsewhere(data: bytes, sizes: list[tuple[int, ...]], options: dict[str, Any]) -> None:
    made = tflq.convert(data, **options).data
    source, result = tflq.read(data).main, tflq.read(made).main
    assert [v.type.shape for v in (*result.inputs, *result.outputs)] == [
        v.type.shape for v in (*source.inputs, *source.outputs)
    ]
    assert (memory(made).dynamic, memory(made).restated) == ((), ())
    for size in sizes:
        assert not memory(made, size).dynamic
        inputs = edge_inputs([argument(size, Q)])
        for want, got in zip(interpret(data, inputs), interpret(made, inputs), strict=True):
            np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize(
    ("shape", "perm", "found"), [((1, 4, 3), (1, 0, 2), (4, None, 3)), ((1, 4, 3), (0, 2, 1), (1, 3, 4))]
)
def test_only_a_batch_elsewhere_is_open(shape: Shape, perm: tuple[int, ...], found: Shape) -> None:
    x, y = Value(TensorType(shape, Q), "x"), Value(TensorType(None, Q), "y")
    module = Module([Function("main", [x], [y], [Op("tfl.transpose", [x, const(np.asarray(perm), i32)], [y], {})])])
    settle(module)
    assert (x.type.shape, y.type.shape) == (shape, found)


def test_a_batch_that_cannot_be_resized_stays() -> None:
    """RESHAPE by constants alone: no interpreter runs it with another batch."""
    x, y, z = (Value(TensorType(s, Q), n) for s, n in (((1, 4, 3), "x"), ((12,), "y"), ((4, 1, 3), "z")))
    flat, sizes = const(np.asarray([12]), i32), const(np.asarray([1, 0, 2]), i32)
    ops = [Op("tfl.transpose", [x, sizes], [z], {}), Op("tfl.reshape", [z, flat], [y], {"new_shape": None})]
    settle(Module([Function("main", [x], [y], ops)]))
    assert z.type.shape == (4, 1, 3)


def held_slice() -> bytes:
    """The kernel of SLICE gives the shape that the file states, and refuses another batch."""
    x, y, z = argument((1, 4, 3), Q), argument((1, 4, 3), Q, "y"), argument((1, 3, 3), Q, "z")
    sizes, begin, count = (const(np.asarray(a), i32) for a in ([1, -1, 3], [0, 1, 0], [1, -1, -1]))
    fold = Op("tfl.reshape", [x, sizes], [y], {"new_shape": sizes.array})
    return model(x, fold, Op("tfl.slice", [y, begin, count], [z], {}, info={"version": 2}))


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_a_batch_that_a_slice_refuses_opens_nothing(options: dict[str, Any]) -> None:
    data = held_slice()
    with pytest.raises(Exception, match="SLICE"):
        memory(data, (3, 4, 3))
    made = tflq.convert(data, **options).data
    assert (memory(made).dynamic, memory(made).restated) == ((), ())
    convert_and_compare(data, edge_inputs([argument((1, 4, 3), Q)]))


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_handles_can_be_read(options: dict[str, Any]) -> None:
    """A handle of type RESOURCE has no form that `get_tensor` knows: it takes what memory holds for text."""
    x, y, read = argument((1, 4), Q), argument((1, 4), Q, "y"), argument((1, 4), Q, "read")
    start = const(np.arange(4), Q, "start")
    handles = [Value(TensorType((), resource), name) for name in ("inside", "outside")]
    word = {"container": "", "shared_name": "state"}
    begin = [Op("tfl.var_handle", [], handles[:1], dict(word)), Op("tfl.assign_variable", [handles[0], start], [], {})]
    ops = [
        Op("tfl.call_once", [], [], {"init_subgraph_index": 1}),
        Op("tfl.var_handle", [], handles[1:], dict(word)),
        Op("tfl.read_variable", [handles[1]], [read], {}),
        Op("tfl.add", [x, read], [y], {**FUSED, "pot_scale_int16": False}, info={"version": 2}),
        Op("tfl.assign_variable", [handles[1], y], [], {}),
    ]
    data = bytes(write(Module([Function("main", [x], [y], ops), Function("start", [], [], begin)])))
    made = convert_and_compare(data, edge_inputs([x]), **options)
    assert not [v.name for v in made.module.main.values() if v.type.storage == resource]
    assert memory(made.data).dynamic == ()


def test_each_call_has_the_shapes_of_its_own_arguments() -> None:
    """Two signatures run one function on other sizes, and state those."""

    def entry(name: str, index: int, rows: int) -> tuple[Function, Signature]:
        x, y = argument((1, rows, 3), Q, f"{name}.x"), Value(TensorType(None, Q), f"{name}.y")
        call = Op("tfl.call", [x], [y], {"subgraph": 2})
        return Function(name, [x], [y], [call]), Signature(name, index, [("x", x)], [("y", y)])

    (one, first), (two, second) = entry("one", 0, 4), entry("two", 1, 6)
    a, b = Value(TensorType(None, Q), "a"), Value(TensorType(None, Q), "b")
    body = Function("body", [a], [b], [Op("tfl.relu", [a], [b], {})])
    settle(Module([one, two, body], [first, second]), resizable=False)
    assert [f.outputs[0].type.shape for f in (one, two)] == [(1, 4, 3), (1, 6, 3)]
    assert b.type.shape == (1, None, 3)


def test_computed_weights_keep_the_size_that_is_stated() -> None:
    """A filter that is an input, transposed: with open dims it would be computed in float."""
    r = UniformQuantizedType.of(i8, 0.02)
    x, y = argument((1, 6, 6, 2), Q), argument((1, 6, 6, 4), R, "y")
    w, f = argument((3, 3, 2, 4), r, "w"), argument((4, 3, 3, 2), r, "f")
    turn = Op("tfl.transpose", [w, const(np.asarray([3, 0, 1, 2]), i32, "perm")], [f], {}, info={"version": 4})
    windows = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    conv = Op("tfl.conv_2d", [x, f, None], [y], {**windows, **FUSED, "quantized_bias_type": "FLOAT32"})
    data = bytes(write(Module([Function("main", [x, w], [y], [turn, conv])])))
    assert tflq.convert(data).report.counts == {"integer": 2, "float": 0, "kept": 0}


def dense(x: Value, depth: int) -> Op:
    """FULLY_CONNECTED on rows of so many elements."""
    y = Value(TensorType(None, R), "dense")
    weights = const(np.arange(3 * depth).reshape(3, depth) * 5 - 40, UniformQuantizedType.of(i8, 0.02), "w")
    options = {"weights_format": "DEFAULT", "keep_num_dims": False, "asymmetric_quantize_inputs": False, **FUSED}
    return Op("tfl.fully_connected", [x, weights, None], [y], options, info={"version": 4})


@pytest.mark.parametrize("options", FORMS, ids=str)
@pytest.mark.parametrize("sizes", [(1, -1), (-1,), None], ids=str)
def test_the_kernel_leaves_out_what_fills_no_row(sizes: tuple[int, ...] | None, options: dict[str, Any]) -> None:
    """Two rows of 14 elements; of 42 elements three, of 14 one, of 21 one and a half, of 7 none."""
    x, flat = argument((4, 7), Q), Value(TensorType(None, Q), "flat")
    fold = Op("tfl.reshape", [x, const(np.asarray(sizes or 0), i32, "sizes")], [flat], {"new_shape": None})
    data = model(x, fold, dense(flat, 14)) if sizes else model(x, dense(x, 14))
    made = tflq.convert(data, **options)
    assert made.report.counts["float"] == 0
    for rows in (4, 6, 2, 3, 1, 5):
        inputs = edge_inputs([argument((rows, 7), Q)])
        assert not memory(made.data, (rows, 7)).dynamic
        for want, got in zip(interpret(data, inputs), interpret(made.data, inputs), strict=True):
            np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("options", FORMS, ids=str)
@pytest.mark.parametrize(("shape", "depth"), [((3, 5), 6), ((1, 7), 14), ((7,), 3)], ids=str)
def test_a_stated_size_that_fills_no_row(shape: tuple[int, ...], depth: int, options: dict[str, Any]) -> None:
    x = argument(shape, Q)
    convert_and_compare(model(x, dense(x, depth)), edge_inputs([x]), **options)


@pytest.mark.parametrize(("shape", "depth"), [((3, 5), 6), ((4, 7), 14)], ids=str)
def test_what_fills_no_row_in_tosa(shape: tuple[int, ...], depth: int) -> None:
    x = argument(shape, Q)
    assert tflq.convert(model(x, dense(x, depth)), format="tosa").report.counts["float"] == 0


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_a_result_in_front_of_one_of_dynamic_size(options: dict[str, Any]) -> None:
    """The interpreter prepares nothing behind the first RESHAPE by a computed size; what is returned from in front of
    it has memory before the first run."""
    x, y, z = argument((1, 4, 3), Q), argument((1, 4, 3), R, "y"), argument((1, 1, 12), R, "z")
    sizes = argument((3,), i32, "sizes")
    ops = [
        Op("tfl.quantize", [x], [y], {}, info={"version": 2}),
        Op("tfl.reshape", [y, sizes], [z], {"new_shape": None}),
    ]
    data = bytes(write(Module([Function("main", [x, sizes], [z, y], ops)])))
    draws = [[*inputs, np.asarray([1, 1, 12], np.int32)] for inputs in edge_inputs([x])]
    made = convert_and_compare(data, draws, **options)
    assert memory(made.data).dynamic == memory(data).dynamic == ()
