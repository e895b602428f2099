"""Windows of stored integers, reduced."""

from __future__ import annotations

import numpy as np
from support.harness import argument, const

from matrix.draw import Case, Draw, generator, single
from tflq.ir.ops import Value
from tflq.ir.types import i64

__all__: list[str] = []


@generator("reduce_window")
def reduce_window(draw: Draw) -> Case:
    x = draw.quantized(draw.storage())
    y = draw.one(x, draw.quantized(x.storage, draw.near(x.scale)))
    window = draw.dims(draw.whole(1, 4), 1, 3)
    strides, dilations = draw.dims(len(window), 1, 3), draw.dims(len(window), 1, 2)
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    shape = [draw.whole(r, r + 4) for r in reach]
    out = [(n - r) // s + 1 for n, r, s in zip(shape, reach, strides, strict=True)]
    init = const(draw.integers(x.storage, ()), x) if draw.chance(0.7) else argument((), x)
    numbers = [_longs(row) for row in (window, strides, dilations)]
    options = {"reduce_function": draw.one("ADD", "MUL", "MINIMUM", "MAXIMUM")}
    return single(draw, "reduce_window", [argument(shape, x), init, *numbers], [argument(out, y)], options)


def _longs(values: tuple[int, ...]) -> Value:
    return const(np.asarray(values), i64)
