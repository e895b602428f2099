"""Operators on rows: LOG_SOFTMAX, L2_NORMALIZATION."""

from __future__ import annotations

from harness import argument

from matrix.draw import Case, Draw, generator, single
from tflq.ir.types import UniformQuantizedType, i8, ui8

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
