"""What was lost once when inputs were resized, each in the smallest model that shows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret
from support.memory import memory

import tflq
from tflq.flatbuffer.writer import write
from tflq.ir.core import Function, Module, Op, Signature, Value
from tflq.ir.types import Shape, TensorType, UniformQuantizedType, i8, i32, resource
from tflq.shapes.settling import settle

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
