"""What holds in every form: one definition, before the first use."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.base.errors import VerificationError
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i8
from tflq.ir.verifier import verify

T = TensorType((3,), f32)


def chain(length: int) -> tuple[Value, list[Op]]:
    argument = Value(T, "x")
    ops: list[Op] = []
    for index in range(length):
        source = ops[-1].result if ops else argument
        ops.append(Op("tfl.abs", [source], [Value(T, f"t{index}")], location=Location("m.tflite", 0, index, "ABS", "")))
    return argument, ops


def module(argument: Value, ops: list[Op], outputs: list[Value]) -> Module:
    return Module([Function("main", [argument], outputs, ops)])


def test_a_chain_is_valid() -> None:
    argument, ops = chain(5)
    verify(module(argument, ops, [ops[-1].result]))


def test_use_before_definition_shows_the_op_among_its_neighbours() -> None:
    argument, ops = chain(9)
    ops[4], ops[5] = ops[5], ops[4]
    with pytest.raises(VerificationError, match=r"operand 0 \('t4'\) is used before tfl.abs defines it") as caught:
        verify(module(argument, ops, [ops[-1].result]))
    message = str(caught.value)
    assert message.startswith("m.tflite: subgraph 0, operator 5 (ABS)")
    assert message.count("tfl.abs") > 6
    assert "> %" in message


def test_second_definition() -> None:
    argument, ops = chain(3)
    ops[2].results = ops[1].results
    with pytest.raises(VerificationError, match="defined a second time"):
        verify(module(argument, ops, [ops[0].result]))


def test_producer_of_another_op() -> None:
    argument, ops = chain(3)
    ops[2].result.producer = ops[0]
    with pytest.raises(VerificationError, match="names another op as its producer"):
        verify(module(argument, ops, [ops[0].result]))


def test_operand_without_definition() -> None:
    argument, ops = chain(2)
    ops[1].operands = [Value(T, "loose")]
    with pytest.raises(VerificationError, match=r"'loose'.* nothing defines it"):
        verify(module(argument, ops, [ops[1].result]))


def test_result_of_an_op_that_is_not_there() -> None:
    argument, ops = chain(3)
    with pytest.raises(VerificationError, match=r"result of tfl.abs, which is not an op of this function"):
        verify(module(argument, ops[1:], [ops[2].result]))


def test_undefined_output() -> None:
    argument, ops = chain(1)
    with pytest.raises(VerificationError, match=r"output 0 .*nothing defines it"):
        verify(module(argument, ops, [Value(T, "out")]))


def test_same_argument_twice() -> None:
    argument = Value(T, "x")
    with pytest.raises(VerificationError, match="two arguments"):
        verify(Module([Function("main", [argument, argument], [argument], [])]))


def test_argument_that_an_op_produces() -> None:
    argument, ops = chain(2)
    with pytest.raises(VerificationError, match="is the result of an op"):
        verify(module(ops[0].result, ops, [argument]))


def test_a_variable_tensor_needs_no_definition() -> None:
    argument, ops = chain(1)
    ops[0].operands = [Value(T, "state", info={"is_variable": True})]
    verify(module(argument, ops, [ops[0].result]))


@pytest.mark.parametrize(("low", "high", "outside"), [(-3, 3, None), (-2, 3, -3), (-3, 2, 3)])
def test_constants_are_within_the_bounds_of_their_type(low: int, high: int, outside: int | None) -> None:
    element = UniformQuantizedType.of(i8, 0.5, storage_min=low, storage_max=high)
    held = constant(np.asarray([-3, 0, 3], np.int8), name="c")
    held.type = held.type.with_element(element)
    result = Value(held.type, "y")
    for made in (module(Value(T, "x"), [Op("tfl.abs", [held], [result])], [result]), module(Value(T, "x"), [], [held])):
        if outside is None:
            verify(made)
            continue
        with pytest.raises(
            VerificationError, match=rf"'c' has the element {outside}, outside its bounds <{low}:{high}>"
        ):
            verify(made)
