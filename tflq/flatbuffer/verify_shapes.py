"""Shapes and data: dims, element counts, bytes of constants, string and sparse tensors, data outside the flatbuffer.

Source: `VerifyTensors` in tflite/core/tools/verifier.cc; strings: tflite/string_util.h (count, then count + 1 offsets,
then the characters); sparse tensors: `SparsityParameters` in schema.fbs. Nothing is allocated by a file's word.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tflq.ir.types import SCALARS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tflq.ir.core import Module, Value
    from tflq.ir.notes import Notes

__all__ = ["verify_external", "verify_tensor"]

MOST_DIMS: Final = 32
MOST_ELEMENTS: Final = (1 << 31) - 1
"""What an interpreter counts elements with is an int32."""

_STRING: Final = SCALARS["!tfl.string"]


def verify_tensor(value: Value, where: str, notes: Notes) -> None:
    """The shape of a tensor, and its data if it has any."""
    shape = value.type.shape
    if shape is not None:
        elements = 1
        for dim in shape:
            if dim is None:
                continue
            if dim < 0:
                notes.fail(
                    where, f"shape {_brief(shape)} has a negative dim", hint="unknown dims belong in shape_signature"
                )
            if dim > 1:
                elements *= dim
                if elements > MOST_ELEMENTS:
                    notes.fail(where, f"shape {_brief(shape)} has more elements than an interpreter can count")
        if len(shape) > MOST_DIMS:
            notes.fail(where, f"{len(shape)} dims; the most that can be handled is {MOST_DIMS}")
    if value.info:
        _verify_signature(value, where, notes)
    if value.buffer is not None and value.buffer.data.size:
        _verify_data(value, where, notes)


def _brief(shape: Sequence[int | None]) -> str:
    listed = ", ".join("?" if d is None else str(d) for d in shape[:8])
    return f"[{listed}{', ...' if len(shape) > 8 else ''}]"


def _verify_signature(value: Value, where: str, notes: Notes) -> None:
    """A shape signature that contradicts the shape; the reader keeps such a one in `info`."""
    signature = value.info.get("shape_signature")
    if signature is None or not len(signature) or value.type.shape is None:
        return
    shape = value.type.shape
    if len(signature) != len(shape):
        notes.fail(where, f"shape_signature has {len(signature)} dims and the shape {len(shape)}")
    for sign, dim in zip(signature, shape, strict=True):
        if sign < -1:
            notes.fail(where, f"shape_signature has the dim {sign}")
        if sign not in (-1, dim) and dim is not None:
            what = f"shape_signature {_brief(tuple(signature))} contradicts shape {_brief(shape)}, which is used"
            notes.warn(where, what, remedy="write the same sizes in both")


def _verify_data(value: Value, where: str, notes: Notes) -> None:
    kind, shape = value.type.storage, value.type.shape
    assert value.buffer is not None
    data = value.buffer.data
    if value.info.get("is_variable"):
        notes.fail(where, "is a variable and has constant data")
    if kind == _STRING:
        _verify_strings(data, None if shape is None or None in shape else prod(d or 0 for d in shape), where, notes)
        return
    if shape is None or None in shape:
        notes.fail(where, f"has {data.size} bytes of data, but a dim of its shape is unknown")
    sparsity = value.info.get("sparsity")
    elements = prod(d or 0 for d in shape) if sparsity is None else _sparse_elements(sparsity, shape, where, notes)
    if not kind.bits:
        notes.fail(where, f"a tensor of type {kind} cannot have data")
    expected = -(-elements * kind.bits // 8)
    if data.size != expected:
        described = f"{elements} elements of type {kind}" + (
            ", sparse," if sparsity is not None else f", shape {_brief(shape)},"
        )
        notes.fail(where, f"{described} take {expected} bytes, but its buffer has {data.size}")


def _verify_strings(data: np.ndarray, count: int | None, where: str, notes: Notes) -> None:
    stated = int(data[:4].view("<u4")[0]) if data.size >= 4 else -1
    start = 4 * (stated + 2)
    if stated < 0 or start > data.size:
        notes.fail(where, f"string data of {data.size} bytes are too short for their table of offsets")
    offsets = data[4:start].view("<i4").astype(np.int64)
    if offsets[0] != start or offsets[-1] != data.size or (np.diff(offsets) < 0).any():
        notes.fail(where, "string data have offsets out of order")
    if count is not None and stated != count:
        notes.fail(where, f"string data hold {stated} strings, but the shape has {count} elements")


def _sparse_elements(sparsity: Mapping[str, Any], shape: Sequence[int | None], where: str, notes: Notes) -> int:
    """How many elements a sparse tensor stores: level by level, dense ones multiply, compressed ones count indices."""
    order, levels = sparsity["traversal_order"], sparsity["dim_metadata"]
    blocks = () if sparsity["block_map"] is None else sparsity["block_map"]
    rank = len(shape)
    if order is None or levels is None or len(order) != len(levels) or len(order) != rank + len(blocks):
        notes.fail(where, "sparsity does not describe every dim and block")
    if sorted(order[:rank]) != list(range(rank)) or sorted(order[rank:]) != list(range(rank, len(order))):
        notes.fail(where, f"sparsity's traversal_order {_brief(tuple(order))} is not a permutation of dims and blocks")
    sizes = [int(d or 0) for d in shape] + [0] * len(blocks)
    for block, (dim, level) in enumerate(zip(order[rank:], levels[rank:], strict=True)):
        size, mapped = level["dense_size"], blocks[block]
        if size <= 0 or not 0 <= mapped < rank:
            notes.fail(where, f"sparsity's block {block} has size {size} and dim {mapped}")
        sizes[dim] = size
        sizes[mapped] //= size
    stored = 1
    for dim, level in zip(order, levels, strict=True):
        if level["format"] == "DENSE":
            if level["dense_size"] != sizes[dim]:
                notes.fail(where, f"sparsity's dense_size {level['dense_size']} is not the dim's {sizes[dim]}")
            stored *= sizes[dim]
        else:
            stored = _compressed(level, stored, sizes[dim], where, notes)
        if stored > MOST_ELEMENTS:
            notes.fail(where, "sparsity describes more elements than an interpreter can count")
    return stored


def _compressed(level: Mapping[str, Any], before: int, size: int, where: str, notes: Notes) -> int:
    segments, indices = (_index_vector(level[key]) for key in ("array_segments", "array_indices"))
    if segments is None or indices is None:
        notes.fail(where, "sparsity has a compressed dim without segments or indices")
    if len(segments) != before + 1 or segments[0] < 0 or (np.diff(segments) < 0).any() or segments[-1] != len(indices):
        notes.fail(where, "sparsity's segments do not count its indices")
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        notes.fail(where, f"sparsity has an index outside a dim of {size}")
    return len(indices)


def _index_vector(union: tuple[str, Mapping[str, Any]] | None) -> np.ndarray | None:
    values = None if union is None else union[1]["values"]
    return None if values is None else np.asarray(values, np.int64)


def verify_external(module: Module, notes: Notes) -> None:
    """Data that the flatbuffer does not hold: ranges after it do not overlap, references to other files resolve."""
    ranges = sorted(
        (int(b.external["offset"]), int(b.external["size"]), i)
        for i, b in enumerate(module.buffers)
        if b.external and b.external.get("offset", 0) > 1 and b.external.get("size")
    )
    for (start, size, one), (following, length, other) in pairwise(ranges):
        if following < start + size and (start, size) != (following, length):
            notes.fail(f"Model.buffers[{other}]", f"its data overlap those of buffer {one}")
    groups = len(module.info.get("external_buffer_groups") or ())
    entries = module.info.get("external_buffers") or ()
    for index, entry in enumerate(entries):
        if entry["group"] >= groups:
            notes.fail(f"Model.external_buffers[{index}].group", f"there is no group {entry['group']} among {groups}")
    known = {entry["id"] for entry in entries}
    for index, function in enumerate(module.functions):
        for number, value in enumerate(function.tensors):
            external = value.info.get("external_buffer", 0)
            if external and external not in known:
                notes.fail(
                    f"subgraph {index}, tensor {number} '{value.name}'", f"there is no external buffer {external}"
                )
            if external and value.buffer is not None and value.buffer.data.size:
                notes.fail(
                    f"subgraph {index}, tensor {number} '{value.name}'", "has data both inside and outside the file"
                )
