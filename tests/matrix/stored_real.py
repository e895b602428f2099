"""Operators on stored integers of types that no kernel takes: exactly the real results."""

from __future__ import annotations

import numpy as np
from support.harness import argument, const, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator, single
from matrix.segments import stored_real
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedType, i8, i16, i32, i64, ui8

__all__: list[str] = []


def _case(draw: Draw, name: str, operands: list[Value], result: Value, attributes: dict[str, object]) -> Case:
    for i, value in enumerate(operands):
        value.name = f"in{i}"
    result.name = "out0"
    inputs = [v for v in operands if v.buffer is None]
    text = f"{name}({', '.join(map(describe, operands))}) -> {describe(result)} {attributes}"
    model = one_op(f"tfl.{name}", operands, [result], attributes)
    return Case(model, edge_inputs(inputs, draw.whole(0, 1 << 30)), text, everywhere=False)


@generator("zeros_like")
def zeros_like(draw: Draw) -> Case:
    x, y, shape = draw.quantized(draw.storage()), None, draw.dims(draw.whole(0, 4), 1, 5)
    y = draw.one(x, draw.quantized(x.storage))
    case = _case(draw, "zeros_like", [argument(shape, x)], argument(shape, y), {})
    case.exact = lambda _: [np.full(shape, y.zero_point, y.storage.dtype)]
    return case


@generator("bucketize")
def bucketize(draw: Draw) -> Case:
    x, shape = draw.quantized(draw.storage()), draw.dims(draw.whole(0, 4), 1, 6)
    reach = x.scale * 2.0 ** (x.storage.bits - 1)
    edges = np.sort(draw.rng.uniform(-reach, reach, draw.whole(0, 9))).astype(np.float32)
    if draw.chance(0.5):  # on stored values
        edges = (np.round(edges / np.float32(x.scale)) * np.float32(x.scale)).astype(np.float32)
    case = _case(draw, "bucketize", [argument(shape, x)], argument(shape, i32), {"boundaries": edges})

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        real = (arrays[0].astype(np.int32) - x.zero_point).astype(np.float32) * np.float32(x.scale)
        return [(real[..., None] >= edges).sum(-1).astype(np.int32)]

    case.exact = exact
    return case


@generator("one_hot_real")
def one_hot(draw: Draw) -> Case:
    x, shape, depth = draw.quantized(i16), draw.dims(draw.whole(1, 3), 1, 4), draw.whole(1, 6)
    y = draw.one(x, draw.quantized(i16, draw.near(x.scale)))
    axis = draw.whole(0, len(shape))
    index = draw.rng.integers(-1, depth + 1, shape)
    operands = [const(index, draw.one(i32, i64)), const(np.asarray(depth), i32), argument((), x), argument((), x)]
    result = argument((*shape[:axis], depth, *shape[axis:]), y)
    case = _case(draw, "one_hot", operands, result, {"axis": axis})

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        hit = np.moveaxis(index[..., None] == np.arange(depth), -1, axis)
        on, off = (a.astype(np.float64) - x.zero_point for a in arrays)
        return [stored_real(np.where(hit, on, off) * (x.scale / y.scale), y)]

    case.exact = exact
    return case


@generator("where_real")
def where(draw: Draw) -> Case:
    """int16, which no kernel takes, and real zeros."""
    x, shape = draw.quantized(draw.storage()), draw.dims(draw.whole(1, 4), 1, 4)
    real = x.storage != i16 or draw.chance(0.5)
    case = _case(draw, "where", [argument(shape, x)], argument((None, len(shape)), i64), {})
    array = draw.integers(x.storage, shape, max(x.zero_point - 1, x.storage.minimum), None)
    case.batches = [[array], *case.batches[:2]]
    zero = x.zero_point if real else 0
    case.exact = lambda arrays: [np.argwhere(arrays[0] != zero)]
    case.batches = [b for b in case.batches if (b[0] != zero).any()] or [[np.full(shape, zero ^ 1, x.storage.dtype)]]
    case.conversion = {"semantics": "real"} if real else {}
    return case


@generator("bits_of_other_width")
def bits(draw: Draw) -> Case:
    shape = draw.dims(draw.whole(0, 4), 1, 5)
    narrow, wide = draw.quantized(draw.storage(i8, ui8)), draw.quantized(i16)
    pair: list[tuple[tuple[int, ...], UniformQuantizedType]] = [(shape, wide), ((*shape, 2), narrow)]
    first, second = pair if draw.chance(0.5) else pair[::-1]
    return single(draw, "bitcast", [argument(*first)], [argument(*second)], {})


@generator("gather_nd_narrow")
def gather_nd(draw: Draw) -> Case:
    """Indices of 16 bits."""
    element, shape = draw.quantized(draw.storage()), draw.dims(draw.whole(1, 4), 1, 5)
    depth, where = draw.whole(1, len(shape)), draw.dims(draw.whole(0, 2), 1, 4)
    places = np.stack([draw.rng.integers(0, d, where) for d in shape[:depth]], axis=-1)
    result = argument((*where, *shape[depth:]), element)
    return single(draw, "gather_nd", [argument(shape, element), const(places, i16)], [result], {}, 2)
