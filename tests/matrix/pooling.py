"""Pooling, reductions, resizing, ARG_MAX and ARG_MIN."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.harness import argument, const

from matrix.draw import Case, Draw, generator, ints, out_size, single
from tflq.ir.types import i8, i32, i64, ui8


@generator("pool")
def pool(draw: Draw) -> Case:
    storage = draw.storage()
    padding = draw.one("SAME", "VALID")
    kernel, strides = draw.dims(2, 1, 6), draw.dims(2, 1, 4)
    size = [draw.whole(k if padding == "VALID" else 1, k + 6) for k in kernel]
    out = [out_size(n, k, s, 1, padding) for n, k, s in zip(size, kernel, strides, strict=True)]
    element = draw.quantized(storage)
    batch, channels = draw.one(1, 1, 2), draw.one(1, 2, 3, 8, draw.whole(1, 40))
    options = {
        "padding": padding,
        "stride_h": strides[0],
        "stride_w": strides[1],
        "filter_height": kernel[0],
        "filter_width": kernel[1],
        "fused_activation_function": draw.activation(),
    }
    operands, results = [argument((batch, *size, channels), element)], [argument((batch, *out, channels), element)]
    return single(
        draw, draw.one("average_pool_2d", "max_pool_2d"), operands, results, options, 3, batched=True, spatial=True
    )


@generator("reduce")
def reduce(draw: Draw) -> Case:
    name = draw.one("mean", "mean", "mean", "sum", "reduce_max", "reduce_min")
    storage = draw.storage()
    rank = draw.whole(1, 5)
    shape = draw.dims(rank, 1, draw.one(4, 6, 9) if rank > 2 else draw.one(9, 300))
    count = draw.one(draw.whole(0, rank), draw.whole(1, rank))
    axes = draw.rng.permutation(rank)[:count].tolist()
    keep = draw.chance(0.5)
    out = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
    stated = [int(a) - (rank if draw.chance(0.3) else 0) for a in axes]
    if stated and draw.chance(0.1):
        stated.append(stated[0])
    x = draw.quantized(storage)
    y = x
    if not name.startswith("reduce") and draw.chance(0.7):
        size = np.prod([shape[a] for a in axes])
        y = draw.quantized(storage, draw.near(x.scale * (1 if name == "mean" else float(np.sqrt(size)))))
    # the reference kernel reads any operand of SUM as uint8; the conversion sums what is there, as the optimized kernel
    reference: dict[str, Any] = (
        {"reference": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "tolerance": 1} if name == "sum" and storage != ui8 else {}
    )
    axis = ints(*stated) if len(stated) != 1 or draw.chance(0.7) else const(np.asarray(stated[0], np.int32), i32)
    return single(
        draw,
        name,
        [argument(shape, x), axis],
        [argument(out, y)],
        {"keep_dims": keep},
        2,
        batched=0 not in axes,
        **reference,
    )


@generator("resize")
def resize(draw: Draw) -> Case:
    name, storage = draw.one("resize_bilinear", "resize_nearest_neighbor"), draw.storage()
    size, out = (draw.one(1, draw.whole(1, 12)), draw.one(1, draw.whole(1, 12))), (draw.whole(1, 20), draw.whole(1, 20))
    if draw.chance(0.1):
        size, out = (draw.whole(1, 300), draw.whole(1, 3)), (draw.whole(1, 300), draw.whole(1, 4))
    if draw.chance(0.3):
        factor = draw.whole(1, 4)
        out = (size[0] * factor, size[1] * factor)
    align, half = draw.one((False, False), (True, False), (False, True))
    if name == "resize_nearest_neighbor" and draw.chance(0.2):
        align = half = True  # which the kernel takes for what they say
    element = draw.quantized(storage)
    batch, channels = draw.one(1, 2), draw.one(1, 2, 3, 8)
    operands = [argument((batch, *size, channels), element), ints(*out)]
    results = [argument((batch, *out, channels), element)]
    # the float arithmetic of a kernel on uint8 is the float arithmetic of the conversion
    integer = name != "resize_bilinear" or storage != ui8
    return single(
        draw,
        name,
        operands,
        results,
        {"align_corners": align, "half_pixel_centers": half},
        3,
        integer=integer,
        batched=True,
    )


@generator("arg")
def arg(draw: Draw) -> Case:
    storage = draw.storage(i8, ui8)
    rank = draw.whole(1, 5)
    shape = draw.dims(rank, 1, 7)
    axis = draw.whole(0, rank - 1)
    wide = draw.chance(0.4)
    stated = np.asarray(draw.one(axis, axis - rank), np.int64 if draw.chance(0.3) else np.int32)
    operands = [argument(shape, draw.quantized(storage)), const(stated, i64 if stated.dtype == np.int64 else i32)]
    results = [argument(shape[:axis] + shape[axis + 1 :], i64 if wide else i32)]
    name = draw.one("arg_max", "arg_min")
    return single(draw, name, operands, results, {"output_type": "INT64" if wide else "INT32"}, 2, batched=axis > 0)
