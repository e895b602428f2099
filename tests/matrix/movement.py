"""Operators that move elements, with every option they have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from support.harness import argument, const

from matrix.draw import Case, Draw, generator, ints, single
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, UniformQuantizedType, i8, i16, i32, i64, ui8


def _start(draw: Draw, low: int, high: int, most: int = 6) -> tuple[UniformQuantizedType, tuple[int, ...], Value]:
    element = draw.quantized(draw.storage())
    shape = draw.dims(draw.whole(low, high), 1, most)
    return element, shape, argument(shape, element)


def _matrix(pairs: list[list[int]], draw: Draw) -> Value:
    wide = draw.chance(0.2)
    return const(np.asarray(pairs, np.int64 if wide else np.int32).reshape(-1, 2), i64 if wide else i32)


def _axis(draw: Draw, axis: int, rank: int) -> int:
    return draw.one(axis, axis - rank)


@generator("reshape")
def reshape(draw: Draw) -> Case:
    element, shape, x = _start(draw, 0, 5)
    count = math.prod(shape)
    out: list[int] = []
    while count > 1 and len(out) < 4 and draw.chance(0.8):
        factor = draw.one(*(d for d in range(1, count + 1) if count % d == 0))
        out.append(factor)
        count //= factor
    if count > 1 or draw.chance(0.3):
        out.append(count)
    stated = list(out)
    if stated and draw.chance(0.5):
        stated[draw.whole(0, len(stated) - 1)] = -1
    options = {"new_shape": np.asarray(stated, np.int32)}
    operands = [x, ints(*stated)] if draw.chance(0.7) else [x]
    return single(draw, "reshape", operands, [argument(out, element)], options)


@generator("squeeze_expand")
def squeeze_expand(draw: Draw) -> Case:
    element, shape, x = _start(draw, 1, 4, 3)
    if draw.chance(0.5):
        axis = draw.whole(0, len(shape))
        out = (*shape[:axis], 1, *shape[axis:])
        where = const(np.asarray(_axis(draw, axis, len(out))), draw.one(i32, i64))
        return single(draw, "expand_dims", [x, where], [argument(out, element)], {})
    ones = [i for i, d in enumerate(shape) if d == 1 and draw.chance(0.7)]
    if not ones:
        ones = [i for i, d in enumerate(shape) if d == 1]
    out = tuple(d for i, d in enumerate(shape) if i not in ones)
    stated = [] if [i for i, d in enumerate(shape) if d == 1] == ones and draw.chance(0.5) else ones
    options = {"squeeze_dims": np.asarray([_axis(draw, i, len(shape)) for i in stated], np.int32)}
    return single(draw, "squeeze", [x], [argument(out, element)], options)


@generator("transpose")
def transpose(draw: Draw) -> Case:
    element, shape, x = _start(draw, 1, 6, 5)
    perm = [int(p) for p in draw.rng.permutation(len(shape))]
    stated = [_axis(draw, p, len(shape)) for p in perm] if draw.chance(0.3) else perm
    return single(draw, "transpose", [x, ints(*stated)], [argument([shape[p] for p in perm], element)], {}, 2)


@generator("slice")
def slice_(draw: Draw) -> Case:
    element, shape, x = _start(draw, 1, 5)
    begin = [draw.whole(0, d - 1) for d in shape]
    size = [draw.whole(1, d - b) for d, b in zip(shape, begin, strict=True)]
    stated = [-1 if s == d - b and draw.chance(0.5) else s for s, d, b in zip(size, shape, begin, strict=True)]
    operands = [x, ints(*begin), ints(*stated)]
    if draw.chance(0.2):
        operands[1:] = [const(np.asarray(v, np.int64), i64) for v in (begin, stated)]
    return single(draw, "slice", operands, [argument(size, element)], {}, 2)


class _Slices:
    """The operands and masks of a STRIDED_SLICE, bit by bit, and the numpy index that they mean."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.index: list[Any] = []
        self.rows: list[tuple[int, int, int]] = []  # begin, end, stride
        self.masks = dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0)

    def _row(self, begin: int, end: int, stride: int, meaning: Any, *masks: str) -> None:
        for mask in masks:
            self.masks[mask] |= 1 << len(self.rows)
        self.rows.append((begin, end, stride))
        self.index.append(meaning)

    def ellipsis(self) -> None:
        self._row(self.draw.whole(-3, 3), self.draw.whole(-3, 3), 1, Ellipsis, "ellipsis")

    def new_axis(self) -> None:
        draw = self.draw
        self._row(draw.whole(-2, 2), draw.whole(-2, 2), draw.one(1, 2, -1), np.newaxis, "new_axis")

    def dim(self, size: int) -> None:
        """One index, or a range that may reach beyond the dim."""
        draw = self.draw
        if draw.chance(0.2):
            at = draw.whole(-size, size - 1)
            self._row(at, draw.one(at + 1, 0, draw.whole(-9, 9)), 1, at, "shrink_axis")
            return
        begin, end, stride = (
            draw.whole(-size - 2, size + 2),
            draw.whole(-size - 2, size + 2),
            draw.one(1, 1, 2, 3, -1, -2),
        )
        masks = [mask for mask in ("begin", "end") if draw.chance(0.4)]
        meaning = slice(None if "begin" in masks else begin, None if "end" in masks else end, stride)
        self._row(begin, end, stride, meaning, *masks)


@generator("strided_slice")
def strided_slice(draw: Draw) -> Case:
    element, shape, x = _start(draw, 1, 4, 7)
    slices = _Slices(draw)
    ellipsis = draw.whole(0, len(shape) - 1) if draw.chance(0.25) else -1
    # one that stands for no dim makes the kernel read past its operand
    skipped = draw.whole(1, len(shape) - ellipsis) if ellipsis >= 0 else 0
    stated = len(shape) if ellipsis >= 0 or draw.chance(0.6) else draw.whole(1, len(shape))
    spare = 5 - (len(shape) - skipped + 1)
    for axis in range(stated):
        if axis == ellipsis:
            slices.ellipsis()
        if 0 <= ellipsis <= axis < ellipsis + skipped:
            continue
        if spare > 0 and draw.chance(0.12):
            slices.new_axis()
            spare -= 1
        slices.dim(shape[axis])
    out = np.empty(shape)[tuple(slices.index)].shape
    options = {f"{name}_mask": mask for name, mask in slices.masks.items()}
    operands = [x, *(ints(*column) for column in zip(*slices.rows, strict=True))]
    return single(draw, "strided_slice", operands, [argument(out, element)], options, 3)


@generator("pad")
def pad(draw: Draw) -> Case:
    element, shape, x = _start(draw, 1, 5)
    pairs = [[draw.one(0, draw.whole(0, 3)), draw.one(0, draw.whole(0, 3))] for _ in shape]
    name = draw.one("pad", "padv2", "mirror_pad")
    options: dict[str, Any] = {}
    if name == "mirror_pad":
        mode = draw.one("REFLECT", "SYMMETRIC")
        pairs = [[min(v, d - (mode == "REFLECT")) for v in p] for p, d in zip(pairs, shape, strict=True)]
        options = {"mode": mode}
    operands = [x, _matrix(pairs, draw)]
    if name == "padv2":
        operands.append(const(draw.integers(element.storage, draw.one((), (1,))), element))
    out = [d + sum(p) for d, p in zip(shape, pairs, strict=True)]
    return single(draw, name, operands, [argument(out, element)], options, 2)


@generator("concatenation")
def concatenation(draw: Draw) -> Case:
    storage = draw.storage()
    y = draw.quantized(storage)
    shape = draw.dims(draw.whole(1, 5), 1, 5)
    axis = draw.whole(0, len(shape) - 1)
    parts: list[Value] = []
    total = 0
    for _ in range(draw.whole(1, 5)):
        size = draw.whole(1, 5)
        total += size
        element = draw.quantized(storage, draw.near(y.scale)) if storage == ui8 and draw.chance(0.4) else y
        dims = (*shape[:axis], size, *shape[axis + 1 :])
        constant = parts and draw.chance(0.2)
        parts.append(const(draw.integers(storage, dims), element) if constant else argument(dims, element))
    result = argument((*shape[:axis], total, *shape[axis + 1 :]), y)
    options = {"axis": _axis(draw, axis, len(shape)), "fused_activation_function": "NONE"}
    batched = axis > 0 and not any(part.is_constant for part in parts)
    return single(draw, "concatenation", parts, [result], options, 2, batched=batched)


@generator("split")
def split(draw: Draw) -> Case:
    element, shape, _ = _start(draw, 1, 4)
    axis, count = draw.whole(0, len(shape) - 1), draw.whole(1, 4)
    sizes = [shape[axis]] * count if draw.chance(0.5) else [draw.whole(1, 4) for _ in range(count)]
    x = argument((*shape[:axis], sum(sizes), *shape[axis + 1 :]), element)
    results = [argument((*shape[:axis], size, *shape[axis + 1 :]), element) for size in sizes]
    where = const(np.asarray(_axis(draw, axis, len(shape)), np.int32), i32)
    if len(set(sizes)) == 1 and draw.chance(0.6):
        return single(draw, "split", [where, x], results, {"num_splits": count}, 2, batched=axis > 0)
    stated = list(sizes)
    if draw.chance(0.4):
        stated[draw.whole(0, count - 1)] = -1
    return single(draw, "split_v", [x, ints(*stated), where], results, {"num_splits": count}, 2, batched=axis > 0)


@generator("pack_unpack")
def pack_unpack(draw: Draw) -> Case:
    element, shape, _ = _start(draw, 0, 4, 4)
    axis, count = draw.whole(0, len(shape)), draw.whole(1, 5)
    whole = (*shape[:axis], count, *shape[axis:])
    stated = _axis(draw, axis, len(whole))
    if draw.chance(0.5):
        parts = [argument(shape, element) for _ in range(count)]
        return single(
            draw,
            "pack",
            parts,
            [argument(whole, element)],
            {"values_count": count, "axis": stated},
            2,
            batched=axis > 0,
        )
    results = [argument(shape, element) for _ in range(count)]
    return single(
        draw, "unpack", [argument(whole, element)], results, {"num": count, "axis": stated}, 2, batched=axis > 0
    )


@generator("gather")
def gather(draw: Draw) -> Case:
    element, shape, x = _start(draw, 1, 4, 5)
    if draw.chance(0.3):
        depth = draw.whole(1, len(shape))
        where = draw.dims(draw.whole(0, 2), 1, 4)
        places = np.stack([draw.rng.integers(0, d, where) for d in shape[:depth]], axis=-1)
        return single(draw, "gather_nd", [x, const(places, i32)], [argument((*where, *shape[depth:]), element)], {}, 2)
    axis = draw.whole(0, len(shape) - 1)
    batch = draw.whole(0, axis) if draw.chance(0.3) else 0
    where = draw.dims(draw.whole(0, 3), 1, 4)
    index = draw.rng.integers(0, shape[axis], (*shape[:batch], *where))
    wide = draw.chance(0.3)
    result = argument((*shape[:axis], *where, *shape[axis + 1 :]), element)
    options = {"axis": _axis(draw, axis, len(shape)), "batch_dims": batch}
    return single(draw, "gather", [x, const(index, i64 if wide else i32)], [result], options, 2)


@generator("tile")
def tile(draw: Draw) -> Case:
    element, shape, x = _start(draw, 1, 4, 4)
    if draw.chance(0.5):
        wanted = [draw.whole(2, 4) if d == 1 and draw.chance(0.7) else d for d in shape]
        wanted = [*draw.dims(draw.whole(0, 1), 1, 3), *wanted]
        return single(
            draw, "broadcast_to", [x, const(np.asarray(wanted), draw.one(i32, i64))], [argument(wanted, element)], {}, 2
        )
    times = draw.dims(len(shape), 1, 3)
    out = [d * t for d, t in zip(shape, times, strict=True)]
    return single(draw, "tile", [x, const(np.asarray(times), draw.one(i32, i64))], [argument(out, element)], {}, 2)


@generator("reverse")
def reverse(draw: Draw) -> Case:
    element, shape, x = _start(draw, 1, 4)
    result = argument(shape, element)
    if len(shape) > 1 and element.storage != i8 and draw.chance(0.4):
        seq, batch = (int(a) for a in draw.rng.permutation(len(shape))[:2])
        lengths = const(draw.rng.integers(1, shape[seq] + 1, shape[batch]), draw.one(i32, i64))
        return single(draw, "reverse_sequence", [x, lengths], [result], {"seq_dim": seq, "batch_dim": batch})
    axis = draw.whole(0, len(shape) - 1)
    return single(draw, "reverse_v2", [x, ints(_axis(draw, axis, len(shape)))], [result], {}, 3)


@generator("space_depth")
def space_depth(draw: Draw) -> Case:
    element = draw.quantized(draw.storage())
    block, (n, h, w, c) = draw.whole(1, 3), draw.dims(4, 1, 4)
    small, large = (n, h, w, c * block * block), (n, h * block, w * block, c)
    if draw.chance(0.5):
        return single(
            draw, "depth_to_space", [argument(small, element)], [argument(large, element)], {"block_size": block}
        )
    return single(draw, "space_to_depth", [argument(large, element)], [argument(small, element)], {"block_size": block})


@generator("space_batch")
def space_batch(draw: Draw) -> Case:
    element = draw.quantized(draw.storage())
    spatial = draw.one(1, 2, 2)
    blocks, size = draw.dims(spatial, 1, 3), draw.dims(spatial, 1, 4)
    n, c = draw.one(1, 2), draw.whole(1, 4)
    pairs = []
    for b, s in zip(blocks, size, strict=True):
        before = draw.whole(0, min(2, b * s - 1))
        pairs.append([before, draw.whole(0, min(2, b * s - 1 - before))])
    inside = [b * s - sum(p) for b, s, p in zip(blocks, size, pairs, strict=True)]
    batched, flat = (n * math.prod(blocks), *size, c), (n, *inside, c)
    constants = [ints(*blocks), const(np.asarray(pairs, np.int32), i32)]
    if draw.chance(0.5):
        return single(
            draw, "space_to_batch_nd", [argument(flat, element), *constants], [argument(batched, element)], {}, 2
        )
    return single(draw, "batch_to_space_nd", [argument(batched, element), *constants], [argument(flat, element)], {}, 2)


@generator("update_slice")
def update_slice(draw: Draw) -> Case:
    element, shape, x = _start(draw, 1, 4)
    inner = tuple(draw.whole(1, d) for d in shape)
    at = const(np.asarray([draw.whole(-1, d) for d in shape]), draw.one(i32, i64))
    update = const(draw.integers(element.storage, inner), element) if draw.chance(0.3) else argument(inner, element)
    return single(draw, "dynamic_update_slice", [x, update, at], [argument(shape, element)], {})


@generator("shape_of")
def shape_of(draw: Draw) -> Case:
    _, shape, x = _start(draw, 0, 4)
    if draw.chance(0.5):
        return single(draw, "rank", [x], [argument((), i32)], {})
    wide = draw.chance(0.3)
    result = argument((len(shape),), i64 if wide else i32)
    return single(draw, "shape", [x], [result], {"out_type": "INT64" if wide else "INT32"})


@generator("top_k")
def top_k(draw: Draw) -> Case:
    element = draw.quantized(draw.storage(i8, ui8, i16))
    shape = draw.dims(draw.whole(1, 4), 1, 9)
    k = draw.whole(1, shape[-1])
    out = (*shape[:-1], k)
    operands = [argument(shape, element), const(np.asarray(k), i32)]
    return single(draw, "topk_v2", operands, [argument(out, element), argument(out, i32)], {}, 2)


@generator("select")
def select(draw: Draw) -> Case:
    from tflq.ir.types import i1

    element: ElementType = draw.quantized(draw.storage(i8, ui8, i16))
    shape = draw.dims(draw.whole(0, 4), 1, 4)
    mask = draw.rng.integers(0, 2, shape).astype(bool)
    operands = [const(mask, i1), argument(shape, element), argument(shape, element)]
    return single(draw, draw.one("select", "select_v2"), operands, [argument(shape, element)], {})
