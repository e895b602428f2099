"""CONCATENATION: stored integers one after another.

uint8 operands of other scales are requantized in float (internal/reference/concatenation.h, ConcatenationWithScaling),
which is a 256-entry table per operand; int8 operands, which the kernel refuses, likewise. int16 is copied as it is, and
so is what has several scales. Source: kernels/concatenation.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.movement import Concatenation
from tflq.ir.core import Op, Value
from tflq.ir.types import UniformQuantizedType, ui8
from tflq.legalize.reference.generic.moved_parameters import parameters_differ, refused, seen_by_kernel
from tflq.legalize.reference.generic.movement import COPIED, under
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.requantize import real_table, requantize_table

__all__: list[str] = []


@rule(Concatenation)
def concatenation(op: Concatenation, b: RuleBuilder) -> Answer:
    """result = the operands one after another, each requantized to the result's parameters (int16: as it is)."""
    if op.fused_activation_function != "NONE":
        raise NotApplicable("CONCATENATION has no fused activation")
    operands, target = [v for v in op.operands if v is not None], op.result.type.element
    if any(v.type.storage != op.result.type.storage for v in operands):
        raise NotApplicable("operands and results have different storage types")
    if all(isinstance(v.type.element, UniformQuantizedType) for v in op.tensors):
        assert isinstance(target, UniformQuantizedType)
        return _per_layer(op, b, operands, target)
    differ = parameters_differ(op)
    mixed = len({seen_by_kernel(v) for v in op.tensors}) > 1
    if differ and (b.real or refused(op) or (mixed and op.result.type.storage == ui8)):
        raise NotApplicable("the result has other parameters than an operand, and one of them has several scales")
    return Rewritten([_concatenate(op, b, [b.value(v) for v in operands])], warning=COPIED if differ else "")


def _per_layer(op: Op, b: RuleBuilder, operands: list[Value], target: UniformQuantizedType) -> Answer:
    parts: list[Value] = []
    for value in operands:
        source, plain = value.type.element, b.value(value)
        assert isinstance(source, UniformQuantizedType)
        if source != target and target.storage.bits == 8:
            plain = _requantized(b, plain, source, target)
        parts.append(plain)
    raw = target.storage.bits != 8 and parameters_differ(op)
    if raw and b.real and (ready := under(b, op.operands, op.result)):
        return _concatenate(op, b, ready)
    return Rewritten([_concatenate(op, b, parts)], warning=COPIED if raw else "")


def _requantized(b: RuleBuilder, x: Value, source: UniformQuantizedType, target: UniformQuantizedType) -> Value:
    """uint8 as the kernel does it; that of int8 refuses other parameters."""
    parameters = source.storage.dtype, source.scale, source.zero_point, target.scale, target.zero_point
    table, wanted = requantize_table(*parameters), real_table(*parameters)
    off = 0 if not target.scale else int(np.abs(table.astype(np.int64) - wanted).max())
    if off > 1 and (b.real or target.storage is not ui8):
        table = wanted
    elif off > 1:
        b.note_undefined("a value of the result leaves int32", off)
    return b.table(x, table)


def _concatenate(op: Op, b: RuleBuilder, parts: list[Value]) -> Value:
    attributes = {**op.attributes, "fused_activation_function": "NONE"}
    return b.op(Concatenation, parts, [op.result.type.stripped()], attributes).result
