"""The cost of casts between reals and quantized values: the number that the solver makes small.

    cost of a module = the elements that all its casts read, each cast counted once

Casts are `quant.qcast` and `quant.dcast`, and what TFLite and StableHLO call the same. A `quant.scast` computes
nothing, so it costs nothing. An op on quantized types whose declaration takes reals only stands for itself between
casts, which are counted: one for each quantized operand and result. An open dim counts as 1, and so does an unknown
rank. An op inside of another, or in a function that is called, is counted as if it ran once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tflq.dialects.declare import Operator, Slot
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.stablehlo.elementwise import UniformDequantize, UniformQuantize
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.traits import MovesElements
from tflq.ir.facts import walk
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value

RealCast: TypeAlias = Qcast | Dcast | Quantize | Dequantize | UniformQuantize | UniformDequantize
"""Ops between reals and quantized values, and between quantized values of different parameters."""


def cast_cost(module: Module) -> int:
    """The elements that the casts of a module read, in all its functions."""
    return sum(cost_of_op(op) for op in walk(module.ops()))


def cost_of_op(op: Op) -> int:
    """The elements that an op casts, itself or by what it stands for."""
    if isinstance(op, RealCast):
        return op.input.type.size
    if not any(value.type.quantized for value in op.tensors) or not computes_on_reals(op):
        return 0
    return sum(value.type.size for value in dict.fromkeys(op.tensors) if value.type.quantized)


def computes_on_reals(op: Op) -> bool:
    """Whether an op on quantized types takes reals in their place, and no quantized types: by its declaration, or
    because no dialect declares it."""
    if op.__class__ is Op:
        return not op.regions
    if not isinstance(op, Operator) or op.has(MovesElements):
        return False
    slots = [slot for slot, value in _paired(op) if value.type.quantized]
    return bool(slots) and all(slot.types and not takes_quantized(slot) and _takes_floats(slot) for slot in slots)


def takes_quantized(slot: Slot) -> bool:
    """Whether an operand or result is declared to take quantized types."""
    return any("quantized" in types.names for types in slot.types)


def _takes_floats(slot: Slot) -> bool:
    return any("f32" in types.names for types in slot.types)


def is_quantizable(op: Op) -> bool:
    """Whether the declaration of an op says that it takes quantized types where it takes reals."""
    if not isinstance(op, Operator):
        return False
    slots = [slot for slot, value in _paired(op) if value.type.storage.is_float or value.type.quantized]
    return bool(slots) and all(takes_quantized(slot) and _takes_floats(slot) for slot in slots)


def _paired(op: Operator) -> Iterator[tuple[Slot, Value]]:
    """Operands and results with their declarations; the last one of each takes the rest."""
    sides: tuple[tuple[tuple[Slot, ...], Sequence[Value | None]], ...] = (
        (op.operand_slots, op.operands),
        (op.result_slots, op.results),
    )
    for slots, values in sides:
        for place, value in enumerate(values):
            if value is not None and slots:
                yield slots[min(place, len(slots) - 1)], value
