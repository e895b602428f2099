"""CUMSUM: log2(n) shifted additions. Source: kernels/cumsum.cc."""

from __future__ import annotations

from tflq.dialects.tfl.reduction import Cumsum
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import i32
from tflq.tosa.lowering.floats.arithmetic import need_float
from tflq.tosa.lowering.registry import Tosa, lowering

__all__: list[str] = []


@lowering(Cumsum)
def cumulative_sum(op: Cumsum, t: Tosa) -> Value:
    x, axis = op.input, op.axis
    if x.type.storage != i32 and not x.type.storage.is_float:
        raise Refused(f"'{x.name}' is {x.type.storage}, which TOSA does not add")
    if x.type.storage.is_float:
        need_float(t, op)
    if not axis.is_constant or not x.type.shape:
        raise Refused("the axis is not known, or a scalar has none")
    along = int(axis.array.reshape(())) % len(x.type.shape)
    size = x.type.shape[along]
    if size is None:
        raise Refused(f"the size of '{x.name}' along the axis is not known")
    back = bool(op.reverse)
    total = t.value(x)
    if op.exclusive:
        total = _moved(total, along, 1, back, t)
    step = 1
    while step < size:
        total = t.add(total, _moved(total, along, step, back, t))
        step *= 2
    return total


def _moved(x: Value, axis: int, step: int, back: bool, t: Tosa) -> Value:
    """x moved along an axis by some places, zeros moved in: towards its start, or its end."""
    shape = x.type.shape or ()
    padding = [((0, step) if back else (step, 0)) if a == axis else (0, 0) for a in range(len(shape))]
    start = [step if back and a == axis else 0 for a in range(len(shape))]
    return t.slice(t.pad(x, padding), start, shape)
