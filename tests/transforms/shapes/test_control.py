"""Shapes through functions: calls, branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from support.harness import argument, const

from tflq.analysis.known import Accesses
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import Shape, TensorType, f32, i1, i32
from tflq.transforms.shape_binding import BindShapes, bind_batch
from tflq.transforms.shape_inference import Inference

CONCATENATE = {"axis": 0, "fused_activation_function": "NONE"}


def x(*shape: int | None) -> Value:
    return argument(shape, f32)


def function(inputs: Sequence[Value], *ops: tuple[str, list[Value], dict[str, Any]]) -> Function:
    """A function of a few ops, which returns the last one's result."""
    made = [Op(f"tfl.{n}", list(o), [Value(TensorType(None, o[-1].type.element))], a) for n, o, a in ops]
    return Function("f", list(inputs), [made[-1].result] if made else list(inputs), made)


def caller(name: str, operands: list[Value], results: int, attributes: dict[str, Any], *others: Function) -> Inference:
    """What is found for an op that runs other functions, from 1 on."""
    op = Op(f"tfl.{name}", list(operands), [Value(TensorType(None, f32)) for _ in range(results)], attributes)
    inputs = [v for v in operands if v.buffer is None]
    return Inference(Module([Function("main", inputs, op.results, [op]), *others]), {})


def outputs(inference: Inference) -> list[Shape]:
    module: Module = inference._module
    return [inference.shape(v) for v in module.main.outputs]


def test_call() -> None:
    a = x(None)
    inference = caller("call", [x(2, 3)], 1, {"subgraph": 1}, function([a], ("concatenation", [a, a], CONCATENATE)))
    assert outputs(inference) == [(4, 3)]
    assert inference.shape(a) == (2, 3)


def test_composite_knows_the_elements_of_its_arguments() -> None:
    a, shape = x(None), argument((None,), i32)
    body = function([a, shape], ("reshape", [a, shape], {"new_shape": None}))
    body.ops[0].result.type = TensorType(None, f32)
    operands = [x(2, 6), const(np.asarray([3, -1]), i32)]
    assert outputs(caller("stablehlo_composite", operands, 1, {"decomposition_subgraph_index": 1}, body)) == [(3, 4)]


def test_branches_that_differ_leave_dims_open() -> None:
    a, b = x(None), x(None)
    twice, once = function([a], ("concatenation", [a, a], CONCATENATE)), function([b], ("abs", [b], {}))
    attributes = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    operands = [argument((), i1, "c"), x(2, 3)]
    assert outputs(caller("if", operands, 1, attributes, twice, once)) == [(None, 3)]
    c = x(None)
    assert outputs(caller("if", operands, 1, attributes, function([c], ("neg", [c], {})), once)) == [(2, 3)]


def loop(grows: bool) -> Inference:
    """A counter, a tensor that may grow, and a size that no round changes."""
    count, a, size = argument((), i32, "i"), x(None), argument((None,), i32, "s")
    test = function([argument((), i32), x(None), argument((None,), i32)])
    test.outputs = [const(np.asarray(True), i1)]
    more = Op("tfl.add", [count, const(np.asarray(1), i32)], [argument((), i32)], {"fused_activation_function": "NONE"})
    name, options = ("concatenation", CONCATENATE) if grows else ("add", {"fused_activation_function": "NONE"})
    grown = Op(f"tfl.{name}", [a, a], [Value(TensorType(None, f32))], options)
    made = Op("tfl.fill", [size, const(np.asarray(0), f32)], [Value(TensorType(None, f32))])
    body = Function("body", [count, a, size], [more.result, grown.result, size], [more, grown, made])
    operands = [const(np.asarray(0), i32), x(2, 3), const(np.asarray([4, 5]), i32)]
    inference = caller("while", operands, 3, {"cond_subgraph_index": 1, "body_subgraph_index": 2}, test, body)
    assert inference.shape(made.result) == (4, 5)
    assert inference.known[more.result].elements() == [None]
    return inference


def test_loops() -> None:
    assert outputs(loop(grows=False)) == [(), (2, 3), (2,)]
    assert outputs(loop(grows=True)) == [(), (None, 3), (2,)]


def test_an_open_dim_of_a_body_is_no_batch() -> None:
    a, given = x(None, 3), x(2, 3)
    body = function([a], ("abs", [a], {}))
    op = Op("tfl.call", [given], [Value(TensorType((2, 3), f32))], {"subgraph": 1})
    module = Module([Function("main", [given], op.results, [op]), body])
    BindShapes(usual=1).run(module)
    assert given.type.shape == (2, 3)


def test_a_function_called_with_two_shapes() -> None:
    a = x(None)
    body = function([a], ("abs", [a], {}))
    inputs = [x(2, 3), x(5, 3)]
    ops = [Op("tfl.call", [v], [Value(TensorType(None, f32))], {"subgraph": 1}) for v in inputs]
    inference = Inference(Module([Function("main", inputs, [op.result for op in ops], ops), body]), {})
    assert inference.shape(a) == (None, 3)


def test_recursion_is_not_followed() -> None:
    a = x(2)
    body = function([a], ("call", [a], {"subgraph": 1}))
    inference = caller("call", [x(2)], 1, {"subgraph": 1}, body)
    assert "runs itself" in inference.reasons[body.ops[0]]


def test_functions_are_bound_with_their_callers() -> None:
    a, y = x(None, 3), Value(TensorType((None, 3), f32))
    body = function([a], ("neg", [a], {}))
    main = argument((None, 3), f32)
    module = Module([Function("main", [main], [y], [Op("tfl.call", [main], [y], {"subgraph": 1})]), body])
    bind_batch(module, 6)
    assert [v.type.shape for v in (main, a, body.outputs[0], y)] == [(6, 3)] * 4


def test_a_variable_is_of_the_batch_unless_it_is_read_otherwise() -> None:
    """The kernel goes by the shape that the file gives the result, whatever is assigned."""
    handle, value, read = Value(TensorType((1,), i32)), x(None, 3), Value(TensorType(None, f32))
    ops = [
        Op("tfl.var_handle", [], [handle], {}),
        Op("tfl.assign_variable", [handle, value], []),
        Op("tfl.read_variable", [handle], [read]),
    ]
    module = Module([Function("main", [value], [read], ops)])
    assert Inference(module, {value: (4, 3)}, Accesses(module)).shape(read) == (4, 3)
    read.type, read.info = TensorType((None, 3), f32), {"shape": (1, 3)}
    found = Inference(module, {value: (4, 3)}, Accesses(module)).reasons
    assert "is [4, 3], and its variable 'variable' is read as '' [1, 3]" in found[ops[1]]
    assert "is [1, 3], and its variable 'variable' is assigned 'x' [4, 3]" in found[ops[2]]
