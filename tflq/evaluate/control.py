"""Evaluators of TOSA's control flow and variables.

COND_IF and WHILE_LOOP run other functions of the module on all of their inputs. A variable has its initial value until
it is written; the functions of one run share them by name.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.control import CondIf, WhileLoop
from tflq.dialects.tosa.state import Variable, VariableRead, VariableWrite
from tflq.evaluate.registry import Run, control

__all__: list[str] = []


@control(CondIf)
def _if(op: CondIf, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    chosen = "then_graph" if arrays[0].all() else "else_graph"
    return run.call(op.attributes[chosen], arrays[1:])


@control(WhileLoop)
def _while(op: WhileLoop, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    while run.call(op.cond_graph, arrays)[0].all():
        arrays = run.call(op.body_graph, arrays)
    return arrays


@control(Variable)
def _variable(op: Variable, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    run.variables.setdefault(op.variable, arrays[0])
    return []


@control(VariableRead)
def _read(op: VariableRead, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return [run.variables[op.variable]]


@control(VariableWrite)
def _write(op: VariableWrite, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    run.variables[op.variable] = arrays[0]
    return []
