"""Lowering of reductions and of ARGMAX: SUM on int32, REDUCE_MAX and REDUCE_MIN on any storage type, ARG_MAX on 8 and 32 bits.

A chain of reductions of one kind is one kernel over several axes, and a reshape that drops just these axes is its `keep_dims`.
"""

from __future__ import annotations

from tflq.ir.core import Op, Value
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []

_BUILTINS = {"tosa.reduce_sum": "sum", "tosa.reduce_max": "reduce_max", "tosa.reduce_min": "reduce_min"}


@lowering(*_BUILTINS)
def reduce(op: Op, k: Kernels) -> Value:
    x, shape = k.value(op.operand(0)), op.operand(0).type.shape or ()
    chain = [op]
    while (following := k.only_user(chain[-1].result, op.name)) is not None:
        chain.append(following)
    axes = sorted({o.attributes["axis"] % len(shape) for o in chain})
    reshape = k.only_user(chain[-1].result, "tosa.reshape")
    dropped = tuple(d for a, d in enumerate(shape) if a not in axes)
    keep_dims = reshape is None or reshape.result.type.shape != dropped
    if reshape is not None and not keep_dims:
        chain.append(reshape)
    result = k.reduce(_BUILTINS[op.name], x, axes, keep_dims, chain[-1].result.type.shape)
    for other in chain[1:]:
        k.fuse(other, result)
    return result
