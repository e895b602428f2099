"""Control flow and variables of TOSA as TFLite's IF, WHILE and resource variables."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, interpret
from support.raised import RESOLVERS, assert_same

from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.conversion.convert import lower
from tflq.formats.options import Options
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value
from tflq.ir.types import TensorType, i1, i8, i32

TYPE = TensorType((2, 3), i32)
X = np.arange(6, dtype=np.int32).reshape(2, 3)
_NUMBERS = count()


def made(operator: str, operands: list[Value | None], types: list[TensorType], **attributes: Any) -> Op:
    place = Location("", 0, next(_NUMBERS), operator, "")
    return Op(
        f"tosa.{operator}", operands, [Value(t, f"{operator}{i}") for i, t in enumerate(types)], attributes, place
    )


@pytest.mark.parametrize("condition", [True, False])
def test_if(condition: bool) -> None:
    c, x = argument((1,), i1, "c"), argument((2, 3), i32, "x")
    branch = made("cond_if", [c, x], [TYPE], then_graph=1, else_graph=2)
    a, b = argument((2, 3), i32, "a"), argument((2, 3), i32, "b")
    plus = made("add", [a, const(np.full((1, 1), 7), i32)], [TYPE])
    other = made("bitwise_not", [b], [TYPE])
    functions = [
        Function("main", [c, x], branch.results, [branch]),
        Function("then", [a], plus.results, [plus]),
        Function("else", [b], other.results, [other]),
    ]
    assert assert_same(Module(functions), [np.asarray([condition]), X])[0] == "if"


def test_while() -> None:
    n, x = argument((1,), i32, "n"), argument((2, 3), i32, "x")
    loop = made("while_loop", [n, x], [n.type, TYPE], cond_graph=1, body_graph=2)
    a, b = argument((1,), i32, "a"), argument((2, 3), i32, "b")
    less = made("greater", [const(np.asarray([5]), i32), a], [a.type.with_element(i1)])
    c, d = argument((1,), i32, "c"), argument((2, 3), i32, "d")
    following, twice = made("add", [c, const(np.asarray([1]), i32)], [c.type]), made("add", [d, d], [TYPE])
    functions = [
        Function("main", [n, x], loop.results, [loop]),
        Function("cond", [a, b], less.results, [less]),
        Function("body", [c, d], [following.result, twice.result], [following, twice]),
    ]
    assert assert_same(Module(functions), [np.asarray([1], np.int32), X])[0] == "while"


def test_a_variable_starts_as_it_says_and_is_kept() -> None:
    type = TensorType((2, 3), i8)
    x = argument((2, 3), i8, "x")
    declared = made("variable", [const(np.full((2, 3), 3), i8)], [], name="state")
    read = made("variable_read", [], [type], name="state")
    change = made("bitwise_xor", [read.result, x], [type])
    written = made("variable_write", [change.result], [], name="state")
    module = Module([Function("main", [x], [change.result], [declared, read, change, written])])
    run, array = Run(module), X.astype(np.int8)
    want = [evaluate_function(module.main, {x: array}, run)[change.result] for _ in range(3)]
    model = bytes(write(lower(module, Options())[0]))
    for resolver in RESOLVERS:
        got = interpret(model, [[array]] * 3, resolver)
        for (g,), w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w, err_msg=resolver)
