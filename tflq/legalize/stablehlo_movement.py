"""STABLEHLO_PAD, GATHER, BROADCAST_IN_DIM, DYNAMIC_SLICE and DYNAMIC_UPDATE_SLICE: stored integers moved.

PAD and GATHER have kernels, which copy the integers as they are. Where parameters must hold, and where there is no
kernel, what is moved takes the result's parameters first. PAD writes `interior` values between elements (DILATE), then
values around them; edges less than 0 cut off. GATHER copies a slice of constant size from each start index, which is
clamped: with known indices every element of the result is picked by its place in the operand. Sources:
kernels/stablehlo_pad.cc, stablehlo_gather.cc; the StableHLO specification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tflq.dialects.tfl.indexing import DynamicUpdateSlice, Gather
from tflq.dialects.tfl.movement import Dilate, PadV2, Slice
from tflq.dialects.tfl.stablehlo import (
    StablehloBroadcastInDim,
    StablehloDynamicSlice,
    StablehloDynamicUpdateSlice,
    StablehloGather,
    StablehloPad,
)
from tflq.dialects.tosa.movement import Tile
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, i32
from tflq.legalize.movement import COPIED, seen_by_kernel, under
from tflq.legalize.probing import kernel_name
from tflq.legalize.rule import AS_STATED, Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.stablehlo import option


def _sources(op: Op, b: RuleBuilder, values: list[Value], kernel: bool) -> tuple[list[Value], str] | None:
    """What is moved, and a warning where the kernel disregards parameters; None if they cannot be honoured."""
    result = op.result
    if any(v.type.storage != result.type.storage for v in values):
        return None
    if all(v.type.element == result.type.element and seen_by_kernel(v) != (0.0, 0) for v in values):
        return [b.value(v) for v in values], ""
    if kernel and not b.real:
        return [b.value(v) for v in values], COPIED
    ready = under(b, values, result)
    return None if ready is None else (ready, "")


def _not_copied(reason: str, warning: str) -> NotApplicable:
    """Why the rule does not apply, and a warning where the kernel copies integers under other parameters."""
    return NotApplicable(reason, f"{warning}; {AS_STATED}" if warning else "")


def _refused(op: Op) -> Refused:
    return Refused(
        f"{kernel_name(op)} has a form on builtins only where parameters are per layer and dims are known",
        "lower it to TFLite's builtins, or dequantize its operands, before converting",
    )


@rule(StablehloPad)
def pad(op: StablehloPad, b: RuleBuilder) -> Answer:
    """result = the operand with stored values between and around its elements."""
    x = op.input
    sources = _sources(op, b, [x, op.value], kernel=True)
    if sources is None:
        raise NotApplicable(COPIED)
    (plain, fill), warning = sources
    if not x.type.is_static:
        raise _not_copied(f"the shape of '{x.name}' is not known", warning)
    low, high, inner = (option(v) for v in (op.edge_padding_low, op.edge_padding_high, op.interior_padding))
    return Rewritten([padded(b, plain, fill, low, high, inner)], warning=warning)


def padded(b: RuleBuilder, plain: Value, fill: Value, low: list[int], high: list[int], inner: list[int]) -> Value:
    """A tensor of known shape with `inner` fills between its elements, and fills around; less than 0 cuts off."""
    fill, shape, storage = b.reshape(fill, []), [d or 0 for d in plain.type.shape or ()], plain.type.storage
    if any(inner):
        shape = [d + max(d - 1, 0) * i for d, i in zip(shape, inner, strict=True)]
        if 0 in shape:  # DILATE reads beyond what is empty
            plain = b.reshape(plain, shape)
        else:
            factors = b.constant(np.asarray(inner) + 1)
            plain = b.emit(Dilate, [plain, factors, fill], TensorType(tuple(shape), storage))
    around = np.maximum(np.stack([low, high], axis=-1).reshape(-1, 2), 0)
    if around.any():
        shape = [d + int(p.sum()) for d, p in zip(shape, around, strict=True)]
        plain = b.emit(PadV2, [plain, b.constant(around), fill], TensorType(tuple(shape), storage))
    start = [max(-v, 0) for v in low]
    if min([*low, *high], default=0) < 0:
        size = [d - s - max(-h, 0) for d, s, h in zip(shape, start, high, strict=True)]
        plain = b.slice(plain, tuple(start), tuple(size))
    return plain


@rule(StablehloGather)
def gather(op: StablehloGather, b: RuleBuilder) -> Answer:
    """result = slices from known start indices."""
    x, indices, result = op.input, op.indices, op.result
    sources = _sources(op, b, [x], kernel=True)
    if sources is None:
        raise NotApplicable(COPIED)
    (plain,), warning = sources
    if not x.type.is_static or not indices.is_constant:
        raise _not_copied(f"the shape of '{x.name}' or the indices '{indices.name}' are not known", warning)
    shape = [d or 0 for d in x.type.shape or ()]
    places = _places(op, indices.array, shape)
    flat = b.reshape(plain, [math.prod(shape)])
    type = TensorType(places.shape, result.type.storage)
    return Rewritten([b.emit(Gather, [flat, b.constant(places)], type, axis=0, batch_dims=0)], warning=warning)


def _places(op: StablehloGather, indices: np.ndarray, shape: list[int]) -> np.ndarray:
    """For each element of the result, its place in the flat operand."""
    sizes, mapped = option(op.slice_sizes), option(op.start_index_map)
    collapsed, offsets = option(op.collapsed_slice_dims), option(op.offset_dims)
    at = op.index_vector_dim
    starts = indices[..., None] if at == indices.ndim else np.moveaxis(indices, at, -1)
    start = np.zeros((*starts.shape[:-1], len(shape)), np.int64)
    start[..., mapped] = starts
    start = np.clip(start, 0, np.asarray(shape) - sizes)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    inside = (np.moveaxis(np.indices(sizes), 0, -1) * strides).sum(-1)
    inside = inside.squeeze(tuple(collapsed))
    batch = starts.ndim - 1
    places = (start * strides).sum(-1).reshape(*starts.shape[:-1], *(1,) * inside.ndim) + inside
    return np.moveaxis(places, range(batch, places.ndim), offsets)


@rule(StablehloBroadcastInDim)
def broadcast_in_dim(op: StablehloBroadcastInDim, b: RuleBuilder) -> Answer:
    """result = the operand with its dims in the places stated, repeated."""
    x, result = op.input, op.result
    sources = _sources(op, b, [x], kernel=False)
    if sources is None or not x.type.is_static or not result.type.is_static:
        raise _refused(op)
    shape = [d or 0 for d in result.type.shape or ()]
    places = dict(zip(option(op.broadcast_dimensions), x.type.shape or (), strict=True))
    ranked = b.reshape(sources[0][0], [places.get(i, 1) for i in range(len(shape))])
    times = tuple(d // (places.get(i) or 1) for i, d in enumerate(shape))
    type = TensorType(tuple(shape), result.type.storage)
    return Rewritten([b.emit(Tile, [ranked], type, multiples=times)])


@rule(StablehloDynamicSlice)
def dynamic_slice(op: StablehloDynamicSlice, b: RuleBuilder) -> Answer:
    """result = a slice of constant size from start indices, which are clamped."""
    x, sizes = op.input, option(op.slice_sizes)
    sources = _sources(op, b, [x], kernel=False)
    if sources is None or not x.type.is_static:
        raise _refused(op)
    most = np.asarray(x.type.shape) - sizes
    start = _starts(b, op.starts)
    start = b.minimum(b.maximum(start, b.constant(np.zeros_like(most))), b.constant(most))
    type = TensorType(tuple(sizes), op.result.type.storage)
    return Rewritten([b.emit(Slice, [sources[0][0], start, b.constant(np.asarray(sizes))], type)])


@rule(StablehloDynamicUpdateSlice)
def dynamic_update_slice(op: StablehloDynamicUpdateSlice, b: RuleBuilder) -> Answer:
    """result = the operand with a block replaced."""
    sources = _sources(op, b, [op.input, op.update], kernel=False)
    if sources is None:
        raise _refused(op)
    operands = [*sources[0], _starts(b, op.starts)]
    return Rewritten([b.emit(DynamicUpdateSlice, operands, op.result.type.stripped())])


def _starts(b: RuleBuilder, starts: Sequence[Value | None]) -> Value:
    """The start indices, each an operand, as one vector of int32."""
    scalars = [v for v in starts if v is not None]
    if all(v.is_constant for v in scalars):
        return b.constant(np.asarray([int(v.array.reshape(())) for v in scalars]))
    parts = [b.reshape(b.cast(b.value(v), i32), [1]) for v in scalars]
    return b.concat(parts, 0)
