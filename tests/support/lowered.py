"""Ops of the integer form against their kernels: the evaluator's answer and the interpreter's, with every resolver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from support.harness import argument, interpret
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.dialects.builder import Builder
from tflq.formats.tflite.lowering.engine import select
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType

RESOLVERS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")

Emit = Callable[..., Value]


def draw(
    element: ScalarType, shape: Sequence[int], seed: int = 0, low: int | None = None, high: int | None = None
) -> np.ndarray:
    """Integers of a range (default: the type's), its ends, and zero and its neighbours if they are in it."""
    low, high = element.minimum if low is None else low, element.maximum if high is None else high
    rng = np.random.default_rng(seed)
    out = rng.integers(low, high, tuple(shape), np.int64, endpoint=True)
    edges = [v for v in (low, high, low + 1, high - 1, 0, 1, -1) if low <= v <= high][: out.size]
    out.reshape(-1)[: len(edges)] = edges
    return out.astype(element.dtype)


def accumulators(element: ScalarType, shape: Sequence[int], scale: float, low: int, high: int, bits: int) -> np.ndarray:
    """Integers of a range: most are not saturated by a scale to so many bits; the ends are among them."""
    span = int(min(1.3 * 2**bits / scale, 2.0**46))
    near = draw(element, shape, 1, max(low, -span), min(high, span))
    far = draw(element, shape, 2, low, high)
    return np.where(np.random.default_rng(3).random(near.shape) < 0.8, near, far)


def _module(emit: Emit, inputs: Sequence[Value]) -> Module:
    builder = Builder()
    result = emit(builder, *inputs)
    result.name = "result"
    return Module([Function("main", list(inputs), [result], builder.ops)])


def kernels_of(emit: Emit, elements: Sequence[ScalarType], shapes: Sequence[Sequence[int | None]]) -> list[str]:
    """Names of the builtins that the ops become."""
    inputs = [argument(s, e, f"x{i}") for i, (e, s) in enumerate(zip(elements, shapes, strict=True))]
    return [op.name.removeprefix("tfl.") for op in select(_module(emit, inputs)).ops()]


def assert_lowered(emit: Emit, arrays: Sequence[np.ndarray], elements: Sequence[ScalarType]) -> None:
    """Asserts that kernels and evaluator agree on the ops that `emit(builder, *inputs)` makes, for an unknown batch."""
    inputs = [argument((None, *a.shape[1:]), e, f"x{i}") for i, (a, e) in enumerate(zip(arrays, elements, strict=True))]
    module = _module(emit, inputs)
    result = module.main.outputs[0]
    want = evaluate_function(module.main, dict(zip(inputs, arrays, strict=True)))[result]
    model = bytes(write(select(module)))
    for resolver in RESOLVERS:
        (got,) = interpret(model, [list(arrays)], resolver)[0]
        np.testing.assert_array_equal(got.reshape(want.shape), want, err_msg=resolver)
