"""Tensors that the interpreter keeps in one memory: results stay right, and copies are few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, interpret, one_op

import tflq
from tflq.formats.tflite.lowering.naming import CopyBeforeOverwrite, MergeViews
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i32, resource, ui8

SHAPE = (2, 3, 4)
RESOLVERS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")
PLAIN: dict[str, Any] = {"fused_activation_function": "NONE"}


class Graph:
    """float32 ops on one input."""

    def __init__(self) -> None:
        self.x = argument(SHAPE, f32)
        self.ops: list[Op] = []

    def op(self, name: str, *operands: Value, shape: tuple[int, ...] = SHAPE, **attributes: object) -> Value:
        self.ops.append(Op(name, list(operands), [Value(TensorType(shape, f32), "")], attributes))
        return self.ops[-1].result

    def reshape(self, x: Value, *shape: int, name: str = "") -> Value:
        dims = np.asarray(shape, np.int32)
        result = self.op("tfl.reshape", x, const(dims, i32), shape=shape, new_shape=dims)
        result.name = name
        return result

    def module(self, *outputs: Value) -> Module:
        return Module([Function("main", [self.x], list(outputs), self.ops)])


def two(value: float = 2) -> Value:
    return const(np.asarray([value], np.float32), f32)


def assert_right(module: Module, *factors: float) -> None:
    """Each output is the input times a factor."""
    x = np.arange(24, dtype=np.float32).reshape(SHAPE)
    for resolver in RESOLVERS:
        got = interpret(bytes(write(module)), [[x]], resolver)[0]
        for array, factor in zip(got, factors, strict=True):
            np.testing.assert_array_equal(array.reshape(SHAPE), x * np.float32(factor), err_msg=resolver)


def views_of_views(name: str) -> Module:
    """Twice the second view is written where the first one is still read."""
    g = Graph()
    first = g.reshape(g.op("tfl.neg", g.x), 24, name=name)
    doubled = g.op("tfl.mul", g.reshape(first, *SHAPE), two(), **PLAIN)
    return g.module(g.op("tfl.neg", doubled), g.op("tfl.neg", first, shape=(24,)))


def test_a_view_of_a_view_is_one() -> None:
    module = views_of_views("")
    MergeViews().run(module)
    assert [op.name for op in module.ops()] == ["tfl.neg", "tfl.reshape", "tfl.mul", "tfl.neg", "tfl.neg"]
    CopyBeforeOverwrite().run(module)
    assert "tfl.cast" not in [op.name for op in module.ops()]
    assert_right(module, 2, 1)


def test_a_view_with_a_name_stays_and_a_copy_keeps_it() -> None:
    module = views_of_views("seen by users")
    MergeViews().run(module)
    CopyBeforeOverwrite().run(module)
    assert [op.name for op in module.ops()].count("tfl.cast") == 1
    assert_right(module, 2, 1)


def test_a_result_written_over_its_operand_has_views_of_its_own() -> None:
    g = Graph()
    kept = g.op("tfl.mul", g.op("tfl.neg", g.x), two(), **PLAIN)
    doubled = g.op("tfl.mul", g.reshape(kept, 24), two(), shape=(24,), **PLAIN)
    module = g.module(g.op("tfl.neg", doubled, shape=(24,)), g.op("tfl.neg", kept))
    CopyBeforeOverwrite().run(module)
    assert [op.name for op in module.ops()].count("tfl.cast") == 1
    assert_right(module, 4, 2)


@pytest.mark.parametrize("readers", [1, 2])
def test_nothing_is_copied_that_nobody_reads_or_that_has_readers_of_its_own(readers: int) -> None:
    g = Graph()
    source = g.op("tfl.neg", g.x)
    doubled = g.op("tfl.mul", g.reshape(source, 24), two(), shape=(24,), **PLAIN)
    outputs = [g.op("tfl.neg", doubled, shape=(24,)), *[g.op("tfl.neg", source) for _ in range(readers - 1)]]
    module = g.module(*outputs)
    CopyBeforeOverwrite().run(module)
    assert "tfl.cast" not in [op.name for op in module.ops()]
    assert_right(module, *(2, 1)[:readers])


def test_quantize_of_five_dims_there_and_back() -> None:
    x, y = argument((1, 1, 5, 7, 7), f32), argument((1, 1, 5, 7, 7), UniformQuantizedType.of(ui8, 0.004448, 255), "y")
    model = one_op("tfl.quantize", [x], [y], {})
    values = np.random.default_rng(0).normal(-0.5, 0.4, (1, 1, 5, 7, 7)).astype(np.float32)
    again = tflq.convert(tflq.convert(model, format="tosa").data).data
    np.testing.assert_array_equal(interpret(again, [[values]])[0][0], interpret(model, [[values]])[0][0])


def test_operators_without_results_are_passed_over() -> None:
    g = Graph()
    handle = Value(TensorType((), resource), "handle")
    view = g.reshape(g.op("tfl.neg", g.x), 24)
    g.ops.append(Op("tfl.var_handle", [], [handle], {"container": "", "shared_name": "v"}))
    g.ops.append(Op("tfl.assign_variable", [handle, view], []))
    assert not CopyBeforeOverwrite().run(g.module(g.op("tfl.neg", view, shape=(24,)))).modified
