"""Sums and extremes of segments of rows, which no kernel takes on quantized tensors: exactly the real results."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from support.harness import argument, const, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator, ints
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedType, i32

Reduce = Callable[[np.ndarray, np.ndarray], np.ndarray]


def stored_real(counts: np.ndarray, output: UniformQuantizedType) -> np.ndarray:
    """Multiples of the scale, rounded half away from zero, as they are stored."""
    storage = output.storage
    rounded = np.sign(counts) * np.floor(np.abs(counts) + 0.5)
    return np.clip(rounded + output.zero_point, storage.minimum, storage.maximum).astype(storage.dtype)


@generator("segment_sum")
def segment_sum(draw: Draw) -> Case:
    x, shape = draw.quantized(draw.storage()), draw.dims(draw.whole(1, 4), 1, 6)
    steps = draw.rng.integers(0, 2, shape[0])
    steps[0] = 0
    ids = np.cumsum(steps)
    count = None if draw.chance(0.2) else int(ids[-1]) + 1
    return _case(draw, "segment_sum", x, shape, ids, count, int(ids[-1]) + 1)


@generator("unsorted_segment")
def unsorted_segment(draw: Draw) -> Case:
    name = draw.one("unsorted_segment_sum", "unsorted_segment_max", "unsorted_segment_min")
    x, shape = draw.quantized(draw.storage()), draw.dims(draw.whole(1, 4), 1, 6)
    depth, count = draw.whole(1, min(2, len(shape))), draw.whole(1, 6)
    ids = draw.rng.integers(-1 if draw.chance(0.4) else 0, count, shape[:depth])
    if draw.chance(0.1):
        ids[:] = -1
    return _case(draw, name, x, shape, ids, count, count)


def _case(
    draw: Draw,
    name: str,
    x: UniformQuantizedType,
    shape: tuple[int, ...],
    ids: np.ndarray,
    stated: int | None,
    count: int,
) -> Case:
    """`stated` segments in the file, None if that follows from segments that are an input."""
    y = draw.one(x, draw.quantized(x.storage, draw.near(x.scale * 2)))
    known = stated is not None and draw.chance(0.7)
    segments = const(ids, i32, "in1") if known else argument(ids.shape, i32, "in1")
    operands: list[Value] = [argument(shape, x, "in0"), segments]
    if name != "segment_sum":
        operands.append(const(np.asarray(count), i32) if draw.chance(0.5) else ints(count))
    result = argument((stated, *shape[ids.ndim :]), y, "out0")
    batches = [
        [arrays[0]] if known else [arrays[0], ids.astype(np.int32)]
        for arrays in edge_inputs(operands[:1], draw.whole(0, 1 << 30))
    ]
    text = f"{name}({', '.join(map(describe, operands))}) of {ids.tolist()} -> {describe(result)}"
    reduced = _REDUCE[name.rpartition("_")[2]]
    inner = shape[ids.ndim :]

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        rows = arrays[0].reshape(ids.size, math.prod(inner)).astype(np.float64) - x.zero_point
        flat = ids.reshape(-1)
        every = np.stack([reduced(rows[flat == i]) for i in range(count)])
        return [stored_real(every.reshape(count, *inner) * (x.scale / y.scale), y)]

    model = one_op(f"tfl.{name}", operands, [result], {})
    return Case(model, batches, text, everywhere=False, exact=exact)


_FAR = 1e15
_REDUCE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sum": lambda rows: rows.sum(0),
    "max": lambda rows: rows.max(0, initial=-_FAR),
    "min": lambda rows: rows.min(0, initial=_FAR),
}
