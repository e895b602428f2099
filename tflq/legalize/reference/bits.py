"""BITWISE_XOR, RIGHT_SHIFT and BITCAST: the bits of stored integers, whatever they stand for.

Sources: kernels/bitwise_xor.cc, right_shift.cc, bitcast.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.bits import Bitcast, BitwiseXor, RightShift
from tflq.dialects.tfl.runtime import version_info
from tflq.dialects.tfl.shape import BroadcastArgs, Fill, Rank, Shape
from tflq.dialects.tosa.bits import BitwiseAnd
from tflq.ir.types import TensorType, i32
from tflq.legalize.reference.generic.movement import move
from tflq.legalize.rule import Answer, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name

__all__: list[str] = []


@rule(BitwiseXor, RightShift, BroadcastArgs)
def stored(op: BitwiseXor | RightShift | BroadcastArgs, b: RuleBuilder) -> Answer:
    """result = the kernel's, of the stored integers; they have no other meaning, whatever the parameters."""
    operands = [None if v is None else b.value(v) for v in op.operands]
    kind = op.lhs.type.storage
    types = [v.type.with_element(kind if v.type.quantized else v.type.element) for v in op.results]
    made = b.op(op.name, operands, types, op.attributes, version_info(op)).results
    results = [b.cast(new, old.type.storage) for new, old in zip(made, op.results, strict=True)]
    return Rewritten(results, note=f"{kernel_name(op)} takes the stored integers, whatever they stand for")


@rule(Bitcast)
def bitcast(op: Bitcast, b: RuleBuilder) -> Answer:
    """result = the same bits. Integers of one width are cast; of 8 and 16 bits, parts are shifted."""
    x, result = b.value(op.input), op.result.type.stripped()
    note = "BITCAST takes the stored integers, whatever they stand for"
    widths = x.type.storage.bits, result.storage.bits
    rank, open_dims = x.type.rank, (x.type.shape or ()).count(None)
    if widths[0] == widths[1] and x.type.storage.is_integer and result.storage.is_integer:
        return Rewritten([b.cast(x, result.storage)], note=note)
    if rank is not None and not open_dims and widths == (16, 8):
        low = b.cast(x, i32)
        high = b.arithmetic_right_shift(low, b.constant(np.asarray(8)))
        shape = [*(x.type.shape or ()), 1]
        parts = [b.reshape(b.cast(part, result.storage), shape) for part in (low, high)]
        return Rewritten([b.concat(parts, len(shape) - 1)], note=note)
    if rank and not open_dims and widths == (8, 16):
        shape = list(x.type.shape or ())
        wide = b.cast(x, i32)
        start, size = [0] * (rank - 1), shape[:-1]
        types = TensorType((*size, 1), i32)
        low, high = (b.slice(wide, (*start, place), (*size, 1)) for place in (0, 1))
        low = b.emit(BitwiseAnd, [low, b.constant(np.asarray(255))], types)
        whole = b.add(b.mul(high, b.constant(np.asarray(256))), low)
        return Rewritten([b.reshape(b.cast(whole, result.storage), size)], note=note)
    made = b.op(op.name, [x], [result], op.attributes, version_info(op))
    return Rewritten(made.results, note=note)


rule(Shape, Rank, Fill)(move)
