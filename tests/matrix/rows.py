"""Operators on rows: LOG_SOFTMAX, L2_NORMALIZATION."""

from __future__ import annotations

import numpy as np
from support.harness import argument, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator, single
from matrix.segments import stored_real
from tflq.ir.types import UniformQuantizedType, i8, i16, ui8

__all__: list[str] = []


def _shape(draw: Draw, longest: int) -> tuple[int, ...]:
    return (*draw.dims(draw.whole(0, 3), 1, 4), draw.one(1, 2, draw.whole(3, 40), draw.whole(200, longest)))


@generator("log_softmax")
def log_softmax(draw: Draw) -> Case:
    storage = draw.storage(i8, ui8)
    x = draw.quantized(storage, draw.scale(-9, 4))
    y = UniformQuantizedType.of(storage, 1 / 16, storage.maximum)
    shape = _shape(draw, 2000)
    operands, results = [argument(shape, x)], [argument(shape, y)]
    return single(draw, "log_softmax", operands, results, {}, 2, batched=True)


@generator("l2_normalization")
def l2_normalization(draw: Draw) -> Case:
    storage = draw.storage(i8, ui8)
    x = draw.quantized(storage)
    y = UniformQuantizedType.of(storage, 1 / 128, 128 if storage == ui8 else 0)
    shape = _shape(draw, 2000)
    options = {"fused_activation_function": "NONE"}
    return single(draw, "l2_normalization", [argument(shape, x)], [argument(shape, y)], options, 2, batched=True)


@generator("log_softmax_real")
def log_softmax_real(draw: Draw) -> Case:
    """int16, and 8 bits with other parameters of the result, which no kernel takes."""
    storage, shape = draw.storage(i8, ui8, i16), _shape(draw, 300)
    x = draw.quantized(storage, draw.scale(-9, -storage.bits / 4))
    y = UniformQuantizedType.of(storage, draw.near(2.0 ** (4 - storage.bits)), storage.maximum if storage != i16 else 0)
    value, result = argument(shape, x, "in0"), argument(shape, y, "out0")

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        real = (arrays[0].astype(np.float64) - x.zero_point) * x.scale
        below = real - real.max(-1, keepdims=True)
        return [stored_real((below - np.log(np.exp(below).sum(-1, keepdims=True))) / y.scale, y)]

    model = one_op("tfl.log_softmax", [value], [result], {}, 2)
    text = f"log_softmax({describe(value)}) -> {describe(result)}"
    batches = edge_inputs([value], draw.whole(0, 1 << 30))
    return Case(model, batches, text, integer=False, tolerance=1, everywhere=False, exact=exact)
