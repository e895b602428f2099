"""Evaluators of TOSA's control flow and variables.

COND_IF and WHILE_LOOP run other functions of the module on all of their inputs. A variable has its initial value until
it is written; the functions of one run share them by name.
"""

from __future__ import annotations

import numpy as np

from tflq.evaluate.registry import Run, control
from tflq.ir.core import Op

__all__: list[str] = []


@control("tosa.cond_if")
def _if(op: Op, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    chosen = "then_graph" if arrays[0].all() else "else_graph"
    return run.call(op.attributes[chosen], arrays[1:])


@control("tosa.while_loop")
def _while(op: Op, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    while run.call(op.attributes["cond_graph"], arrays)[0].all():
        arrays = run.call(op.attributes["body_graph"], arrays)
    return arrays


@control("tosa.variable")
def _variable(op: Op, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    run.variables.setdefault(op.attributes["name"], arrays[0])
    return []


@control("tosa.variable_read")
def _read(op: Op, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return [run.variables[op.attributes["name"]]]


@control("tosa.variable_write")
def _write(op: Op, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    run.variables[op.attributes["name"]] = arrays[0]
    return []
