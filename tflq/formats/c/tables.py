"""Tables above 4 KB as the arithmetic that they hold.

A gate of an integer LSTM is a table of 65,536 entries elsewhere: here the fixed-point functions that TFLite's kernels
compute (`numerics.activation`, in C in `helpers.c`). QUANTIZE of floats to int16 compares with the least float of each
step: here it compares the quotient, which is a single operation of IEEE 754.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from tflq.ir.ops import Value
from tflq.numerics.activation import logistic_table, tanh_table
from tflq.numerics.float_basics import scale_of_thresholds

_LARGE: Final = 4096
"""Bytes up to which a table stays one."""


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
    """Scale and first level of a large table of thresholds; None if it is none."""
    array = table.array.reshape(-1)
    return scale_of_thresholds(array) if array.nbytes > _LARGE and array.dtype == np.float32 else None
