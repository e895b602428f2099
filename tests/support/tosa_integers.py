"""Lowering small functions of the integer form, and comparing what both forms compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from support.running import reference
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.dialects.builder import Builder
from tflq.dialects.forms import verify_form
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, element_storage

Body = Callable[..., Value]


def single(types: Sequence[tuple[tuple[int | None, ...], ScalarType]], body: Body) -> Module:
    """A module of one function: arguments of some shapes and element types, and what `body(b, *arguments)` makes."""
    b = Builder()
    inputs = [Value(TensorType(shape, element), f"x{i}") for i, (shape, element) in enumerate(types)]
    result = body(b, *inputs)
    result.name = "y"
    module = Module([Function("main", inputs, [result], b.ops)])
    verify_form(module, "integer")
    return module


def lowered_outputs(module: Module, arrays: Sequence[np.ndarray], target: Target | None = None) -> np.ndarray:
    """The lowered function's result by the evaluator; the reference model, where it is installed, has to agree."""
    lowered, _ = lower(module, target or Target())
    function = lowered.main
    assert {op.name.partition(".")[0] for op in function.ops} <= {"tosa"}
    got = evaluate_function(function, dict(zip(function.inputs, arrays, strict=True)))[function.outputs[0]]
    try:
        model = reference(lowered, arrays)[0]
    except pytest.skip.Exception:
        return got
    np.testing.assert_array_equal(model.reshape(got.shape), got)
    return got


def check(
    types: Sequence[tuple[tuple[int | None, ...], ScalarType]],
    body: Body,
    arrays: Sequence[np.ndarray],
    expected: np.ndarray | None = None,
    target: Target | None = None,
) -> None:
    """Fails unless the lowered function computes `expected`, by default what the integer form does."""
    module = single(types, body)
    if expected is None:
        function = module.main
        env: dict[Value, Any] = dict(zip(function.inputs, arrays, strict=True))
        expected = evaluate_function(function, env)[function.outputs[0]]
    result = module.main.outputs[0].type
    got = lowered_outputs(module, arrays, target)
    np.testing.assert_array_equal(got, np.asarray(expected, element_storage(result.element).dtype))
