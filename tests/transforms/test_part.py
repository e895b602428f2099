"""A part of a model as a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const, interpret

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32, i32
from tflq.transforms.source import part


def chain() -> Module:
    """y = relu(x) + c, z = reshape(y, shape(x))"""
    x = argument((2, 3), f32, "x")
    r, y, s, z = (argument((2, 3), f32, name) for name in ("r", "y", "", "z"))
    s = argument((2,), i32, "")
    info = {"version": 1}
    ops = [
        Op("tfl.relu", [x], [r], info=info),
        Op("tfl.add", [r, const(np.ones(3, np.float32), f32)], [y], {"fused_activation_function": "NONE"}, info=info),
        Op("tfl.shape", [x], [s], {"out_type": "INT32"}, info=info),
        Op("tfl.reshape", [y, s], [z], info=info),
    ]
    return Module([Function("main", [x], [z], ops)])


def names(values: list[Value]) -> list[str]:
    return [value.name for value in values]


def test_inputs_and_outputs_are_what_passes_the_edge() -> None:
    module = chain()
    made = part(module, 0, [module.main.ops[1]])
    assert (names(made.main.inputs), names(made.main.outputs)) == (["r"], ["y"])
    module = chain()
    made = part(module, 0, [module.main.ops[i] for i in (0, 3)])
    assert (names(made.main.inputs), names(made.main.outputs)) == (["x", "y", "input/2"], ["r", "z"])


def test_data_makes_a_constant() -> None:
    module = chain()
    shape = module.main.ops[2].result
    made = part(module, 0, [module.main.ops[3]], {shape: np.array([2, 3], np.int32)})
    assert names(made.main.inputs) == ["y"]
    assert made.main.ops[0].operand(1).array.tolist() == [2, 3]


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_two_parts_in_a_row_are_the_whole(cut: int, models: Path) -> None:
    path = models / "cnn_int8.tflite"
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, (1, 24, 24, 3), np.int8)
    (want,) = interpret(path.read_bytes(), [[x]])
    first, second = tflq.read(path), tflq.read(path)
    head = part(first, 0, first.main.ops[:cut])
    tail = part(second, 0, second.main.ops[cut:])
    (middle,) = interpret(tflq.write(head), [[x]])
    known = dict(zip(names(head.main.outputs), middle, strict=True))
    (got,) = interpret(tflq.write(tail), [[known[name] for name in names(tail.main.inputs)]])
    np.testing.assert_array_equal(got[0], want[0])


def test_only_what_is_used_is_in_the_file(models: Path) -> None:
    module = tflq.read(models / "cnn_int8.tflite")
    made = part(module, 0, [module.main.ops[5]])
    assert len(made.main.tensors) == 2
    assert len(tflq.write(made)) < 1000
