"""The numpy evaluator: one function per op, arrays in, arrays out.

    @evaluator("tosa.add")
    def add(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray: ...

An evaluator takes the operands' arrays (None for one left out) and answers the result array (or a list of them), of the
result's storage dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from tflq.ir.core import Function, Op, Value

__all__ = ["EVALUATORS", "evaluate_function", "evaluate_op", "evaluator"]

Evaluator: TypeAlias = Callable[..., Any]
EVALUATORS: dict[str, Evaluator] = {}


def evaluator(*names: str) -> Callable[[Evaluator], Evaluator]:
    """Registers an evaluator for op names."""

    def register(function: Evaluator) -> Evaluator:
        for name in names:
            EVALUATORS[name] = function
        return function

    return register


def evaluate_op(op: Op, arrays: list[np.ndarray | None]) -> list[np.ndarray] | None:
    """Results of one op, or None where it has no evaluator. Results have the dtype of the result's storage type."""
    function = EVALUATORS.get(op.name)
    if function is None:
        return None
    out = function(op, *arrays)
    results = out if isinstance(out, list) else [out]
    return [np.asarray(r, v.type.storage.dtype) for r, v in zip(results, op.results, strict=True)]


def evaluate_function(function: Function, inputs: Mapping[Value, np.ndarray]) -> dict[Value, np.ndarray]:
    """Every value of a function for given inputs. NotImplementedError names an op without an evaluator."""
    env: dict[Value, np.ndarray] = dict(inputs)

    def array(value: Value | None) -> np.ndarray | None:
        if value is None:
            return None
        found = env.get(value)
        return value.array if found is None else found

    for op in function.ops:
        results = evaluate_op(op, [array(v) for v in op.operands])
        if results is None:
            raise NotImplementedError(f"{op.name} has no evaluator")
        env.update(zip(op.results, results, strict=True))
    return env
