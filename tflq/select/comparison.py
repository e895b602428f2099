"""Comparisons, which abort the process on 8 bits and so widen first, and choices, which take every type."""

from __future__ import annotations

from tflq.dialects.tosa.comparison import Equal, Greater, GreaterEqual, Select
from tflq.ir.core import Value
from tflq.select.broadcasting import elementwise
from tflq.select.kernels import widened
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering(Equal)
def equal(op: Equal, k: Kernels) -> Value:
    return elementwise(k, k.equal, widened(k, k.value(op.input1)), widened(k, k.value(op.input2)))


@lowering(Greater)
def greater(op: Greater, k: Kernels) -> Value:
    return elementwise(k, k.greater, widened(k, k.value(op.input1)), widened(k, k.value(op.input2)))


@lowering(GreaterEqual)
def greater_equal(op: GreaterEqual, k: Kernels) -> Value:
    return elementwise(k, k.greater_equal, widened(k, k.value(op.input1)), widened(k, k.value(op.input2)))


@lowering(Select)
def select(op: Select, k: Kernels) -> Value:
    return elementwise(k, k.select_v2, k.value(op.condition), k.value(op.on_true), k.value(op.on_false))
