"""PAD, PADV2 and SPACE_TO_BATCH_ND: stored integers moved, and others put around them.

PAD writes the zero point of the result, PADV2 a stored value. Both copy the operand as it is; PADV2 refuses a value
that does not have the result's parameters, SPACE_TO_BATCH_ND an operand: what no kernel takes is requantized. Source:
kernels/pad.cc (EvalInt), space_to_batch_nd.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.movement import Pad, PadV2, Slice, SpaceToBatchND
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.reference.generic.moved_parameters import follow, refused, seen_by_kernel
from tflq.legalize.reference.generic.movement import COPIED
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import requantized_if_plain
from tflq.numerics.requantize import rescaled_value

__all__: list[str] = []

_OTHER = "no kernel takes an operand of other parameters than the result's, and one of them has several scales"


@rule(Pad, PadV2)
def pad(op: Pad | PadV2, b: RuleBuilder) -> Answer:
    """result = the operand, with a stored value around it."""
    x, result = op.input, op.result
    storage = result.type.storage
    if x.type.storage != storage or storage not in (i8, ui8, i16, i32):
        raise NotApplicable(f"no kernel pads {x.type.storage} to {storage}")
    value = op.value if isinstance(op, PadV2) else None
    takes = value is None or storage == i32 or seen_by_kernel(value) == seen_by_kernel(result)
    same = _around_is_zero(op) and _inside_follows(op)
    plain = b.value(x)
    if not same and (b.real or not takes):
        moved = requantized_if_plain(b, plain, x.type.element, result.type.element)
        if moved is None:
            raise NotApplicable(_OTHER)
        plain = moved
    fill = b.constant(np.asarray(seen_by_kernel(result)[1]), storage) if value is None else _fill(b, value, result)
    if fill is None:
        raise NotApplicable(_OTHER)
    padded = b.emit(PadV2, [plain, b.value(op.paddings), fill], result.type.stripped())
    return Rewritten([padded], warning=COPIED if takes and not same and not b.real else "")


def _around_is_zero(op: Pad | PadV2) -> bool:
    """Whether the stored value that stands around the operand means the same under each of the result's scales."""
    element = op.result.type.element
    if isinstance(element, UniformQuantizedType):
        return True
    return isinstance(op, Pad) and not np.any(getattr(element, "zero_points", 1))


def _inside_follows(op: Pad | PadV2) -> bool:
    """Whether what is moved has the parameters of where it goes."""
    x, result = op.input, op.output
    if x.type.element == result.type.element and isinstance(x.type.element, UniformQuantizedType):
        return True
    paddings = op.paddings
    if not (paddings.is_constant and x.type.is_static):
        return False
    begin, shape = paddings.array.reshape(-1, 2)[:, 0], x.type.shape or ()
    cut: list[Value | None] = [Value(result.type), constant(begin), constant(np.asarray(shape, np.int32))]
    inside = Op(Slice.op_name, cut, [Value(x.type)], {})
    return follow(inside)


def _fill(b: RuleBuilder, value: Value, result: Value) -> Value | None:
    """What PADV2 writes, under the result's parameters; a constant of any type."""
    source, target = value.type.element, result.type.element
    if not value.type.quantized or seen_by_kernel(value) == seen_by_kernel(result):
        return b.value(value)
    if not value.is_constant or not isinstance(source, UniformQuantizedType):
        return requantized_if_plain(b, b.value(value), source, target)
    if not isinstance(target, UniformQuantizedType):
        return None
    parameters = (source.scale, source.zero_point, target.scale, target.zero_point)
    stored = rescaled_value(int(value.array.reshape(())), *parameters)
    return b.constant(np.asarray(np.clip(stored, target.storage_min, target.storage_max)), target.storage)


@rule(SpaceToBatchND)
def space_to_batch(op: SpaceToBatchND, b: RuleBuilder) -> Answer:
    """result = SPACE_TO_BATCH_ND(operand padded with the result's zero point, without padding)."""
    x, paddings, result = op.input, op.paddings, op.result
    element, storage = result.type.element, result.type.storage
    if x.type.storage != storage:
        raise NotApplicable(f"no kernel moves {x.type.storage} to {storage}")
    plain, zero, warning = b.value(x), seen_by_kernel(result)[1], ""
    if isinstance(element, UniformQuantizedType) and x.type.element != element:
        moved = requantized_if_plain(b, plain, x.type.element, result.type.element)
        if moved is None:
            raise NotApplicable(_OTHER)
        plain = moved
    elif not isinstance(element, UniformQuantizedType):
        padded = not paddings.is_constant or paddings.array.any()
        if (padded and np.any(getattr(element, "zero_points", 1))) or not follow(op):
            if b.real or refused(op):
                raise NotApplicable(_OTHER)
            warning = COPIED
    return Rewritten([_spread(op, b, plain, zero)], warning=warning)


def _spread(op: SpaceToBatchND, b: RuleBuilder, plain: Value, zero: int) -> Value:
    """Padded with a stored value, and moved. The kernel on plain integers pads with 0: where the paddings are not
    known, what is moved is the distance from the value."""
    x, block, paddings, type = op.input, op.block, op.paddings, op.output.type.stripped()
    storage = type.storage
    if zero and (not paddings.is_constant or x.type.shape is None):
        wide = b.sub(b.cast(plain, i32), b.constant(np.asarray(zero)))
        operands = [wide, b.value(block), b.value(paddings)]
        moved = b.emit(SpaceToBatchND, operands, type.with_element(i32))
        return b.cast(b.add(moved, b.constant(np.asarray(zero))), storage)
    if not zero or x.type.shape is None:
        return b.emit(SpaceToBatchND, [plain, b.value(block), b.value(paddings)], type)
    amounts = paddings.array.reshape(-1, 2)
    if amounts.any():
        around = np.zeros((len(x.type.shape), 2), np.int32)
        around[1 : 1 + len(amounts)] = amounts
        shape = tuple(None if d is None else d + int(p.sum()) for d, p in zip(x.type.shape, around, strict=True))
        fill = b.constant(np.asarray(zero), storage)
        plain = b.emit(PadV2, [plain, b.constant(around), fill], TensorType(shape, storage))
    none = b.constant(np.zeros_like(amounts))
    return b.emit(SpaceToBatchND, [plain, b.value(block), none], type)
