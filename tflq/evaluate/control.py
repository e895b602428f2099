"""Evaluators of TOSA's control flow: COND_IF and WHILE_LOOP run functions of the module on all of their inputs."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.control import CondIf, WhileLoop
from tflq.evaluate.registry import Run, running

__all__: list[str] = []


@running(CondIf)
def _if(op: CondIf, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return run.call(op.then_graph if arrays[0].all() else op.else_graph, arrays[1:])


@running(WhileLoop)
def _while(op: WhileLoop, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    while run.call(op.cond_graph, arrays)[0].all():
        arrays = run.call(op.body_graph, arrays)
    return arrays
