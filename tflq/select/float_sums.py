"""ext.table_2d in float32 kernels, where one of its operands is there already: ADD and SUB of float twins.

    MUL, MUL, ADD, ADD with RELU6 or RELU_N1_TO_1, MUL, FLOOR        1 ns per element; the table takes 4

for tables that are a plane, rounded (`tflq.numerics.float_plane`).
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.tables import Table2D
from tflq.dialects.tfl.unary import Floor
from tflq.ir.core import Value, constant
from tflq.ir.types import f32
from tflq.numerics.float_plane import FloatPlane, fit_float_plane
from tflq.numerics.float_requantize import N1_TO_1, RELU6
from tflq.select.lowering import Kernels
from tflq.select.twins import Twin, integers_of, twin_of

__all__ = ["float_sum"]


def float_sum(op: Table2D, k: Kernels) -> Value | None:
    """The integers of a sum in float32, with their twin; None where no operand has a twin, or without a proof."""
    x, y = k.value(op.input1), k.value(op.input2)
    if x not in k.twins and y not in k.twins:
        return None
    twins = [twin_of(k, v) or Twin(k.cast(v, f32), 0) for v in (x, y)]
    entries = op.table.array.reshape(256, 256).astype(np.int64)
    least = int(entries.min())
    numbers = (v.type.storage.minimum - twin.offset + np.arange(256) for v, twin in zip((x, y), twins, strict=True))
    first, second = numbers
    for clamp in (RELU6, N1_TO_1):
        fit = fit_float_plane(entries - least, first, second, clamp)
        if fit is not None:
            twin = Twin(_sum(k, twins[0].value, twins[1].value, fit), least + clamp.middle)
            return integers_of(k, twin, op.result.type.storage)
    return None


def _sum(k: Kernels, x: Value, y: Value, fit: FloatPlane) -> Value:
    total = k.add(_times(k, x, fit.m), _times(k, y, fit.n))
    total = k.add(total, k.constant(fit.c, f32), fit.clamp.activation)
    total = k.mul(total, k.constant(fit.gain, f32))
    return k.emit(Floor, [total], total.type)


def _times(k: Kernels, x: Value, factor: np.float32) -> Value:
    return constant(x.array * factor) if x.is_constant else k.mul(x, k.constant(factor, f32))
