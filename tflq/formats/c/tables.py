"""Tables above 4 KB as the arithmetic that they hold.

A gate of an integer LSTM is a table of 65,536 entries elsewhere: here the fixed-point functions that TFLite's kernels
compute (`numerics.activation`, in C in `helpers.c`). QUANTIZE of floats to int16 compares with the least float of each
step: here it compares the quotient, which is a single operation of IEEE 754.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from tflq.ir.core import Value
from tflq.numerics.activation import logistic_table, tanh_table
from tflq.numerics.float_basics import float_steps, from_steps, quantize_thresholds

_LARGE: Final = 4096
"""Bytes up to which a table stays one."""
_NEAR: Final = 4
"""Steps of float32 from an estimate of a scale to the scale itself, at most."""


def function_of(table: Value) -> str | None:
    """A pattern in C of the entry at an index less 32768, if a table is a function of int16."""
    if table.array.nbytes <= _LARGE or table.array.dtype != np.int16:
        return None
    return _functions().get(table.array.tobytes())


@cache
def _functions() -> dict[bytes, str]:
    tanhs = {tanh_table(bits).tobytes(): f"q15_tanh({{}}, {bits})" for bits in range(7)}
    return {logistic_table().tobytes(): "q15_logistic({})"} | tanhs


def thresholds_of(table: Value) -> tuple[float, int] | None:
    """Scale and first level, if the entries are the least floats that round to a level and those behind it."""
    array = table.array.reshape(-1)
    if array.nbytes <= _LARGE or array.dtype != np.float32 or not np.isfinite(array).all():
        return None
    wide = array.astype(np.float64)
    step = (wide[-1] - wide[0]) / (array.size - 1)
    if step <= 0 or abs(wide[0] / step) >= 1 << 22:
        return None
    first = round(wide[0] / step + 0.5)
    levels = first + np.arange(array.size)
    end = -1 if abs(levels[-1]) > abs(first) else 0
    near = float_steps(np.float32(wide[end] / (levels[end] - 0.5)).reshape(1))
    for scale in from_steps(near + np.arange(-_NEAR, _NEAR + 1)):
        if scale > 0 and np.array_equal(quantize_thresholds(scale, levels), array):
            return float(scale), first
    return None
