"""Elementwise arithmetic: one kernel each on int32 and int64. MUL on 8 bits returns zeros, so it widens first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from tflq.dialects.tfl.unary import Abs as TflAbs
from tflq.dialects.tfl.unary import Neg, Sign
from tflq.dialects.tosa.arithmetic import Abs, Add, IntDiv, Maximum, Minimum, Mul, Negate, Pow, Sub
from tflq.ir.core import Op, Value
from tflq.ir.types import i32
from tflq.select.broadcasting import elementwise
from tflq.select.kernels import widened
from tflq.select.lowering import Kernels, lowering
from tflq.select.rescale.integer import clamped
from tflq.select.shifts import product_shifted

__all__: list[str] = []


@lowering(Mul)
def mul(op: Mul, k: Kernels) -> Value:
    a, b = (widened(k, k.value(v)) for v in (op.input1, op.input2))
    shift = op.shift
    product = product_shifted(k, a, b, shift) if shift else elementwise(k, k.mul, a, b)
    return k.cast(product, op.result.type.storage)


@lowering(Abs)
def absolute(op: Abs, k: Kernels) -> Value:
    """x * sign(x) of integers, an eighth of the time of ABS; the least one stays."""
    x = k.value(op.input1)
    if x.type.storage.is_float:
        return k.emit(TflAbs, [x])
    return k.mul(x, k.emit(Sign, [x]))


@lowering(Negate)
def negate(op: Negate, k: Kernels) -> Value:
    """output_zp - (x - input1_zp), clamped; i32, which has no zero points, only at its least value."""
    x, storage = k.value(op.input1), op.result.type.storage
    if storage.is_float:
        return k.emit(Neg, [x])
    if storage.bits == 32:
        return k.sub(k.constant(0), k.maximum(x, k.constant(-storage.maximum)))
    total = op.output_zp + op.input1_zp
    y = k.sub(k.constant(total), k.cast(x, i32))
    least, most = total - storage.maximum, total - storage.minimum
    return k.cast(clamped(k, y, np.asarray(storage.minimum), np.asarray(storage.maximum), least, most), storage)


_EMITTED: Final[Mapping[type[Op], Callable[[Kernels, Value, Value], Value]]] = {
    Add: Kernels.add,
    IntDiv: Kernels.div,
    Maximum: Kernels.maximum,
    Minimum: Kernels.minimum,
    Pow: Kernels.pow,
    Sub: Kernels.sub,
}


@lowering(*_EMITTED)
def binary(op: Add | IntDiv | Maximum | Minimum | Pow | Sub, k: Kernels) -> Value:
    """DIV of integers truncates, as INTDIV does."""
    return elementwise(k, partial(_EMITTED[type(op)], k), k.value(op.input1), k.value(op.input2))
