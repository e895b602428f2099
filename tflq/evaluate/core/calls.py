"""Calls of functions of the module; a function as a value is its name."""

from __future__ import annotations

import numpy as np

from tflq.dialects.func.calls import Call, CallIndirect, Constant
from tflq.evaluate.registry import Run, evaluator, running

__all__: list[str] = []


@running(Call)
def _call(op: Call, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return run.call_named(str(op.callee), arrays)


@running(CallIndirect)
def _call_indirect(op: CallIndirect, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return run.call_named(str(arrays[0].item()), arrays[1:])


@evaluator(Constant)
def _constant(op: Constant) -> np.ndarray:
    return np.array(str(op.value), object)
