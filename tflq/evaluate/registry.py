"""The numpy evaluator: one function per op, arrays in, arrays out.

    @evaluator(Add)
    def add(op: Add, a: np.ndarray, b: np.ndarray) -> np.ndarray: ...

An evaluator takes the operands' arrays (None for one left out) and answers the result array (or a list of them), of the
result's storage dtype. An op that runs other functions of the module or has a state (`running`) is also given the
`Run` it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.ir.core import Function, Module, Op, Value
from tflq.registering import Registry

__all__ = ["Run", "evaluate_function", "evaluate_op", "evaluator", "of_arrays", "running"]

Evaluator: TypeAlias = Callable[..., Any]


@dataclass
class Run:
    """What the functions of a module share while they are evaluated: each other, and the variables by name. `others`
    evaluate ops that no dialect declares, by name. `schedule`: the order in which reductions of the `stablehlo` dialect
    combine values (`evaluate.stablehlo.schedule`)."""

    module: Module | None = None
    variables: dict[str, np.ndarray] = field(default_factory=dict)
    others: Mapping[str, Evaluator] = field(default_factory=dict)
    schedule: Callable[[int], Sequence[int]] | None = None

    def call(self, index: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The results of a function of the module."""
        if self.module is None:
            raise ValueError("a function is called, and its module is not given")
        function = self.module.functions[index]
        env = evaluate_function(function, dict(zip(function.inputs, arrays, strict=True)), self)
        return [v.array if v.is_constant else env[v] for v in function.outputs]


Running: TypeAlias = Callable[[Any, list[np.ndarray], Run], list[np.ndarray]]

_MODULES: Final = {
    **{
        f"stablehlo.{family}": ("stablehlo.elementwise",) for family in ("arithmetic", "casts", "comparison", "control")
    },
    **{f"stablehlo.{family}": ("stablehlo.contraction",) for family in ("convolution", "matmul")},
    **{f"stablehlo.{family}": ("stablehlo.reduction",) for family in ("reduction", "windows")},
    "stablehlo.movement": ("stablehlo.layout",),
    "stablehlo.unary": ("stablehlo.elementwise",),
}

evaluator: Final[Registry[Evaluator]] = Registry("tflq.evaluate", _MODULES)
"""What each op computes on arrays."""

running: Final[Registry[Running]] = Registry("tflq.evaluate", _MODULES)
"""What ops compute that take the `Run`, too."""


def of_arrays(function: Callable[..., Any]) -> Evaluator:
    """The evaluator of an op that computes a function of its operands, whatever its attributes."""
    return lambda _, *arrays: function(*arrays)


def evaluate_op(op: Op, arrays: list[np.ndarray | None]) -> list[np.ndarray] | None:
    """Results of one op, or None where it has no evaluator. Results have the dtype of the result's storage type."""
    function = evaluator.get(type(op))
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
        runs = running.get(type(op))
        if runs is not None:
            given = [a for a in arrays if a is not None]
            results: list[np.ndarray] | None = _typed(op, runs(op, given, run))
        elif op.name in run.others:
            results = _typed(op, run.others[op.name](op, *arrays))
        else:
            results = evaluate_op(op, arrays)
        if results is None:
            raise NotImplementedError(f"{op.name} has no evaluator")
        env.update(zip(op.results, results, strict=True))
    return env
