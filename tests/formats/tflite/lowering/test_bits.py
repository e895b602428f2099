"""Ops on bits as kernels, with every resolver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.harness import interpret
from support.lowered import assert_lowered, draw, kernels_of

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.formats.tflite.lowering.engine import select
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.types import Shape, TensorType, i32, ui8

SHAPE = (2, 3, 5, 7)
DEEP = (2, 3, 4, 5, 6)
EDGES = np.asarray([0, 1, 2, 3, 4, 7, 8, 2**30 - 1, 2**30, 2**31 - 1, -1, -(2**31), 5, 6, 9, 100], np.int32)
RESOLVERS = ["BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"]


def run(names: list[str], shape: Shape, arrays: list[np.ndarray], resolver: str) -> tuple[np.ndarray, np.ndarray]:
    """What the evaluator and the interpreter make of one op."""
    inputs = [Value(TensorType(shape, i32), f"x{i}") for i in range(len(arrays))]
    b = Builder()
    result = b.clz(inputs[0]) if names == ["clz"] else b.logical_left_shift(inputs[0], inputs[1])
    result.name = "y"
    main = Function("main", inputs, [result], b.ops)
    wanted = evaluate_function(main, dict(zip(inputs, arrays, strict=True)))[result]
    ((got,),) = interpret(bytes(write(select(Module([main])))), [arrays], resolver)
    return wanted, got


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize(
    "shape", [(16,), (16, 1), (2, 2, 4), (None, 8), (None, None, 4), (2, 2, 2, 2, 1), (None, None, 1)]
)
def test_clz(shape: tuple[int | None, ...], resolver: str) -> None:
    unknown = iter([2, 2])
    x = EDGES.reshape([*(next(unknown) if d is None else d for d in shape[:-1]), -1])[..., : shape[-1]]
    wanted, got = run(["clz"], shape, [np.ascontiguousarray(x)], resolver)
    assert wanted.reshape(-1)[0] == 32
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_left_shift(resolver: str) -> None:
    amounts = np.arange(16, dtype=np.int32) * 2 + 1
    wanted, got = run(["logical_left_shift"], (None, 4), [EDGES.reshape(4, 4), amounts.reshape(4, 4)], resolver)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("shape", [SHAPE, DEEP])
@pytest.mark.parametrize("rounding", [False, True])
def test_arithmetic_right_shift(shape: tuple[int, ...], rounding: bool) -> None:
    x = draw(i32, shape)

    def by(amount: int) -> Callable[[Builder, Value], Value]:
        return lambda b, v: b.arithmetic_right_shift(v, b.constant(np.asarray(amount)), round=rounding)

    for amount in (0, 1, 2, 31):
        assert_lowered(by(amount), [x], [i32])
    for other in (shape, (*shape[:-1], 1)):
        amounts = draw(i32, other, 3, 0, 31)
        assert_lowered(lambda b, v, w: b.arithmetic_right_shift(v, w, round=rounding), [x, amounts], [i32, i32])
    channels = draw(i32, shape[-1:], 3, 0, 31)
    assert_lowered(lambda b, v: b.arithmetic_right_shift(v, b.constant(channels), round=rounding), [x], [i32])


def test_rounding_shifts_by_amounts_that_are_not_0() -> None:
    """As SOFTMAX has them: from the leading zeros of another tensor."""

    def by(b: Builder, x: Value, y: Value) -> Value:
        return b.arithmetic_right_shift(x, b.sub(b.constant(33), b.clz(b.cast(y, i32))), round=True)

    elements = (i32, ui8)
    assert_lowered(by, [draw(e, SHAPE) for e in elements], elements)
    assert kernels_of(by, elements, [SHAPE, SHAPE])[-4:] == ["sub", "right_shift", "right_shift", "sub"]


@pytest.mark.parametrize("least", [0, 5])
def test_leading_zeros_of_what_is_not_negative(least: int) -> None:
    x = np.concatenate([[0, 1, 2, 3], draw(ui8, (252,))]).reshape(4, 64).astype(np.uint8)

    def zeros(b: Builder, v: Value) -> Value:
        return b.clz(b.mul(b.add(b.cast(v, i32), b.constant(least)), b.constant(8000000)))

    assert_lowered(zeros, [x], [ui8])
    assert "bitcast" not in kernels_of(zeros, [ui8], [(4, 64)])


def test_a_shift_that_the_kernel_cannot_broadcast_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="broadcasts 4 dims"):
        kernels_of(lambda b, x, y: b.arithmetic_right_shift(x, y), [i32, i32], [DEEP, (2, 1, 4, 1, 1)])
