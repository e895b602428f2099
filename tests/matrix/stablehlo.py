"""STABLEHLO operators: the kernels' integers where there are kernels, else exactly, or within one count, the real
results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator, single
from matrix.segments import stored_real
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedType, i1, i8, i16, i32, i64, ui8

__all__: list[str] = []

Exact = Callable[[list[np.ndarray]], np.ndarray]

_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": np.abs,
    "negate": np.negative,
    "exponential": np.exp,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "cosine": np.cos,
    "floor": np.floor,
    "cbrt": np.cbrt,
    "log": np.log,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "subtract": np.subtract,
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "remainder": np.fmod,
}


def _element(value: Value) -> UniformQuantizedType:
    assert isinstance(value.type.element, UniformQuantizedType)
    return value.type.element


def _real(value: Value, array: np.ndarray) -> np.ndarray:
    element = _element(value)
    return ((array.astype(np.float64) - element.zero_point) * element.scale).astype(np.float32).astype(np.float64)


def _case(
    draw: Draw, name: str, operands: Sequence[Value], result: Value, options: dict[str, Any], exact: Exact, off: int = 0
) -> Case:
    """`exact` gives real numbers, or, for a result that is not quantized, the result."""
    for i, value in enumerate(operands):
        value.name = f"in{i}"
    result.name = "out0"
    model = one_op(f"tfl.stablehlo_{name}", operands, [result], options)
    inputs = [v for v in operands if v.buffer is None]
    text = f"{name}({', '.join(map(describe, operands))}) -> {describe(result)} {options}"
    case = Case(model, edge_inputs(inputs, draw.whole(0, 1 << 30)), text, everywhere=False, tolerance=off)

    def stored(arrays: list[np.ndarray]) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            real = exact(arrays)
        if not result.type.quantized:
            return [real]
        return [stored_real(np.nan_to_num(np.clip(real, -1e30, 1e30)) / _element(result).scale, _element(result))]

    case.exact = stored
    return case


@generator("stablehlo_kernels")
def kernels(draw: Draw) -> Case:
    """Stored integers, as the kernels take them."""
    name, x = draw.one("add", "multiply", "maximum", "minimum"), draw.quantized(draw.storage())
    shape, y = draw.dims(draw.whole(0, 4), 1, 5), draw.one(x, draw.quantized(x.storage))
    operands = [argument(shape, x), argument(shape, draw.one(x, y))]
    return single(draw, f"stablehlo_{name}", operands, [argument(shape, y)], {})


@generator("stablehlo_elementwise")
def elementwise(draw: Draw) -> Case:
    """Real functions; those of operators that have a kernel under real semantics."""
    unary = draw.chance(0.5)
    name = draw.one(*(_UNARY if unary else _BINARY))
    x = draw.quantized(draw.storage(), draw.scale(-9, -4))
    if name == "remainder" and x.storage == i16:
        x = draw.quantized(draw.storage(i8, ui8), x.scale)
    reach = 2.0 ** (x.storage.bits - 1) * x.scale
    y = draw.quantized(x.storage, draw.near(max(reach, 1.0) * 2 / 2**x.storage.bits))
    shape = draw.dims(draw.whole(0, 4), 1, 5)
    if unary:
        value = argument(shape, x)
        return _case(draw, name, [value], argument(shape, y), {}, lambda a: _UNARY[name](_real(value, a[0])), 1)
    values = [argument(shape, x), argument(shape, draw.one(x, draw.quantized(x.storage, draw.near(x.scale))))]
    if name == "multiply":
        y = draw.quantized(x.storage, draw.near(reach * values[1].type.element.scale))  # type: ignore[union-attr]

    def exact(arrays: list[np.ndarray]) -> np.ndarray:
        return _BINARY[name](*(_real(v, a) for v, a in zip(values, arrays, strict=True)))

    case = _case(draw, name, values, argument(shape, y), {}, exact, 1)
    case.conversion = {"semantics": "real"}
    return case


@generator("stablehlo_choice")
def choice(draw: Draw) -> Case:
    name, storage = draw.one("compare", "select", "clamp", "convert"), draw.storage()
    x = draw.quantized(storage)
    y, z = (draw.one(x, draw.quantized(storage, draw.near(x.scale))) for _ in range(2))
    shape = draw.dims(draw.whole(1, 4), 1, 5)
    first, second = argument(shape, x), argument(shape, y)
    result = argument(shape, z)
    if name == "convert":
        return _case(draw, name, [first], result, {}, lambda a: _real(first, a[0]), 1)
    if name == "compare":
        word, function = draw.one(*_COMPARE)
        options = {"comparison_direction": f"STABLEHLO_COMPARISON_DIRECTION_{word}"}
        if storage == i16:
            second.type = first.type  # kernels compare other scales in fixed point
        boolean = argument(shape, i1)
        return _case(
            draw, name, [first, second], boolean, options, lambda a: function(_real(first, a[0]), _real(second, a[1]))
        )
    if name == "select":
        mask = draw.rng.integers(0, 2, draw.one(shape, ())).astype(bool)
        operands = [const(mask, i1), first, second]
        return _case(
            draw, name, operands, result, {}, lambda a: np.where(mask, _real(first, a[0]), _real(second, a[1])), 1
        )
    scalar = draw.one(shape, ())
    low, high = argument(scalar, y), argument(scalar, y)

    def exact(arrays: list[np.ndarray]) -> np.ndarray:
        a, b, c = (_real(v, array) for v, array in zip((low, first, high), arrays, strict=True))
        return np.minimum(np.maximum(b, a), c)

    return _case(draw, name, [low, first, high], result, {}, exact, 1)


_COMPARE = (
    ("EQ", np.equal),
    ("NE", np.not_equal),
    ("GE", np.greater_equal),
    ("GT", np.greater),
    ("LE", np.less_equal),
    ("LT", np.less),
)


@generator("stablehlo_movement")
def movement(draw: Draw) -> Case:
    storage = draw.storage()
    x = draw.quantized(storage)
    y = draw.one(x, draw.quantized(storage, draw.near(x.scale)))
    shape = draw.dims(draw.whole(1, 4), 1, 5)
    value, drawn = argument(shape, x), draw.one(_slice, _transpose, _reshape, _broadcast, _concatenate, _dynamic)
    name, operands, out, options, function = drawn(draw, value)
    return _case(draw, name, operands, argument(out, y), options, lambda a: function([_real(value, v) for v in a]), 1)


Moved = tuple[str, list[Value], Sequence[int], dict[str, Any], Exact]


def _longs(values: Sequence[int]) -> np.ndarray:
    return np.asarray(values, np.int64)


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(d or 0 for d in value.type.shape or ())


def _slice(draw: Draw, x: Value) -> Moved:
    shape = _shape(x)
    start = [draw.whole(0, d - 1) for d in shape]
    limit = [draw.whole(s + 1, d) for s, d in zip(start, shape, strict=True)]
    strides = [draw.whole(1, 3) for _ in shape]
    at = tuple(slice(*row) for row in zip(start, limit, strides, strict=True))
    options = {"start_indices": _longs(start), "limit_indices": _longs(limit), "strides": _longs(strides)}
    return "slice", [x], np.empty(shape)[at].shape, options, lambda a: a[0][at]


def _transpose(draw: Draw, x: Value) -> Moved:
    perm = [int(p) for p in draw.rng.permutation(len(_shape(x)))]
    out = [_shape(x)[p] for p in perm]
    return "transpose", [x], out, {"permutation": _longs(perm)}, lambda a: a[0].transpose(perm)


def _reshape(draw: Draw, x: Value) -> Moved:
    out = draw.one([math.prod(_shape(x))], [1, *_shape(x)], [*_shape(x), 1], [*_shape(x)[::-1]])
    return "reshape", [x], out, {}, lambda a: a[0].reshape(out)


def _broadcast(draw: Draw, x: Value) -> Moved:
    shape = _shape(x)
    rank = draw.whole(len(shape), 5)
    places = sorted(int(p) for p in draw.rng.choice(rank, len(shape), replace=False))
    out = [draw.whole(1, 3) for _ in range(rank)]
    for place, size in zip(places, shape, strict=True):
        out[place] = size if size > 1 else draw.whole(1, 3)
    ranked = [1] * rank
    for place, size in zip(places, shape, strict=True):
        ranked[place] = size
    options = {"broadcast_dimensions": _longs(places)}
    return "broadcast_in_dim", [x], out, options, lambda a: np.broadcast_to(a[0].reshape(ranked), out)


def _concatenate(draw: Draw, x: Value) -> Moved:
    axis, parts = draw.whole(0, len(_shape(x)) - 1), draw.whole(1, 3)
    out = [d * parts if i == axis else d for i, d in enumerate(_shape(x))]
    operands = [argument(_shape(x), x.type.element) for _ in range(parts)]
    return "concatenate", operands, out, {"dimension": axis}, lambda a: np.concatenate(a, axis)


def _dynamic(draw: Draw, x: Value) -> Moved:
    shape = _shape(x)
    size = [draw.whole(1, d) for d in shape]
    start = [draw.whole(-1, d) for d in shape]
    numbers = [const(np.asarray(s), draw.one(i32, i64)) for s in start]
    at = tuple(
        slice(min(max(s, 0), d - n), min(max(s, 0), d - n) + n) for s, n, d in zip(start, size, shape, strict=True)
    )
    if draw.chance(0.5):
        return "dynamic_slice", [x, *numbers], size, {"slice_sizes": _longs(size)}, lambda a: a[0][at]

    def updated(arrays: list[np.ndarray]) -> np.ndarray:
        out = arrays[0].copy()
        out[at] = arrays[1]
        return out

    return "dynamic_update_slice", [x, argument(size, x.type.element), *numbers], shape, {}, updated


@generator("stablehlo_pad")
def pad(draw: Draw) -> Case:
    x, shape = draw.quantized(draw.storage()), draw.dims(draw.whole(1, 4), 1, 5)
    inner = [draw.one(0, 0, 1, 2) for _ in shape]
    low = [draw.whole(-1 if d > 2 else 0, 2) for d in shape]
    high = [draw.whole(-1 if d > 2 else 0, 2) for d in shape]
    out = [d + (d - 1) * i + a + b for d, i, a, b in zip(shape, inner, low, high, strict=True)]
    y = draw.one(x, draw.quantized(x.storage))
    options = {"edge_padding_low": _longs(low), "edge_padding_high": _longs(high), "interior_padding": _longs(inner)}
    operands = [argument(shape, x), const(draw.integers(x.storage, ()), x)]
    return single(draw, "stablehlo_pad", operands, [argument(out, y)], options)


@generator("stablehlo_gather")
def gather(draw: Draw) -> Case:
    x, shape = draw.quantized(draw.storage()), draw.dims(draw.whole(1, 4), 1, 5)
    rank, depth = len(shape), draw.whole(1, len(shape))
    mapped = [int(a) for a in draw.rng.permutation(rank)[:depth]]
    sizes = [draw.whole(1, d) for d in shape]
    collapsed = [a for a in range(rank) if draw.chance(0.5)]
    sizes = [1 if a in collapsed else size for a, size in enumerate(sizes)]
    where = draw.dims(draw.whole(1, 2), 1, 4)
    implicit = depth == 1 and draw.chance(0.3)
    at = len(where) if implicit else draw.whole(0, len(where))
    index = np.stack([draw.rng.integers(0, shape[a], where) for a in mapped], axis=-1)
    stated = index[..., 0] if implicit else np.moveaxis(index, -1, at)
    kept = [s for a, s in enumerate(sizes) if a not in collapsed]
    total = len(where) + len(kept)
    offsets = sorted(int(p) for p in draw.rng.choice(total, len(kept), replace=False))
    rest, inner = iter(where), iter(kept)
    out = [next(inner) if i in offsets else next(rest) for i in range(total)]
    options = {
        "offset_dims": _longs(offsets),
        "collapsed_slice_dims": _longs(collapsed),
        "start_index_map": _longs(mapped),
        "index_vector_dim": at,
        "slice_sizes": _longs(sizes),
        "indices_are_sorted": False,
    }
    operands = [argument(shape, x), const(stated, draw.one(i32, i64))]
    return single(draw, "stablehlo_gather", operands, [argument(out, draw.one(x, draw.quantized(x.storage)))], options)
