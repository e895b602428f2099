"""What the builtins cost, and which of two exact forms to take.

Nanoseconds per element, measured on 200,000 to 1,200,000 elements in the interpreter with optimized kernels, no
delegate and one thread (AMD EPYC; the reference kernels are within 20% of these but for MAXIMUM and MINIMUM of 8
bits, 1.9 there):

    CAST of 8 and 32 bits .1, to int64 .2, float32 to int32 .3      BITCAST .03 to .3, RESHAPE .03 to .1
    ADD, SUB, MUL int32 .15 scalar, .2 per channel                   the same of int64 .4 to .5, MUL per channel .75
    SUB or ADD with RELU as those without                            MAXIMUM, MINIMUM int32 1.6 to 1.7, int8 .05 to .1
    SIGN .15                                                         ABS 2.5, RIGHT_SHIFT 1.6 to 1.75
    DIV int32 1.9                                                    FLOOR_DIV 6.5
    GATHER from a table 3.4                                          comparisons and SELECT_V2 1.7
    high word of int64: BITCAST, RESHAPE, TRANSPOSE, GATHER of a row 1.0 to 1.4; GATHER or STRIDED_SLICE of the
        last dim 3.7 and 12
    RESCALE int32 to int8: division 2.9 to 3.6; int64 and its high word 4 to 5.5; RIGHT_SHIFT and MAXIMUM 9
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tflq.dialects.ext.rescale import RescaleF64, RoundingDivideByPot
from tflq.dialects.ext.tables import Table2D
from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.arithmetic import Add, IntDiv, Maximum, Minimum, Mul, Sub
from tflq.dialects.tosa.bits import ArithmeticRightShift, LogicalLeftShift
from tflq.dialects.tosa.casts import Cast, Rescale
from tflq.dialects.tosa.comparison import Equal, Greater, GreaterEqual, Select
from tflq.dialects.tosa.indexing import Table
from tflq.dialects.tosa.movement import Identity
from tflq.ir.core import Op

__all__ = ["arithmetic", "table_pays"]

TABLE = 3.5
"""tosa.table of 8 bits: BITCAST, CAST, GATHER."""

TABLE_2D = 4.1
"""ext.table_2d: both indices, MUL, ADD, GATHER."""

_RESCALE_TO_8, _RESCALE_WIDE, _SHIFT_ONLY = 3.6, 5.0, 0.5

_FIGURES: Final[Mapping[type[Op], float]] = {
    Cast: 0.1,
    Identity: 0.1,
    Add: 0.2,
    Sub: 0.2,
    Mul: 0.2,
    Clamp: 0.2,
    Maximum: 1.6,
    Minimum: 1.6,
    Equal: 1.7,
    Greater: 1.7,
    GreaterEqual: 1.7,
    Select: 1.7,
    ArithmeticRightShift: 1.6,
    LogicalLeftShift: 3.6,
    IntDiv: 1.9,
    Table: TABLE,
    Table2D: TABLE_2D,
    RescaleF64: _RESCALE_TO_8,
    RoundingDivideByPot: 4.0,
}


def table_pays(ops: Sequence[Op], sources: int) -> float:
    """Nanoseconds per element by which a table of one or two sources costs less than the ops it replaces."""
    return arithmetic(ops) - (TABLE if sources == 1 else TABLE_2D)


def arithmetic(ops: Iterable[Op]) -> float:
    """Nanoseconds per element of elementwise ops, each lowered by itself."""
    return sum(_of(op) for op in ops)


def _of(op: Op) -> float:
    if isinstance(op, Rescale):
        return _rescale(op)
    if isinstance(op, Mul) and op.shift:
        return _RESCALE_WIDE
    if isinstance(op, ArithmeticRightShift) and op.round:
        return 2 * _FIGURES[ArithmeticRightShift]
    return _FIGURES.get(type(op), _RESCALE_WIDE)


def _rescale(op: Rescale) -> float:
    scale = op.multiplier / 2.0**op.shift
    if (scale == 1).all():
        return _SHIFT_ONLY
    return _RESCALE_TO_8 if op.result.type.storage.bits == 8 and (scale < 1).all() else _RESCALE_WIDE
