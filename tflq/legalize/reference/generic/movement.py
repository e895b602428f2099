"""Data movement: operators that copy stored integers without arithmetic keep their kernel, on plain integers.

The kernels copy raw, whatever the parameters of source and result say (kernels/reshape.cc, transpose.cc, split.cc,
pack.cc, gather.cc, slice.cc, strided_slice.cc, tile.cc, reverse.cc ...). Where the result has other parameters than
its source, that reproduces the interpreter and is a warning on the report; where parameters must hold, and where
the kernel refuses other parameters, what is moved is requantized. Indices become int32 where only
kernels on quantized tensors take their type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tflq.dialects.tfl.indexing import (
    GatherND,
)
from tflq.dialects.tfl.movement import (
    BatchToSpaceND,
    BroadcastTo,
    Densify,
    DepthToSpace,
    Dilate,
    ExpandDims,
    MirrorPad,
    Pack,
    Reshape,
    ReverseSequence,
    ReverseV2,
    Slice,
    SpaceToDepth,
    Split,
    SplitV,
    Squeeze,
    StridedSlice,
    Tile,
    Transpose,
    Unpack,
)
from tflq.dialects.tfl.runtime import version_info
from tflq.dialects.tfl.shape import Fill
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, i8, i16, i32, ui8
from tflq.legalize.reference.generic.moved_parameters import parameters_differ, refused
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import per_layer, requantized, requantized_if_plain

__all__ = ["COPIED", "under"]

COPIED = "the kernel copies the stored integers, though source and result have different quantization parameters"

_WIDENED: Final[Mapping[type[Op], frozenset[ScalarType]]] = {
    Tile: frozenset({i16}),
    SpaceToDepth: frozenset({i16}),
    DepthToSpace: frozenset({i16}),
    BroadcastTo: frozenset({ui8}),
    ReverseSequence: frozenset({i8}),
    Fill: frozenset({ui8}),
}
"""Storage types a kernel does not take, though the operator has them: moved as int32."""


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
    operands = [_index(op, b, v) for v in op.operands]
    widened = storage in _WIDENED.get(type(op), ())
    if widened:
        operands = [
            b.cast(p, i32) if v and p and v.type.quantized else p for v, p in zip(op.operands, operands, strict=True)
        ]
    results = [
        b.cast(new, old.type.storage) if old.type.quantized else new
        for old, new in zip(op.results, _moved(op, b, operands, widened), strict=True)
    ]
    return Rewritten(results, warning=COPIED if differ else "")


def _index(op: Op, b: RuleBuilder, value: Value | None) -> Value | None:
    """What an operand has become; indices of GATHER_ND of 16 bits are int32."""
    if value is None:
        return None
    narrow = isinstance(op, GatherND) and value.type.element == i16
    return b.cast(b.value(value), i32) if narrow else b.value(value)


def _moved(op: Op, b: RuleBuilder, operands: list[Value | None], widened: bool = False) -> list[Value]:
    """The results of the kernel on plain operands."""
    types = [v.type.with_element(i32) if widened and v.type.quantized else v.type.stripped() for v in op.results]
    return b.op(op.name, operands, types, op.attributes, version_info(op)).results


def _move_real(op: Op, b: RuleBuilder) -> Answer:
    """Several sources take the result's parameters and are moved; what is moved of one takes those of each result."""
    quantized = [v for v in op.operands if v is not None and v.type.quantized]
    if quantized[0].type.storage.bits not in (8, 16):
        raise NotApplicable(COPIED)
    try:
        sources, targets = per_layer(op, quantized), per_layer(op, [v for v in op.results if v.type.quantized])
    except NotApplicable:
        raise NotApplicable(COPIED) from None
    common = sources[0] if len(sources) == 1 else targets[0]
    storage = common.storage
    widened = storage in _WIDENED.get(type(op), ())
    operands: list[Value | None] = []
    for value in op.operands:
        plain = _index(op, b, value)
        if value is not None and plain is not None and value.type.quantized:
            plain = requantized(b, plain, sources.pop(0), common)
            plain = b.cast(plain, i32) if widened else plain
        operands.append(plain)
    return [
        requantized(b, b.cast(new, storage), common, targets.pop(0)) if old.type.quantized else new
        for old, new in zip(op.results, _moved(op, b, operands, widened), strict=True)
    ]


def under(b: RuleBuilder, operands: Sequence[Value | None], result: Value) -> list[Value] | None:
    """Operands of 8 or 16 bits under the result's parameters."""
    made: list[Value] = []
    for value in operands:
        if value is None:
            return None
        moved = requantized_if_plain(b, b.value(value), value.type.element, result.type.element)
        if moved is None:
            return None
        made.append(moved)
    return made


@rule(Densify)
def densify(op: Densify, b: RuleBuilder) -> Answer:
    """result = the dense array of a sparse constant, zeros as they are stored."""
    x = op.input
    if not x.is_constant or x.type.storage != op.result.type.storage:
        raise NotApplicable(f"'{x.name}' is not a constant of the result's type, which is what the kernel takes")
    return Rewritten([b.identity(b.value(x))], warning=COPIED if parameters_differ(op) else "")
