"""Ops of the integer form, and models of one operator, lowered to TOSA: on the evaluator and on the reference model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from support.harness import argument, interpret
from support.running import reference
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.dialects.builder import Builder
from tflq.formats.tflite.reader import read
from tflq.formats.tosa.check import check
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, Shape
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize

INTEGER = Target(profiles=frozenset({"pro_int"}))
"""Integers alone, with the usual extensions."""

Emit = Callable[..., Value]


def emitted(emit: Emit, elements: Sequence[ElementType], shapes: Sequence[Shape]) -> Module:
    """A module of what `emit(builder, *arguments)` makes."""
    pairs = zip(elements, shapes, strict=True)
    inputs = [argument(shape or (), element, f"x{i}") for i, (element, shape) in enumerate(pairs)]
    builder = Builder()
    result = emit(builder, *inputs)
    result.name = "result"
    return Module([Function("main", inputs, [result], builder.ops)])


def lowered_names(module: Module, target: Target = INTEGER) -> list[str]:
    """The operators that a module becomes."""
    return [op.name.removeprefix("tosa.") for op in lower(module, target)[0].main.ops]


def assert_exact(
    emit: Emit, elements: Sequence[ElementType], arrays: Sequence[np.ndarray], target: Target = INTEGER
) -> list[str]:
    """Asserts that the ops are valid for the target once lowered, and give what they gave before, in the evaluator and
    on the reference model. The operators' names.
    """
    module = emitted(emit, elements, [a.shape for a in arrays])
    lowered, _ = lower(module, target)
    check(lowered, target)
    (want,), (got,) = (_evaluated(m.main, arrays) for m in (module, lowered))
    np.testing.assert_array_equal(got, want, strict=True)
    np.testing.assert_array_equal(reference(lowered, arrays)[0], want, strict=True)
    return [op.name.removeprefix("tosa.") for op in lowered.main.ops]


def _evaluated(function: Function, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    env = evaluate_function(function, dict(zip(function.inputs, arrays, strict=True)))
    return [env[v] for v in function.outputs]


def assert_near_kernel(model: bytes, arrays: Sequence[np.ndarray], tolerance: float = 1e-5) -> list[str]:
    """Asserts that a model's float results on the reference model are those of the interpreter; integers are equal.
    The notes.
    """
    module, _ = legalize(read(model), Policy())
    target = Target()
    lowered, notes = lower(module, target)
    check(lowered, target)
    wanted = interpret(model, [list(arrays)])[0]
    for got, want in zip(reference(lowered, arrays), wanted, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        scale = float(np.abs(want).max(initial=1)) if want.dtype.kind == "f" else 0
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)
    return [note.text for note in notes]
