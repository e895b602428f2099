"""Lowering of reductions and of ARGMAX.

SUM is right on int32, REDUCE_MAX and REDUCE_MIN on any storage type, ARG_MAX on 8 and 32 bits; ALL and ANY are the
least and the greatest of bytes. A chain of reductions of
one kind is one kernel over several axes, and a reshape that drops just these axes is its `keep_dims`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tflq.dialects.tosa.bits import BitwiseNot
from tflq.dialects.tosa.reduction import ArgMax
from tflq.ir.core import Op, Value
from tflq.ir.types import i1, i8, i32, i64
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []

_BUILTINS = {
    "tosa.reduce_max": "reduce_max",
    "tosa.reduce_min": "reduce_min",
    "tosa.reduce_product": "reduce_prod",
    "tosa.reduce_sum": "sum",
}
_LOGICAL = {"tosa.reduce_all": "reduce_min", "tosa.reduce_any": "reduce_max"}


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


@lowering(*_LOGICAL)
def reduce_logical(op: Op, k: Kernels) -> Value:
    x = k.cast(k.value(op.operand(0)), i8)
    return k.cast(k.reduce(_LOGICAL[op.name], x, [op.attributes["axis"]], True, op.result.type.shape), i1)


@lowering(ArgMax)
def argmax(op: ArgMax, k: Kernels) -> Value:
    return _arg(op, k, k.value(op.input), "max")


@lowering(BitwiseNot)
def bitwise_not(op: BitwiseNot, k: Kernels) -> Value:
    """ARG_MIN where an ARGMAX reads the complement, else BITWISE_XOR."""
    x = k.value(op.input)
    following = k.only_user(op.result, "tosa.argmax")
    if following is not None:
        return k.fuse(following, _arg(following, k, x, "min"))
    return k.bitwise_xor(x, k.constant(~np.zeros((), x.type.storage.dtype), x.type.storage))


def _arg(op: Op, k: Kernels, x: Value, kind: Literal["max", "min"]) -> Value:
    """ARG_MAX or ARG_MIN, with the widening of its result, if that is what reads it."""
    if x.type.storage.bits == 16:
        x = k.cast(x, i32)
    widening = k.only_user(op.result, "tosa.cast")
    if widening is not None and widening.result.type.storage != i64:
        widening = None
    index = i32 if widening is None else i64
    axis = k.constant(op.attributes["axis"])
    type = op.result.type.with_element(index)
    result = k.emit(f"tfl.arg_{kind}", [x, axis], type, output_type="INT32" if widening is None else "INT64")
    return result if widening is None else k.fuse(widening, result)
