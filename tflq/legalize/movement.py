"""Data movement: operators that copy stored integers without arithmetic keep their kernel, on plain integers.

The kernels copy raw, whatever the parameters of source and result say (kernels/reshape.cc, transpose.cc, split.cc,
pack.cc, gather.cc, slice.cc, strided_slice.cc, tile.cc, reverse.cc ...). Where the result has other parameters than
its source, that reproduces the interpreter and is a warning on the report; where parameters must hold, what is
moved is requantized. Only padding writes a value of its own:
the zero point of the result (kernels/pad.cc, mirror_pad.cc, space_to_batch_nd.cc). CONCATENATION requantizes uint8
operands of other scales in float (internal/reference/concatenation.h, ConcatenationWithScaling), which is a 256-entry
table per operand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import per_layer, requantized
from tflq.numerics.requantize import requantize_table, rescaled_value

__all__ = ["COPIED", "parameters_differ", "version_of"]

COPIED = "the result has other quantization parameters than its source: the kernel copies the integers as they are"

_WIDENED: dict[str, frozenset[ScalarType]] = {
    "tfl.tile": frozenset({i16}),
    "tfl.space_to_depth": frozenset({i16}),
    "tfl.depth_to_space": frozenset({i16}),
    "tfl.broadcast_to": frozenset({ui8}),
    "tfl.reverse_sequence": frozenset({i8}),
    "tfl.scatter_nd": frozenset({i8, ui8}),
}
"""Storage types a kernel does not take, though the operator has them: moved as int32."""


def parameters_differ(op: Op) -> bool:
    """Whether quantized operands and results have more than one set of scales and zero points."""
    seen = {_comparable(v) for v in op.values if v.type.quantized}
    return len(seen) > 1


def _comparable(value: Value) -> object:
    element = value.type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        return (element.storage, element.scales.tobytes(), element.zero_points.tobytes())
    return element


def _per_axis(op: Op) -> Value | None:
    return next(
        (v for v in op.values if v.type.quantized and not isinstance(v.type.element, UniformQuantizedType)), None
    )


@rule(
    *(
        "tfl.reshape",
        "tfl.squeeze",
        "tfl.expand_dims",
        "tfl.transpose",
        "tfl.slice",
        "tfl.strided_slice",
        "tfl.split",
        "tfl.split_v",
    ),
    *(
        "tfl.pack",
        "tfl.unpack",
        "tfl.gather",
        "tfl.gather_nd",
        "tfl.tile",
        "tfl.reverse_v2",
        "tfl.broadcast_to",
        "tfl.space_to_depth",
    ),
    *(
        "tfl.depth_to_space",
        "tfl.batch_to_space_nd",
        "tfl.mirror_pad",
        "tfl.select",
        "tfl.select_v2",
        "tfl.reverse_sequence",
    ),
    *("tfl.dilate", "tfl.fill", "tfl.scatter_nd", "tfl.unique"),
    *("tfl.shape", "tfl.rank", "tfl.dynamic_update_slice", "tfl.topk_v2", "tfl.read_variable", "tfl.assign_variable"),
)
def move(op: Op, b: RuleBuilder) -> Answer:
    """result = the same stored integers, moved."""
    differ = any(v.type.quantized for v in op.results) and parameters_differ(op)
    if differ and (axis := _per_axis(op)):
        return NotApplicable(f"tensor '{axis.name}' has per-axis parameters that the result does not share")
    storage = next(v.type.storage for v in op.values if v.type.quantized)
    if any(v.type.quantized and v.type.storage != storage for v in op.values):
        return NotApplicable("operands and results have different storage types")
    if differ and b.real:
        return _move_real(op, b)
    operands = [None if v is None else b.value(v) for v in op.operands]
    widened = storage in _WIDENED.get(op.name, ())
    if widened:
        operands = [
            b.cast(p, i32) if v and p and v.type.quantized else p for v, p in zip(op.operands, operands, strict=True)
        ]
    results = [
        b.cast(new, old.type.storage) if old.type.quantized else new
        for old, new in zip(op.results, _moved(op, b, operands, widened), strict=True)
    ]
    return Rewritten(results, warning=COPIED if differ else "")


def _moved(op: Op, b: RuleBuilder, operands: list[Value | None], widened: bool = False) -> list[Value]:
    """The results of the kernel on plain operands."""
    types = [v.type.with_element(i32) if widened and v.type.quantized else v.type.stripped() for v in op.results]
    return b.op(op.name, operands, types, op.attributes, version_of(op)).results


def _move_real(op: Op, b: RuleBuilder) -> Answer:
    """Several sources take the result's parameters and are moved; what is moved of one takes those of each result."""
    quantized = [v for v in op.operands if v is not None and v.type.quantized]
    if quantized[0].type.storage.bits not in (8, 16):
        return NotApplicable(COPIED)
    sources, targets = per_layer(op, quantized), per_layer(op, [v for v in op.results if v.type.quantized])
    if isinstance(sources, NotApplicable) or isinstance(targets, NotApplicable):
        return NotApplicable(COPIED)
    common = sources[0] if len(sources) == 1 else targets[0]
    storage = common.storage
    widened = storage in _WIDENED.get(op.name, ())
    operands: list[Value | None] = []
    for value in op.operands:
        plain = None if value is None else b.value(value)
        if value is not None and plain is not None and value.type.quantized:
            plain = requantized(b, plain, sources.pop(0), common)
            plain = b.cast(plain, i32) if widened else plain
        operands.append(plain)
    return [
        requantized(b, b.cast(new, storage), common, targets.pop(0)) if old.type.quantized else new
        for old, new in zip(op.results, _moved(op, b, operands, widened), strict=True)
    ]


def version_of(op: Op) -> dict[str, int]:
    return {"version": op.info["version"]} if "version" in op.info else {}


@rule("tfl.maximum", "tfl.minimum")
def maximum_minimum(op: Op, b: RuleBuilder) -> Answer:
    """result = max or min of the stored integers. Source: kernels/maximum_minimum.cc."""
    if axis := _per_axis(op):
        return NotApplicable(f"tensor '{axis.name}' is not quantized per layer")
    differ = parameters_differ(op)
    operands = _under(b, op.operands, op.result) if differ and b.real else [b.value(op.operand(i)) for i in range(2)]
    if operands is None:
        return NotApplicable(COPIED)
    result = b.maximum(*operands) if op.name == "tfl.maximum" else b.minimum(*operands)
    return Rewritten([result], warning="" if b.real or not differ else COPIED)


def _under(b: RuleBuilder, operands: Sequence[Value | None], result: Value) -> list[Value] | None:
    """Operands of 8 or 16 bits under the result's parameters."""
    made: list[Value] = []
    for value in operands:
        source, target = value.type.element if value else None, result.type.element
        if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
            return None
        assert value is not None
        if source.storage != target.storage or source.storage.bits not in (8, 16):
            return None
        made.append(requantized(b, b.value(value), source, target))
    return made


@rule("tfl.cast")
def cast(op: Op, b: RuleBuilder) -> Answer:
    """result = the stored integers, converted: the kernel knows no scales; floats are truncated, and saturate. Source:
    kernels/cast.cc."""
    x, result = op.operand(0), op.result
    storage = result.type.storage
    whole = x.type.storage.is_float and storage.bits < 32
    type = result.type.with_element(i32) if whole else result.type.stripped()
    made = b.op("tfl.cast", [b.value(x)], [type], op.attributes, version_of(op)).result
    if whole:
        made = b.cast(b.clamp(made, storage.minimum, storage.maximum), storage)
    return Rewritten([made], warning="CAST converts the stored integers, whatever scale and zero point they have")


@rule("tfl.pad")
def pad(op: Op, b: RuleBuilder) -> Answer:
    """result = the operand, padded with the zero point. Source: kernels/pad.cc."""
    x, result = op.operand(0), op.result
    element = result.type.element
    if not isinstance(element, UniformQuantizedType) or parameters_differ(op):
        return NotApplicable("the operand has other quantization parameters than the result, or per-axis ones")
    fill = b.constant(np.asarray(element.zero_point), element.storage)
    return b.emit("tfl.padv2", [b.value(x), b.value(op.operand(1)), fill], result.type.stripped())


@rule("tfl.padv2")
def padv2(op: Op, b: RuleBuilder) -> Answer:
    """result = the operand, padded with a stored value; a constant of other parameters is requantized to the
    result's."""
    x, value, result = op.operand(0), op.operand(2), op.result
    source, fill, target = x.type.element, value.type.element, result.type.element
    if not (isinstance(source, UniformQuantizedType) and source == target):
        return NotApplicable("the operand has other quantization parameters than the result, or per-axis ones")
    if fill == target or not value.type.quantized:
        padding = b.value(value)
    elif isinstance(fill, UniformQuantizedType) and value.is_constant:
        stored = rescaled_value(
            int(value.array.reshape(())), fill.scale, fill.zero_point, source.scale, source.zero_point
        )
        padding = b.constant(np.asarray(np.clip(stored, source.storage_min, source.storage_max)), source.storage)
    else:
        return NotApplicable(f"pad value '{value.name}' is not a constant and has other quantization parameters")
    return b.emit("tfl.padv2", [b.value(x), b.value(op.operand(1)), padding], result.type.stripped())


@rule("tfl.space_to_batch_nd")
def space_to_batch(op: Op, b: RuleBuilder) -> Answer:
    """result = SPACE_TO_BATCH_ND(operand padded with the result's zero point, without padding). Source:
    kernels/space_to_batch_nd.cc."""
    x, block, paddings, result = op.operand(0), op.operand(1), op.operand(2), op.result
    element = result.type.element
    if not isinstance(element, UniformQuantizedType) or parameters_differ(op):
        return NotApplicable("the operand has other quantization parameters than the result, or per-axis ones")
    if not paddings.is_constant or x.type.shape is None:
        return NotApplicable(f"paddings '{paddings.name}' are not constant, or the operand's rank is unknown")
    plain, amounts = b.value(x), paddings.array.reshape(-1, 2)
    if amounts.any():
        around = np.zeros((len(x.type.shape), 2), np.int32)
        around[1 : 1 + len(amounts)] = amounts
        shape = tuple(None if d is None else d + int(p.sum()) for d, p in zip(x.type.shape, around, strict=True))
        fill = b.constant(np.asarray(element.zero_point), element.storage)
        plain = b.emit("tfl.padv2", [plain, b.constant(around), fill], TensorType(shape, element.storage))
    none = b.constant(np.zeros_like(amounts))
    return b.emit("tfl.space_to_batch_nd", [plain, b.value(block), none], result.type.stripped())


@rule("tfl.concatenation")
def concatenation(op: Op, b: RuleBuilder) -> Answer:
    """result = the operands one after another, each requantized to the result's parameters (int16: as it is)."""
    if op.attributes.get("fused_activation_function", "NONE") != "NONE":
        return NotApplicable("CONCATENATION has no fused activation")
    target = op.result.type.element
    if not isinstance(target, UniformQuantizedType):
        if parameters_differ(op):
            return NotApplicable("the result is quantized per axis, with other parameters than an operand")
        return _concatenate(op, b, [b.value(v) for v in op.operands if v is not None])
    parts: list[Value] = []
    for value in (v for v in op.operands if v is not None):
        source, plain = value.type.element, b.value(value)
        if not isinstance(source, UniformQuantizedType):
            return NotApplicable(f"operand '{value.name}' is not quantized per layer")
        if source != target and target.storage.bits == 8:
            table = requantize_table(
                source.storage.dtype, source.scale, source.zero_point, target.scale, target.zero_point
            )
            plain = b.table(plain, table)
        parts.append(plain)
    raw = target.storage.bits != 8 and parameters_differ(op)
    if raw and b.real and (ready := _under(b, op.operands, op.result)):
        return _concatenate(op, b, ready)
    return Rewritten([_concatenate(op, b, parts)], warning=COPIED if raw else "")


def _concatenate(op: Op, b: RuleBuilder, parts: list[Value]) -> Value:
    attributes = {**op.attributes, "fused_activation_function": "NONE"}
    return b.op("tfl.concatenation", parts, [op.result.type.stripped()], attributes).result
