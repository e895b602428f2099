"""Evaluators of TOSA's variables. Each has its initial value until it is written; the functions of a run share them."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.state import Variable, VariableRead, VariableWrite
from tflq.evaluate.registry import Run, running

__all__: list[str] = []


@running(Variable)
def _variable(op: Variable, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    run.variables.setdefault(op.variable, arrays[0])
    return []


@running(VariableRead)
def _read(op: VariableRead, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return [run.variables[op.variable]]


@running(VariableWrite)
def _write(op: VariableWrite, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    run.variables[op.variable] = arrays[0]
    return []
