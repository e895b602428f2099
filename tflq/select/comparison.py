"""Comparisons, which abort the process on 8 bits and so widen first, and choices, which take every type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tflq.dialects.tfl.comparison import SelectV2
from tflq.dialects.tosa.comparison import Equal, Greater, GreaterEqual, Select
from tflq.ir.core import Op, Value
from tflq.select.broadcasting import elementwise
from tflq.select.kernels import widened
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


_EMITTED: Final[Mapping[type[Op], Callable[[Kernels, Value, Value], Value]]] = {
    Equal: Kernels.equal,
    Greater: Kernels.greater,
    GreaterEqual: Kernels.greater_equal,
}


@lowering(*_EMITTED)
def compare(op: Equal | Greater | GreaterEqual, k: Kernels) -> Value:
    a, b = (widened(k, k.value(v)) for v in (op.input1, op.input2))
    return elementwise(k, partial(_EMITTED[type(op)], k), a, b)


@lowering(Select)
def select(op: Select, k: Kernels) -> Value:
    operands = (k.value(v) for v in (op.condition, op.on_true, op.on_false))
    return elementwise(k, lambda *xs: k.emit(SelectV2, xs), *operands)
