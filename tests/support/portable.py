"""What targets that restrict plain builtins make of ops, against the evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from support.harness import argument, interpret
from support.lowered import RESOLVERS, Emit
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.dialects.builder import Builder
from tflq.formats.tflite.lowering.engine import CheckLegality, Select
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, i32
from tflq.targets.load import load_target
from tflq.transforms.canonicalize import CommonSubexpressionElimination, DeadCodeElimination
from tflq.transforms.lower_rounding import LowerRounding
from tflq.transforms.pass_manager import Pipeline

PORTABLE: Final = load_target("portable")
WORDS: Final = np.concatenate(
    [np.asarray([0, 1, -1, 2**24, 2**24 + 1, -(2**24) - 1, 2**31 - 1, 2**31 - 64, 2**31 - 65, -(2**31)])]
    + [sign * (1 << np.arange(31)) + near for sign in (1, -1) for near in (-1, 0, 1)]
)
"""Powers of two, their neighbours, and numbers that float32 rounds."""


def words(shape: Sequence[int], seed: int = 0, bits: int = 32) -> np.ndarray:
    """int32 of so many bits: `WORDS`, then random ones of all magnitudes."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    out = rng.integers(i32.minimum, i32.maximum, count, np.int64, endpoint=True) >> rng.integers(32 - bits, 31, count)
    edges = WORDS >> (32 - bits)
    out[: edges.size] = edges[:count]
    return np.ascontiguousarray(out.reshape(shape).astype(np.int32))


def lowered(emit: Emit, inputs: Sequence[Value]) -> tuple[Module, Module]:
    """The ops that `emit(builder, *inputs)` makes, and the same on what the target lists."""
    modules = []
    for _ in range(2):
        b, given = Builder(), [Value(v.type, v.name) for v in inputs]
        result = emit(b, *given)
        result.name = "result"
        modules.append(Module([Function("main", given, [result], b.ops)]))
    source, module = modules
    passes = [LowerRounding(), Select(target=PORTABLE), CommonSubexpressionElimination(), DeadCodeElimination()]
    return source, Pipeline([*passes, CheckLegality(PORTABLE)], "integer").run(module).module


def assert_portable(emit: Emit, arrays: Sequence[np.ndarray], elements: Sequence[ScalarType]) -> np.ndarray:
    """Asserts that the target has a form of the ops that `emit` makes, which gives what the evaluator gives."""
    inputs = [argument(a.shape, e, f"x{i}") for i, (a, e) in enumerate(zip(arrays, elements, strict=True))]
    source, module = lowered(emit, inputs)
    want = evaluate_function(source.main, dict(zip(source.main.inputs, arrays, strict=True)))[source.main.outputs[0]]
    model = bytes(write(module))
    for resolver in RESOLVERS:
        (got,) = interpret(model, [list(arrays)], resolver)[0]
        np.testing.assert_array_equal(got.reshape(want.shape), want, err_msg=resolver)
    return want
