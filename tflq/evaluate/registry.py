"""The numpy evaluator: one function per op, arrays in, arrays out.

    @evaluator("tosa.add")
    def add(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray: ...

An evaluator takes the operands' arrays (None for one left out) and answers the result array (or a list of them), of the
result's storage dtype. An op that runs other functions of the module or has a state (`CONTROL`) is also given the
`Run` it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tflq.ir.core import Function, Module, Op, Value
from tflq.registering import registering

__all__ = ["CONTROL", "EVALUATORS", "Run", "control", "evaluate_function", "evaluate_op", "evaluator"]

Evaluator: TypeAlias = Callable[..., Any]
EVALUATORS: dict[str, Evaluator] = {}


@dataclass
class Run:
    """What the functions of a module share while they are evaluated: each other, and the variables by name."""

    module: Module | None = None
    variables: dict[str, np.ndarray] = field(default_factory=dict)

    def call(self, index: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The results of a function of the module."""
        if self.module is None:
            raise ValueError("a function is called, and its module is not given")
        function = self.module.functions[index]
        env = evaluate_function(function, dict(zip(function.inputs, arrays, strict=True)), self)
        return [v.array if v.is_constant else env[v] for v in function.outputs]


Control: TypeAlias = Callable[[Op, list[np.ndarray], Run], list[np.ndarray]]
CONTROL: dict[str, Control] = {}

evaluator = registering(EVALUATORS)
"""Registers an evaluator for op names."""

control = registering(CONTROL)
"""Registers an evaluator that takes the `Run` for op names."""


def evaluate_op(op: Op, arrays: list[np.ndarray | None]) -> list[np.ndarray] | None:
    """Results of one op, or None where it has no evaluator. Results have the dtype of the result's storage type."""
    function = EVALUATORS.get(op.name)
    return None if function is None else _typed(op, function(op, *arrays))


def _typed(op: Op, out: Any) -> list[np.ndarray]:
    results = out if isinstance(out, list) else [out]
    return [np.asarray(r, v.type.storage.dtype) for r, v in zip(results, op.results, strict=True)]


def evaluate_function(
    function: Function, inputs: Mapping[Value, np.ndarray], run: Run | None = None
) -> dict[Value, np.ndarray]:
    """Every value of a function for given inputs. NotImplementedError names an op without an evaluator.

    `run` knows the module of a function that calls others, and keeps the variables from one evaluation to the next.
    """
    env: dict[Value, np.ndarray] = dict(inputs)
    run = Run() if run is None else run

    def array(value: Value | None) -> np.ndarray | None:
        if value is None:
            return None
        found = env.get(value)
        return value.array if found is None else found

    for op in function.ops:
        arrays = [array(v) for v in op.operands]
        if op.name in CONTROL:
            given = [a for a in arrays if a is not None]
            results: list[np.ndarray] | None = _typed(op, CONTROL[op.name](op, given, run))
        else:
            results = evaluate_op(op, arrays)
        if results is None:
            raise NotImplementedError(f"{op.name} has no evaluator")
        env.update(zip(op.results, results, strict=True))
    return env
