"""Data movement: operators that copy stored integers without arithmetic keep their kernel, on plain integers.

The kernels copy the stored integers, whatever the parameters of source and result say (kernels/reshape.cc,
transpose.cc, split.cc, pack.cc, gather.cc, slice.cc, strided_slice.cc, tile.cc, reverse.cc ...). Where the result has
other parameters than its source, copying them reproduces the interpreter and is a warning in the report; where
parameters must hold, and where the kernel refuses other parameters, the elements are requantized. Indices become int32
where only kernels on quantized tensors take their type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tflq.analysis.evaluate.registry import evaluator
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.parameters import AsksSameScale, LacksKernel
from tflq.dialects.tfl import without_activation
from tflq.dialects.tfl.comparison import Select, SelectV2
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tfl.movement import (
    BatchToSpaceND,
    BroadcastTo,
    Concatenation,
    Densify,
    DepthToSpace,
    Dilate,
    ExpandDims,
    MirrorPad,
    Pack,
    Pad,
    PadV2,
    Reshape,
    ReverseSequence,
    ReverseV2,
    Slice,
    SpaceToBatchND,
    SpaceToDepth,
    Split,
    SplitV,
    Squeeze,
    StridedSlice,
    Tile,
    Transpose,
    Unpack,
)
from tflq.dialects.tfl.shape import Fill
from tflq.dialects.tfl.state import version_info
from tflq.dialects.traits import MovesElements
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i8, i16, i32, i64, is_quantized, parameters, ui8
from tflq.legalize.probing import per_layer, requantized, requantized_if_plain
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.fixed_point import requantize_table, rescaled_table, rescaled_value

# Whether quantization parameters move along with the elements that an operator moves, and which kernels ask for it.
#
# Most kernels copy the stored integers and ignore parameters. A few refuse operands whose scale and zero point
# are not the result's; of a tensor with several scales they see 0 and 0. Sources: kernels/expand_dims.cc, pack.cc,
# unpack.cc, fill.cc, mirror_pad.cc, space_to_batch_nd.cc, batch_to_space_nd.cc, concatenation.cc, pad.cc; types
# without a kernel: reverse_sequence.cc, space_to_depth.cc, depth_to_space.cc, one_hot.cc.


_LARGEST = 1 << 24
"""The most elements of a tensor whose parameters are followed one by one."""


def parameters_differ(op: Op) -> bool:
    """Whether elements come under other parameters than they had, and some of them stand for another number there."""
    return any(v.type.quantized for v in op.results) and not (follow(op) or _same_numbers(op))


def _same_numbers(op: Op) -> bool:
    """Whether everything that is moved to the only result has its parameters, or is a constant of numbers that are
    stored alike under both. Values that a constant condition does not choose are not moved."""
    element, moved = op.result.type.element, [v for v in op.present_operands if v.type.quantized]
    if len([v for v in op.results if v.type.quantized]) != 1 or not isinstance(element, UniformQuantizedType):
        return False
    if isinstance(op, (Select, SelectV2)) and op.condition.is_constant:
        chosen = op.condition.array
        if len(set(chosen.reshape(-1).tolist())) == 1:
            moved = [op.on_true if chosen.all() else op.on_false]
    return all(v.type.element == element or _stored_alike(v, element) for v in moved)


def _stored_alike(value: Value, target: UniformQuantizedType) -> bool:
    """Whether a constant's numbers are stored as the same integers under another type."""
    source = value.type.element
    if not value.is_constant or not isinstance(source, UniformQuantizedType) or source.storage != target.storage:
        return False
    with np.errstate(all="ignore"):
        stored = np.unique(value.array).astype(np.float64)
        steps = (stored - source.zero_point) * (np.float64(source.scale) / target.scale)
        wanted = np.clip(np.round(steps) + target.zero_point, target.storage_min, target.storage_max)
    return bool((wanted == stored).all())


def seen_by_kernel(value: Value) -> tuple[float, int]:
    """Scale and zero point that a kernel finds on a tensor."""
    element = value.type.element
    if not is_quantized(element):
        return 0.0, 0
    if isinstance(element, UniformQuantizedType):
        return element.scale, element.zero_point
    scale, zero = parameters(value.type)
    return (float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0])) if scale.size == 1 else (0.0, 0)


def refused(op: Op) -> bool:
    """Whether no kernel moves these types, or from the operands' parameters to the result's."""
    quantized = [v for v in op.tensors if v.type.quantized]
    lacks, asks = trait_of(op, LacksKernel), trait_of(op, AsksSameScale)
    if lacks is not None and lacks.concerns(op):
        return True
    if asks is None or not any(v.type.storage in asks.storages for v in quantized):
        return False
    return len({seen_by_kernel(v) for v in quantized}) > 1


def follow(op: Op) -> bool:
    """Whether every element of the results has the scale and zero point of the one that is moved there."""
    quantized = [v for v in op.tensors if v.type.quantized]
    if all(isinstance(v.type.element, UniformQuantizedType) for v in quantized):
        return len({(v.type.element, v.type.storage) for v in quantized}) == 1
    whole = all(v.type.shape is not None and 0 < math.prod(_dims(v.type)) <= _LARGEST for v in op.tensors)
    return whole and _followed(op)


def _dims(type: TensorType) -> tuple[int, ...]:
    """A shape in which an open dim has one element, or as many as there are scales along it."""
    return tuple(n if d is None else d for d, n in zip(type.shape or (), _scales(type), strict=True))


def _scales(type: TensorType) -> tuple[int, ...]:
    """The number of scales along each dim."""
    counts = parameters(type)[0].shape if type.quantized else ()
    return (1,) * (len(type.shape or ()) - len(counts)) + counts


def _followed(op: Op) -> bool:
    """Whether the operator moves numbers that stand for parameters to where the results have them."""
    known: dict[tuple[object, ...], int] = {}
    operands = [None if v is None else _numbers(v, _dims(v.type), known) for v in op.operands]
    if isinstance(op, (Select, SelectV2)):
        dims = _dims(op.result.type)
        return all(x is not None and _same(np.broadcast_to(x, dims), op.result, known) for x in operands[1:])
    compute = evaluator.get(type(op)) if isinstance(op, Operator) and op.has(MovesElements) else None
    if compute is None or any(v is not None and x is None for v, x in zip(op.operands, operands, strict=True)):
        return False
    try:
        moved = compute(op, *operands)
    except (ValueError, IndexError):  # the operator's own sizes, of dims that are open; indices that are outside
        return False
    moved = moved if isinstance(moved, list) else [moved]
    return all(_same(m, v, known) for m, v in zip(moved, op.results, strict=True))


def _same(moved: np.ndarray, result: Value, known: dict[tuple[object, ...], int]) -> bool:
    """Whether moved numbers are those of a result, which may have open dims."""
    dims = result.type.dims
    if len(dims) != moved.ndim or any(d not in (None, n) for d, n in zip(dims, moved.shape, strict=True)):
        return False
    if any(n not in (1, m) for n, m in zip(_scales(result.type), moved.shape, strict=True)):
        return False
    wanted = _numbers(result, moved.shape, known)
    return wanted is not None and bool((moved == wanted).all())


def _numbers(value: Value, dims: tuple[int, ...], known: dict[tuple[object, ...], int]) -> np.ndarray | None:
    """A number for the parameters of each element; a constant without parameters is itself; None for other tensors."""
    if not value.type.quantized:
        return value.array if value.is_constant else None
    scale, zero = parameters(value.type)
    pairs = np.broadcast_arrays(scale, zero)
    storage = value.type.storage
    rows = zip(pairs[0].ravel().tolist(), pairs[1].ravel().tolist(), strict=True)
    numbers = [known.setdefault((storage, *row), len(known)) for row in rows]
    return np.broadcast_to(np.reshape(numbers, pairs[0].shape), dims)


COPIED = "the kernel copies the stored integers, though source and result have different quantization parameters"

_WIDENED: Final[Mapping[type[Op], frozenset[ScalarType]]] = {
    Tile: frozenset({i16}),
    SpaceToDepth: frozenset({i16}),
    DepthToSpace: frozenset({i16}),
    BroadcastTo: frozenset({ui8}),
    ReverseSequence: frozenset({i8}),
    Fill: frozenset({ui8}),
}
"""Storage types that a kernel does not take, though the operator has them: moved as int32."""


@rule(
    Reshape,
    Squeeze,
    ExpandDims,
    Transpose,
    Split,
    SplitV,
    Pack,
    Unpack,
    MirrorPad,
    Slice,
    StridedSlice,
    Tile,
    BroadcastTo,
    ReverseV2,
    ReverseSequence,
    SpaceToDepth,
    DepthToSpace,
    BatchToSpaceND,
    Dilate,
)
def move(op: Op, b: RuleBuilder) -> Answer:
    """result = the same stored integers, moved."""
    differ = parameters_differ(op)
    storage = next(v.type.storage for v in op.tensors if v.type.quantized)
    if any(v.type.quantized and v.type.storage != storage for v in op.tensors):
        raise NotApplicable("operands and results have different storage types")
    if differ and (b.real or refused(op)):
        return _move_real(op, b)
    results = _moved(op, b, [_index(op, b, v) for v in op.operands], storage)
    return Rewritten(results, warning=COPIED if differ else "")


def _index(op: Op, b: RuleBuilder, value: Value | None) -> Value | None:
    """The plain operand; indices become int32 where no kernel is listed on their type. RESHAPE reads no other sizes."""
    if value is None:
        return None
    element = value.type.element
    unlisted = element in (i8, i16) and not isinstance(op, (Gather, Reshape))
    if unlisted or (element == i64 and isinstance(op, (Split, Transpose))):
        return b.cast(b.value(value), i32)
    return b.value(value)


def _moved(op: Op, b: RuleBuilder, operands: list[Value | None], storage: ScalarType) -> list[Value]:
    """The results of the kernel on plain operands, in `storage`, as int32 where it takes no such elements; indices in
    int16 come as int32, too."""
    kind = i32 if storage in _WIDENED.get(type(op), ()) else storage
    pairs = zip(op.operands, operands, strict=True)
    wide = [b.cast(new, kind) if old and new and old.type.quantized else new for old, new in pairs]
    elements = [kind if v.type.quantized else i32 if v.type.element == i16 else v.type.storage for v in op.results]
    types = [v.type.with_element(element) for v, element in zip(op.results, elements, strict=True)]
    results = zip(op.results, emit_unchanged(op, b, wide, types), strict=True)
    return [b.cast(new, old.type.storage) for old, new in results]


def emit_unchanged(
    op: Op, b: RuleBuilder, operands: Sequence[Value | None], types: Sequence[TensorType] | None = None
) -> list[Value]:
    """The results of the op itself on plain operands; of the results' plain types, if no others are given."""
    plain = [v.type.stripped() for v in op.results] if types is None else types
    return b.op(op.name, operands, plain, op.attributes, version_info(op)).results


def _move_real(op: Op, b: RuleBuilder) -> Answer:
    """Several sources take the result's parameters and are moved; the parts of one source take those of each result."""
    quantized = [v for v in op.present_operands if v.type.quantized]
    if not quantized or quantized[0].type.storage not in (i8, ui8, i16):
        raise NotApplicable(COPIED)
    try:
        sources, targets = per_layer(op, quantized), per_layer(op, [v for v in op.results if v.type.quantized])
    except NotApplicable:
        raise NotApplicable(COPIED) from None
    common = sources[0] if len(sources) == 1 else targets[0]
    operands: list[Value | None] = []
    for value in op.operands:
        plain = _index(op, b, value)
        if value is not None and plain is not None and value.type.quantized:
            plain = requantized(b, plain, sources.pop(0), common)
        operands.append(plain)
    return [
        requantized(b, new, common, targets.pop(0)) if old.type.quantized else new
        for old, new in zip(op.results, _moved(op, b, operands, common.storage), strict=True)
    ]


def under(b: RuleBuilder, operands: Sequence[Value], result: Value) -> list[Value] | None:
    """Operands of 8 or 16 bits under the result's parameters; None if one cannot be brought there."""
    values: list[Value] = []
    for operand in operands:
        value = requantized_if_plain(b, b.value(operand), operand.type.element, result.type.element)
        if value is None:
            return None
        values.append(value)
    return values


@rule(Densify)
def densify(op: Densify, b: RuleBuilder) -> Answer:
    """result = the dense array of a sparse constant, zeros as they are stored."""
    x = op.input
    if not x.is_constant or x.type.storage != op.result.type.storage:
        raise NotApplicable(f"'{x.name}' is not a constant of the result's type, which is what the kernel takes")
    return Rewritten([b.identity(b.value(x))], warning=COPIED if parameters_differ(op) else "")


# CONCATENATION: stored integers one after another.
#
# uint8 operands of other scales are requantized in float (internal/reference/concatenation.h,
# ConcatenationWithScaling), which is a 256-entry table per operand; so are int8 operands, which the kernel refuses.
# int16 is copied as it is, and so are tensors with several scales. Source: kernels/concatenation.cc.


@rule(Concatenation)
def concatenation(op: Concatenation, b: RuleBuilder) -> Answer:
    """result = the operands one after another, each requantized to the result's parameters (int16: as it is)."""
    operands, target = op.present_operands, op.result.type.element
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
    """CONCATENATION where all tensors are quantized per layer."""
    parts: list[Value] = []
    for value in operands:
        source, plain = value.type.element, b.value(value)
        assert isinstance(source, UniformQuantizedType)
        if source != target and target.storage.bits == 8:
            plain = _requantized(b, plain, source, target)
        parts.append(plain)
    raw = target.storage.bits != 8 and parameters_differ(op)
    if raw and b.real and (moved := under(b, operands, op.result)):
        return _concatenate(op, b, moved)
    return Rewritten([_concatenate(op, b, parts)], warning=COPIED if raw else "")


def _requantized(b: RuleBuilder, x: Value, source: UniformQuantizedType, target: UniformQuantizedType) -> Value:
    """An operand under the result's parameters: uint8 as the kernel does it; int8, which it refuses, rounded."""
    parameters = source.storage.dtype, source.scale, source.zero_point, target.scale, target.zero_point
    table, wanted = requantize_table(*parameters), rescaled_table(*parameters)
    off = 0 if not target.scale else int(np.abs(table.astype(np.int64) - wanted).max())
    if off > 1 and (b.real or target.storage is not ui8):
        table = wanted
    elif off > 1:
        b.note_undefined("a value of the result leaves int32", off)
    return b.table(x, table)


def _concatenate(op: Op, b: RuleBuilder, parts: list[Value]) -> Value:
    return b.op(Concatenation, parts, [op.result.type.stripped()], without_activation(op)).result


# PAD, PADV2 and SPACE_TO_BATCH_ND: stored integers moved, and others put around them.
#
# PAD writes the zero point of the result, PADV2 a stored value. Both copy the operand as it is. PADV2 refuses a value,
# SPACE_TO_BATCH_ND an operand, that does not have the result's parameters: these are requantized.
# Source: kernels/pad.cc (EvalInt), space_to_batch_nd.cc.


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
    fill = b.constant(seen_by_kernel(result)[1], storage) if value is None else _fill(b, value, result)
    if fill is None:
        raise NotApplicable(_OTHER)
    padded = b.emit(PadV2, [plain, _index(op, b, op.paddings), fill], result.type.stripped())
    return Rewritten([padded], warning=COPIED if takes and not same and not b.real else "")


def _around_is_zero(op: Pad | PadV2) -> bool:
    """Whether the stored value around the operand means the same under each of the result's scales."""
    element = op.result.type.element
    if isinstance(element, UniformQuantizedType):
        return True
    return isinstance(op, Pad) and not np.any(getattr(element, "zero_points", 1))


def _inside_follows(op: Pad | PadV2) -> bool:
    """Whether each element has the parameters of the place in the result that it is moved to."""
    x, result = op.input, op.output
    if x.type.element == result.type.element and isinstance(x.type.element, UniformQuantizedType):
        return True
    paddings = op.paddings
    if not (paddings.is_constant and x.type.is_static):
        return False
    begin, shape = paddings.array.reshape(-1, 2)[:, 0], x.type.dims
    cut: list[Value | None] = [Value(result.type), constant(begin), constant(np.asarray(shape, np.int32))]
    return follow(Op(Slice.op_name, cut, [Value(x.type)], {}))


def _fill(b: RuleBuilder, value: Value, result: Value) -> Value | None:
    """The value that PADV2 writes, under the result's parameters; None if it cannot be brought there. A constant may be
    of any type."""
    source, target = value.type.element, result.type.element
    if not value.type.quantized or seen_by_kernel(value) == seen_by_kernel(result):
        return b.value(value)
    if not value.is_constant or not isinstance(source, UniformQuantizedType):
        return requantized_if_plain(b, b.value(value), source, target)
    if not isinstance(target, UniformQuantizedType):
        return None
    parameters = (source.scale, source.zero_point, target.scale, target.zero_point)
    stored = rescaled_value(int(value.array.reshape(())), *parameters)
    return b.constant(np.clip(stored, target.storage_min, target.storage_max), target.storage)


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
    known, the distances from the value are moved."""
    x, block, paddings, type = op.input, op.block, op.paddings, op.output.type.stripped()
    storage = type.storage
    if zero and (not paddings.is_constant or x.type.shape is None):
        wide = b.sub(b.cast(plain, i32), zero)
        operands = [wide, b.value(block), b.value(paddings)]
        moved = b.emit(SpaceToBatchND, operands, type.with_element(i32))
        return b.cast(b.add(moved, zero), storage)
    if not zero or x.type.shape is None:
        return b.emit(SpaceToBatchND, [plain, b.value(block), b.value(paddings)], type)
    amounts = paddings.array.reshape(-1, 2)
    if amounts.any():
        around = np.zeros((len(x.type.shape), 2), np.int32)
        around[1 : 1 + len(amounts)] = amounts
        shape = tuple(None if d is None else d + int(p.sum()) for d, p in zip(x.type.shape, around, strict=True))
        fill = b.constant(zero, storage)
        plain = b.emit(PadV2, [plain, b.constant(around), fill], TensorType(shape, storage))
    none = b.constant(np.zeros_like(amounts))
    return b.emit(SpaceToBatchND, [plain, b.value(block), none], type)
