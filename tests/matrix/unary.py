"""Unary functions that have a quantized kernel; SQUARED_DIFFERENCE, REDUCE_PROD, BATCH_MATMUL, CAST, GATHER_ND."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.harness import argument, const

from matrix.draw import Case, Draw, generator, ints, single
from matrix.elementwise import broadcast_shapes, operand_of
from tflq.ir.types import i1, i8, i16, i32, i64, ui8

__all__: list[str] = []

_OTHER: dict[str, Any] = {"reference": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}
"""Where there is no reference kernel."""


@generator("unary")
def unary(draw: Draw) -> Case:
    name = draw.one("abs", "neg", "exp", "log", "sqrt", "rsqrt", "elu", "gelu")
    storage = draw.storage(*{"elu": (i8,), "gelu": (i8, ui8, i16)}.get(name, (i8, i16)))
    x = draw.quantized(storage, draw.scale(-9, -2) * (1 if storage.bits == 8 else 2**-7))
    y = draw.quantized(storage, draw.near(x.scale) if name in ("abs", "neg", "elu", "gelu") else draw.scale(-9, -2))
    shape = draw.dims(draw.whole(0, 4), 1, 9)
    options: dict[str, Any] = {"approximate": draw.chance(0.5)} if name == "gelu" else {}
    case = single(
        draw,
        name,
        [argument(shape, x)],
        [argument(shape, y)],
        options,
        {"abs": 2, "exp": 2, "log": 2, "rsqrt": 3, "gelu": 2}.get(name, 1),
        **(_OTHER if name == "elu" else {}),
    )
    if name in ("log", "sqrt", "rsqrt"):  # which stop at a negative value
        low = x.zero_point + (name != "sqrt")
        case.batches = [[np.maximum(a, min(low, storage.maximum)).astype(a.dtype) for a in b] for b in case.batches]
    return case


@generator("squared_difference")
def squared_difference(draw: Draw) -> Case:
    first, second, out = broadcast_shapes(draw)
    x, y = (draw.quantized(i8, draw.scale(-8, 0)) for _ in range(2))
    z = draw.quantized(i8, draw.near(max(x.scale, y.scale) ** 2 * 64))
    constant = draw.one(None, None, 0, 1)
    operands = [operand_of(draw, s, e, constant == i) for i, (s, e) in enumerate(((first, x), (second, y)))]
    return single(draw, "squared_difference", operands, [argument(out, z)], {}, 2)


@generator("reduce_prod")
def reduce_prod(draw: Draw) -> Case:
    storage, shape = draw.storage(i8, i16), draw.dims(draw.whole(1, 4), 1, 4)
    axis, keep = draw.whole(0, len(shape) - 1), draw.chance(0.5)
    x = draw.quantized(storage, 2.0 ** (1 - storage.bits) * draw.one(0.7, 1.0, 1.3))
    out = tuple(1 if i == axis else d for i, d in enumerate(shape) if keep or i != axis)
    y = draw.quantized(storage, draw.near(x.scale))
    options = {"keep_dims": keep}
    case = single(draw, "reduce_prod", [argument(shape, x), ints(axis)], [argument(out, y)], options, 2)
    return case if case.batches[0] else reduce_prod(draw)  # of a constant the kernel takes other multipliers


@generator("batch_matmul")
def batch_matmul(draw: Draw) -> Case:
    storage = draw.storage(i8, i16)
    n, k, m = draw.dims(3, 1, 9)
    batch = draw.dims(draw.whole(0, 2), 1, 3)
    x, y = draw.quantized(storage, draw.scale(-8, -3)), draw.quantized(storage, draw.scale(-8, -3))
    unit = x.scale * y.scale
    z = draw.quantized(storage, draw.near(unit * 2 ** (storage.bits - 2) * k**0.5, unit))
    adjoint = draw.chance(0.4), draw.chance(0.4)
    left = argument((*batch, k, n) if adjoint[0] else (*batch, n, k), x)
    right = operand_of(draw, (*batch, m, k) if adjoint[1] else (*batch, k, m), y, draw.chance(0.3))
    options = {"adj_x": adjoint[0], "adj_y": adjoint[1], "asymmetric_quantize_inputs": False}
    version = 2 if storage is i8 else 3
    return single(draw, "batch_matmul", [left, right], [argument((*batch, n, m), z)], options, version)


@generator("cast")
def cast(draw: Draw) -> Case:
    source, target = draw.one((i8, i32), (i8, i16), (ui8, i32), (i16, i32), (i16, i8), (i8, i64), (i8, ui8))
    shape = draw.dims(draw.whole(0, 4), 1, 9)
    y = draw.quantized(target) if target.bits <= 16 and draw.chance(0.6) else target
    return single(draw, "cast", [argument(shape, draw.quantized(source))], [argument(shape, y)], {}, batched=True)


@generator("gather_nd")
def gather_nd(draw: Draw) -> Case:
    element, shape = draw.quantized(draw.storage()), draw.dims(draw.whole(2, 4), 1, 5)
    depth = draw.whole(1, len(shape))
    count = draw.dims(draw.whole(1, 2), 1, 4)
    index = np.stack([draw.rng.integers(0, d, count) for d in shape[:depth]], -1)
    result = argument((*count, *shape[depth:]), element)
    return single(draw, "gather_nd", [argument(shape, element), const(index, i32)], [result], {}, 3)


@generator("other_scales")
def other_scales(draw: Draw) -> Case:
    """Operators that disregard the parameters of operands and results."""
    name = draw.one("maximum", "minimum", "select_v2", "transpose", "concatenation", "average_pool_2d")
    storage = draw.storage(*((ui8, i16) if name == "concatenation" else (i8, ui8, i16)))
    x, y, z = (draw.quantized(storage, draw.scale(-8, 0)) for _ in range(3))
    shape = (1, *draw.dims(3, 2, 5))
    options: dict[str, Any] = {}
    operands = [argument(shape, x), argument(shape, y)]
    out = shape
    if name == "select_v2":
        operands = [const(draw.rng.random(shape) < 0.5, i1), *operands]
    elif name == "transpose":
        perm = draw.rng.permutation(4).tolist()
        operands, out = [operands[0], ints(*perm)], tuple(shape[p] for p in perm)
    elif name == "concatenation":
        options, out = {"axis": 3, "fused_activation_function": "NONE"}, (*shape[:3], 2 * shape[3])
    elif name == "average_pool_2d":
        operands, options = operands[:1], {"padding": "SAME", "stride_h": 1, "stride_w": 1}
        options |= {"filter_height": 2, "filter_width": 2, "fused_activation_function": draw.activation()}
    version = {"select_v2": 1, "average_pool_2d": 3}.get(name, 2)
    return single(draw, name, operands, [argument(out, z)], options, version)
