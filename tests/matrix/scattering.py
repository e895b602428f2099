"""SCATTER_ND and SPARSE_TO_DENSE, raw and real."""

from __future__ import annotations

import numpy as np
from support.harness import argument, const, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator
from matrix.segments import stored_real
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedType, i8, i16, i32, i64, ui8

__all__: list[str] = []


def _places(draw: Draw, shape: tuple[int, ...], depth: int, where: tuple[int, ...]) -> np.ndarray:
    return np.stack([draw.rng.integers(0, d, where) for d in shape[:depth]], axis=-1)


@generator("scatter_nd_real")
def scatter_nd(draw: Draw) -> Case:
    """int16, which no kernel takes, and 8 bits where parameters must hold; indices may be an input."""
    x = draw.quantized(draw.storage())
    y = draw.one(x, draw.quantized(x.storage, draw.near(x.scale)))
    shape = draw.dims(draw.whole(1, 3), 1, 5)
    depth, where = draw.whole(1, len(shape)), draw.dims(draw.whole(1, 2), 1, 4)
    places, known = _places(draw, shape, depth, where), draw.chance(0.7)
    indices = const(places, i32, "in0") if known else argument(places.shape, i32, "in0")
    updates = argument((*where, *shape[depth:]), x, "in1")
    batches = [
        arrays if known else [places.astype(np.int32), *arrays]
        for arrays in edge_inputs([updates], draw.whole(0, 1 << 30))
    ]

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        total = np.zeros(shape)
        at = tuple(np.moveaxis(places.reshape(-1, depth), -1, 0))
        np.add.at(total, at, (arrays[-1].astype(np.float64) - x.zero_point).reshape(-1, *shape[depth:]))
        return [stored_real(total * (x.scale / y.scale), y)]

    operands = [indices, updates, const(np.asarray(shape), i32, "in2")]
    return _case(draw, "scatter_nd", operands, argument(shape, y, "out0"), batches, exact)


@generator("sparse_to_dense")
def sparse_to_dense(draw: Draw) -> Case:
    """Raw on 8 bits; on int16 the values under the result's parameters."""
    storage = draw.storage(i8, ui8, i16)
    x = draw.quantized(storage)
    y = draw.one(x, draw.quantized(storage, draw.near(x.scale)))
    shape, count = draw.dims(draw.whole(1, 4), 1, 5), draw.whole(1, 6)
    places = _places(draw, shape, len(shape), (count,))
    stated = places[:, 0] if len(shape) == 1 and draw.chance(0.5) else places
    scalar, known = draw.chance(0.3), draw.chance(0.7)
    kind = draw.one(i32, i64)
    indices = const(stated, kind, "in0") if known else argument(stated.shape, kind, "in0")
    values = argument(() if scalar else (count,), x, "in2")
    default = const(draw.integers(storage, ()), x, "in3")
    batches = [
        arrays if known else [stated.astype(kind.dtype), *arrays]
        for arrays in edge_inputs([values], draw.whole(0, 1 << 30))
    ]

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        dense = np.full(shape, default.array)
        for place, value in zip(places, np.broadcast_to(arrays[-1], (count,)), strict=True):
            dense[tuple(place)] = value
        return [stored_real((dense.astype(np.float64) - x.zero_point) * (x.scale / y.scale), y)]

    operands = [indices, const(np.asarray(shape), draw.one(i32, i64), "in1"), values, default]
    result = argument(shape, y, "out0")
    return _case(draw, "sparse_to_dense", operands, result, batches, exact)


def _case(
    draw: Draw,
    name: str,
    operands: list[Value],
    result: Value,
    batches: list[list[np.ndarray]],
    exact: object,
) -> Case:
    text = f"{name}({', '.join(map(describe, operands))}) -> {describe(result)}"
    attributes = {"validate_indices": False} if name == "sparse_to_dense" else {}
    case = Case(one_op(f"tfl.{name}", operands, [result], attributes), batches, text)
    element = result.type.element
    assert isinstance(element, UniformQuantizedType)
    if element.storage == i16 or draw.chance(0.4):
        case.exact, case.everywhere = exact, False  # type: ignore[assignment]
        if element.storage != i16 or draw.chance(0.3):
            case.conversion = {"semantics": "real"}
    return case
