"""Operators that copy, choose or shift stored integers, or count them."""

from __future__ import annotations

import numpy as np
from support.harness import argument, const

from matrix.draw import Case, Draw, generator, ints, single
from tflq.ir.types import i8, i16, i32, i64, ui8

__all__: list[str] = []


@generator("embedding_lookup")
def embedding_lookup(draw: Draw) -> Case:
    element = draw.quantized(draw.storage(i8, ui8))
    shape = draw.dims(draw.whole(2, 4), 1, 6)
    ids = draw.rng.integers(0, shape[0], draw.whole(1, 9))
    table = const(draw.integers(element.storage, shape), element) if draw.chance(0.7) else argument(shape, element)
    result = argument((len(ids), *shape[1:]), element)
    return single(draw, "embedding_lookup", [const(ids, i32), table], [result], {})


@generator("one_hot")
def one_hot(draw: Draw) -> Case:
    element = draw.quantized(draw.storage())
    shape, depth = draw.dims(draw.whole(0, 3), 1, 4), draw.whole(1, 6)
    axis = draw.whole(0, len(shape))
    values = [
        const(draw.integers(element.storage, ()), element) if draw.chance(0.6) else argument((), element)
        for _ in range(2)
    ]
    index = const(draw.rng.integers(-1, depth + 1, shape), draw.one(i32, i64))
    result = argument((*shape[:axis], depth, *shape[axis:]), element)
    options = {"axis": -1 if axis == len(shape) and draw.chance(0.5) else axis}
    return single(draw, "one_hot", [index, const(np.asarray(depth), i32), *values], [result], options)


@generator("fill")
def fill(draw: Draw) -> Case:
    element = draw.quantized(draw.storage(i8, i16))
    shape = draw.dims(draw.whole(0, 4), 1, 4)
    dims = const(np.asarray(shape, np.int64), draw.one(i32, i64))
    return single(draw, "fill", [dims, argument((), element)], [argument(shape, element)], {}, 3)


@generator("scatter_nd")
def scatter_nd(draw: Draw) -> Case:
    element = draw.quantized(draw.storage(i8, ui8))
    shape = draw.dims(draw.whole(1, 3), 1, 5)
    depth, where = draw.whole(1, len(shape)), draw.dims(draw.whole(1, 2), 1, 4)
    places = np.stack([draw.rng.integers(0, d, where) for d in shape[:depth]], axis=-1)
    operands = [const(places, i32), argument((*where, *shape[depth:]), element), ints(*shape)]
    return single(draw, "scatter_nd", operands, [argument(shape, element)], {})


@generator("diagonal")
def diagonal(draw: Draw) -> Case:
    element = draw.quantized(draw.storage())
    shape = draw.dims(draw.whole(1, 3), 1, 5)
    if draw.chance(0.5):
        return single(draw, "matrix_diag", [argument(shape, element)], [argument((*shape, shape[-1]), element)], {})
    whole = (*shape, draw.whole(1, 5))
    operands = [argument(whole, element), argument((*whole[:-2], min(whole[-2:])), element)]
    return single(draw, "matrix_set_diag", operands, [argument(whole, element)], {})


@generator("unique")
def unique(draw: Draw) -> Case:
    element = draw.quantized(draw.storage())
    size = draw.whole(1, 40)
    results = [argument((None,), element), argument((size,), i32)]
    return single(draw, "unique", [argument((size,), element)], results, {"idx_out_type": "INT32"})


@generator("where")
def where(draw: Draw) -> Case:
    element = draw.quantized(draw.storage(i8, ui8))
    shape = draw.dims(draw.whole(1, 4), 1, 5)
    return single(draw, "where", [argument(shape, element)], [argument((None, len(shape)), i64)], {})


@generator("bits")
def bits(draw: Draw) -> Case:
    element = draw.quantized(draw.storage())
    shape = draw.dims(draw.whole(0, 4), 1, 5)
    x, result = argument(shape, element), argument(shape, element)
    name = draw.one("bitwise_xor", "right_shift", "bitcast")
    if name == "bitcast":
        same = {i8: (i8, ui8), ui8: (i8, ui8), i16: (i16,)}[element.storage]
        return single(draw, name, [x], [argument(shape, draw.quantized(draw.one(*same)))], {})
    amounts = draw.integers(element.storage, shape, *((0, 9) if name == "right_shift" else ()))
    return single(draw, name, [x, const(amounts, element)], [result], {})


@generator("dilate")
def dilate(draw: Draw) -> Case:
    element = draw.quantized(draw.storage())
    shape = draw.dims(draw.whole(1, 4), 1, 4)
    factors = draw.dims(len(shape), 1, 3)
    out = [(d - 1) * f + 1 for d, f in zip(shape, factors, strict=True)]
    operands = [argument(shape, element), ints(*factors), const(draw.integers(element.storage, ()), element)]
    return single(draw, "dilate", operands, [argument(out, element)], {})
