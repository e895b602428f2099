"""Settling: stated shapes that say less, something else, or a number where the input is open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, interpret

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import SCALARS, Shape, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i8, i32
from tflq.transforms.shape_settling import settle

Q = UniformQuantizedType.of(i8, 0.5, 3)
PER_AXIS = UniformQuantizedPerAxisType.of(i8, 1, [0.5, 0.25, 0.125])


def stated(x: Value, *shapes: Shape, name: str = "tfl.abs", **attributes: Any) -> Module:
    """A chain of operators on x whose results are stated to have these shapes."""
    ops: list[Op] = []
    for i, shape in enumerate(shapes):
        result = Value(TensorType(shape, x.type.element), f"y{i}")
        ops.append(Op(name, [ops[-1].result if ops else x], [result], dict(attributes)))
    return Module([Function("main", [x], [ops[-1].result], ops)])


@pytest.mark.parametrize(
    ("given", "said", "found"),
    [
        ((2, 3), (2, None), (2, 3)),
        ((2, 3), None, (2, 3)),
        ((2, 3), (4, 5), (2, 3)),
        ((2, 3), (6,), (2, 3)),
        ((None, 3), (1, 3), (None, 3)),
        ((None, 3), (None, 3), (None, 3)),
        ((), None, ()),
        (None, (2, 3), (2, 3)),
        (None, None, None),
        ((0, 3), (None, 3), (0, 3)),
    ],
    ids=[
        "open",
        "no rank",
        "other dims",
        "other rank",
        "one for open",
        "open batch",
        "scalar",
        "input",
        "all",
        "empty",
    ],
)
def test_a_result_gets_what_follows(given: Shape, said: Shape, found: Shape) -> None:
    module = stated(Value(TensorType(given, f32), "x"), said, said)
    settle(module)
    assert [op.result.type.shape for op in module.ops()] == [found, found]
    assert module.main.inputs[0].type.shape == given


def test_what_does_not_follow_is_as_stated() -> None:
    """A shape computed from data."""
    x, sizes = argument((2, 3), f32, "x"), argument((2,), i32, "sizes")
    y = Value(TensorType((3, 2), f32), "y")
    module = Module([Function("main", [x, sizes], [y], [Op("tfl.reshape", [x, sizes], [y], {"new_shape": None})])])
    settle(module)
    assert y.type.shape == (3, 2)


def test_an_entry_states_its_results_again() -> None:
    x = argument((None, 3), f32, "x")
    module = stated(x, None, (1, None))
    kept = settle(module)
    inner, outer = (op.result for op in module.ops())
    assert (inner.type.shape, outer.type.shape) == ((None, 3), (None, 3))
    kept.put_back(module)
    assert (inner.type.shape, outer.type.shape) == ((None, 3), (1, None))


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ((2, 4), r"dims of its operands: 3 and 4 differ"),
        ((2, 3, 1), r"'y' is \[2, 3, 1\], not of rank 2"),
    ],
)
def test_operands_that_do_not_fit_are_named(shape: tuple[int, ...], why: str) -> None:
    x, y, z = argument((2, 3), f32, "x"), argument(shape, f32, "y"), Value(TensorType((2, 3), f32), "z")
    module = Module([Function("main", [x, y], [z], [Op("tfl.add_n", [x, y], [z], {})])])
    with pytest.raises(tflq.UnsupportedError, match=rf"function 0, tfl.add_n: {why}; no interpreter runs it"):
        settle(module)


@pytest.mark.parametrize("shape", [(2, 4), (2,)])
def test_parameters_that_do_not_fit_are_named(shape: tuple[int, ...]) -> None:
    x = argument((2, 3), Q, "x")
    y = Value(TensorType((2, None), PER_AXIS), "y")
    module = Module([Function("main", [x], [y], [Op("tfl.abs", [x], [y], {})])])
    settle(module)
    x.type = TensorType(shape, Q)
    with pytest.raises(tflq.UnsupportedError, match=r"result 'y' is .* does not fit its parameters: "):
        settle(module)


def test_scales_along_a_dim_that_a_vector_lacks() -> None:
    """They are read along its only one, written again as they were, and by a conversion as they are read."""
    bias = UniformQuantizedPerAxisType.of(i32, 0, [0.25, 0.125])
    weights = UniformQuantizedPerAxisType.of(i8, 0, [0.5, 0.25])
    x, y = argument((1, 3), Q, "x"), argument((1, 2), Q, "y")
    w = const(np.ones((2, 3)), weights, "w")
    b = Value(TensorType((2,), bias), "b", buffer=const(np.ones(2), i32).buffer, info={"quantized_dimension": 3})
    options = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    options["asymmetric_quantize_inputs"] = False
    op = Op("tfl.fully_connected", [x, w, b], [y], options, info={"version": 4})
    module = tflq.read(bytes(write(Module([Function("main", [x], [y], [op])]))))
    assert any("quantized_dimension 3 is not a dim of a tensor of rank 1" in w for w in module.warnings)
    (op,) = module.main.ops
    assert op.operand(2).type.element == bias
    assert tflq.read(tflq.write(module)) == module
    settle(module)
    (op,) = tflq.read(tflq.write(module)).main.ops
    assert "quantized_dimension" not in op.operand(2).info


def test_inputs_are_held_against_their_parameters_too() -> None:
    x, y = argument((2, 4), PER_AXIS, "x"), Value(TensorType((2, 4), Q), "y")
    module = Module([Function("main", [x], [y], [Op("tfl.quantize", [x], [y], {})])])
    with pytest.raises(tflq.UnsupportedError, match=r"input 'x' is 2x4xqi8, .*there are 3 scales, but dim 1 .* is 4"):
        settle(module)


def test_what_is_read_of_a_variable_has_the_stored_shape() -> None:
    """Its kernel looks at nothing else."""
    handle = Value(TensorType((1,), SCALARS["!tfl.resource"]), "handle")
    read = Value(TensorType((None, 3), f32), "read", info={"shape": (2, 3)})
    y = Value(TensorType((None, 3), f32), "y")
    ops = [
        Op("tfl.var_handle", [], [handle], {"container": "", "shared_name": "v"}),
        Op("tfl.read_variable", [handle], [read]),
        Op("tfl.abs", [read], [y]),
    ]
    settle(Module([Function("main", [], [y], ops)]))
    assert (read.type.shape, y.type.shape) == ((2, 3), (2, 3))


def folded(rows: tuple[int | None, ...]) -> Module:
    """The batch of x in the rows of a RESHAPE, and another input beside it; three int8 operators."""
    x, z = argument(rows, Q, "x"), argument((2, 6), Q, "z")
    flat, turned, y = (Value(TensorType(s, Q), n) for s, n in (((6, 4), "flat"), ((4, 6), "turned"), ((4, 6), "y")))
    double = Value(TensorType((2, 6), Q), "double")
    options = {"fused_activation_function": "NONE", "pot_scale_int16": False}
    ops = [
        Op("tfl.reshape", [x, const(np.asarray([-1, 4]), i32)], [flat], {"new_shape": [-1, 4]}),
        Op("tfl.transpose", [flat, const(np.asarray([1, 0]), i32)], [turned], {}),
        Op("tfl.add", [turned, turned], [y], options),
        Op("tfl.add", [z, z], [double], options),
    ]
    return Module([Function("main", [x, z], [y, double], ops)])


def open_tensors(model: bytes) -> set[str]:
    return {v.name for v in tflq.read(model).main.values() if v.type.shape is not None and None in v.type.shape}


@pytest.mark.parametrize("target", ["integer", "kernels"])
def test_a_static_model_stays_static_in_its_signatures(target: str) -> None:
    """Dims that follow from the batch are open in a conversion, so that the model can be resized, not in the file."""
    model = bytes(write(folded((1, 6, 4))))
    result = tflq.convert(model, target=target).data
    assert not open_tensors(result)
    rng = np.random.default_rng(0)
    batches = [[rng.integers(-128, 128, shape, np.int8) for shape in ((n, 6, 4), (2, 6))] for n in (3, 1)]
    for resized in batches:
        assert all(map(np.array_equal, interpret(model, [resized])[0], interpret(result, [resized])[0]))


def test_a_dim_that_the_source_opens_stays_open() -> None:
    result = tflq.convert(bytes(write(folded((None, 6, 4))))).data
    assert {name.partition("/")[0] for name in open_tensors(result)} == {"x", "flat", "turned", "y"}


def test_the_result_of_slice_stays_open() -> None:
    """Its kernel takes a shape that is stated for the one of every batch."""
    x, y = argument((1, 6, 4), Q, "x"), Value(TensorType((4, 6), Q), "y")
    flat, part = Value(TensorType((None, 4), Q), "flat"), Value(TensorType((None, 4), Q), "part")
    ops = [
        Op("tfl.reshape", [x, const(np.asarray([-1, 4]), i32)], [flat], {"new_shape": [-1, 4]}),
        Op("tfl.slice", [flat, *(const(np.asarray(v), i32) for v in ([0, 0], [-1, 4]))], [part], {}),
        Op("tfl.transpose", [part, const(np.asarray([1, 0]), i32)], [y], {}),
    ]
    model = bytes(write(Module([Function("main", [x], [y], ops)])))
    result = tflq.convert(model).data
    assert open_tensors(result) == {"part"}
    resized = [np.random.default_rng(0).integers(-128, 128, (3, 6, 4), np.int8)]
    assert np.array_equal(interpret(model, [resized])[0][0], interpret(result, [resized])[0][0])
