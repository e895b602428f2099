"""Functions of the integer form lowered to TOSA, and what that evaluates to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ui8


def run(function: Function, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A function's results."""
    env = evaluate_function(function, dict(zip(function.inputs, arrays, strict=True)))
    return [v.array if v.is_constant else env[v] for v in function.outputs]


def lowered_op(
    name: str,
    operands: Sequence[Value | None],
    results: Sequence[Value],
    attributes: dict[str, Any] | None = None,
    target: Target | None = None,
) -> tuple[Function, Function]:
    """A function of one op, and what it is lowered to."""
    op = Op(name, list(operands), list(results), attributes or {})
    inputs = list(dict.fromkeys(v for v in operands if v is not None and not v.is_constant))
    source = Function("main", inputs, list(results), [op])
    module, _ = lower(Module([source]), target or Target())
    return source, module.main


def assert_gives(lowered: Function, arrays: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    """The results wanted (int64 as int32), from nothing but ops of TOSA, none of them on uint8 but RESCALE."""
    for op in lowered.ops:
        assert op.name.startswith("tosa.")
        assert op.name == "tosa.rescale" or all(v.type.storage != ui8 for v in op.tensors)
    for want, got in zip(wanted, run(lowered, arrays), strict=True):
        assert got.dtype == (np.int32 if want.dtype == np.int64 else want.dtype)
        np.testing.assert_array_equal(got, want)


def assert_same(source: Function, lowered: Function, batches: Sequence[Sequence[np.ndarray]]) -> None:
    """On every batch, what the source evaluates to."""
    for arrays in batches:
        assert_gives(lowered, arrays, run(source, arrays))
