"""Which copies between quantized and plain tensors go, and which stay."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument

from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.formats.tflite.lowering.naming import TrimEdges
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i32

QUANTIZED = UniformQuantizedType.of(i8, 0.5, 3)
SHAPE = (2, 4, 6)


def _trimmed(ops: list[Op], inputs: list[Value], outputs: list[Value]) -> list[str]:
    function = Function("main", inputs, outputs, ops)
    TrimEdges().run(Module([function]))
    known = {*function.inputs}
    for op in function.ops:
        assert all(v in known or v.is_constant for v in op.operands if v is not None)
        assert all(v.producer is op for v in op.results)
        known.update(op.results)
    assert known >= set(function.outputs)
    return [op.name.removeprefix("tfl.") for op in function.ops]


def _copied_in(k: KernelBuilder) -> tuple[Value, Value]:
    x = argument(SHAPE, QUANTIZED)
    return x, k.copy(x)


def _copied_out(k: KernelBuilder, x: Value) -> Value:
    y = k.copy(x, TensorType(x.type.shape, QUANTIZED))
    y.name = "y"
    return y


def test_a_cast_reads_the_argument_itself() -> None:
    k = KernelBuilder()
    x, plain = _copied_in(k)
    wide = k.cast(plain, i32)
    assert _trimmed(k.ops, [x], [wide]) == ["cast"]
    assert wide.producer is not None
    assert wide.producer.operand(0) is x


def test_a_kernel_that_checks_parameters_keeps_its_copy() -> None:
    k = KernelBuilder()
    x, plain = _copied_in(k)
    padded = k.padv2(plain, np.zeros((3, 2), np.int32), 3)
    assert _trimmed(k.ops, [x], [padded]) == ["cast", "padv2"]


def test_one_such_reader_keeps_the_copy_for_all() -> None:
    k = KernelBuilder()
    x, plain = _copied_in(k)
    outputs = [k.padv2(plain, np.zeros((3, 2), np.int32), 3), k.cast(plain, i32)]
    assert _trimmed(k.ops, [x], outputs) == ["cast", "padv2", "cast"]


@pytest.mark.parametrize("name", ["cast", "gather"])
def test_a_result_is_written_by_its_kernel(name: str) -> None:
    k = KernelBuilder()
    x = argument(SHAPE, i32)
    made = k.cast(x, i8) if name == "cast" else k.gather(k.constant(np.arange(256) - 128, i8), x)
    y = _copied_out(k, made)
    assert _trimmed(k.ops, [x], [y]) == [name]
    assert y.type.element == QUANTIZED


def test_a_result_with_another_reader_is_copied() -> None:
    k = KernelBuilder()
    x = argument(SHAPE, i32)
    made = k.cast(x, i8)
    outputs = [_copied_out(k, made), k.cast(made, i32)]
    assert _trimmed(k.ops, [x], outputs) == ["cast", "cast", "cast"]


def test_an_argument_that_is_a_result_is_copied() -> None:
    k = KernelBuilder()
    x, plain = _copied_in(k)
    assert _trimmed(k.ops, [x], [_copied_out(k, plain)]) == ["cast"]


def test_a_copy_between_plain_tensors_takes_the_name() -> None:
    k = KernelBuilder()
    x = argument(SHAPE, i32)
    y = k.copy(k.add(x, x))
    y.name = "y"
    assert _trimmed(k.ops, [x], [y]) == ["add"]


def test_a_kept_operator_reads_and_writes_its_own_types() -> None:
    k = KernelBuilder()
    x = argument(SHAPE, i8)
    given = k.copy(x, TensorType(SHAPE, QUANTIZED))
    k.ops.append(Op("tfl.reshape", [given, None], [argument((48,), QUANTIZED, "kept")], info={"kept": True}))
    taken = k.copy(k.ops[-1].result, TensorType((48,), i8))
    assert _trimmed(k.ops, [x], [taken]) == ["cast", "reshape", "cast"]
    assert not any(op.info for op in k.ops)


def test_a_lowered_operator_reads_and_writes_past_parameters() -> None:
    k = KernelBuilder()
    x = argument(SHAPE, i8)
    given = k.copy(x, TensorType(SHAPE, QUANTIZED))
    wide = k.cast(given, i32)
    assert _trimmed(k.ops, [x], [wide]) == ["cast"]
