"""clz and left shifts on builtins, on every resolver."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import interpret

from tflq.builder import Builder
from tflq.evaluate import evaluate_function
from tflq.flatbuffer.writer import write
from tflq.ir.core import Function, Module, Value
from tflq.ir.types import Shape, TensorType, i32
from tflq.select.engine import select

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
