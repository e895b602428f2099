"""Elementwise operators, activations, SOFTMAX, casts between types."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from support.harness import argument, const

from matrix.draw import Case, Draw, generator, single
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, ScalarType, UniformQuantizedType, f32, i8, i16, i32, ui8


def operand_of(draw: Draw, shape: Sequence[int], element: ElementType, constant: bool) -> Value:
    if not constant:
        return argument(shape, element)
    return const(draw.integers(element.storage, shape), element)  # type: ignore[union-attr]


def broadcast_shapes(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast, and the result's."""
    rank = draw.whole(0, 5)
    out = list(draw.dims(rank, 1, 5))
    kind = draw.one("same", "same", "scalar", "vector", "ones", "both")
    first, second = list(out), list(out)
    if kind == "scalar":
        second = draw.one([], [1] * draw.whole(0, rank))
    elif kind == "vector":
        second = out[-draw.whole(1, rank) :] if rank else []
    elif kind in ("ones", "both"):
        second = [d if draw.chance(0.5) else 1 for d in out]
        if kind == "both":
            first = [d if s == 1 or draw.chance(0.5) else 1 for d, s in zip(out, second, strict=True)]
    if draw.chance(0.5):
        first, second = second, first
    return tuple(first), tuple(second), np.broadcast_shapes(tuple(first), tuple(second))


@generator("binary")
def binary(draw: Draw) -> Case:
    name = draw.one("add", "sub", "mul")
    storage = draw.storage()
    first, second, out = broadcast_shapes(draw)
    activation = draw.activation()
    options: dict[str, object] = {"fused_activation_function": activation}
    a = draw.quantized(storage, draw.scale(-8, 0))
    b = draw.quantized(storage, draw.near(a.scale))
    if draw.chance(0.1):
        b = a
    if name == "mul":
        unit = a.scale * b.scale
        y = draw.quantized(storage, draw.near(unit * (storage.maximum - storage.minimum) / 4, unit))
    else:
        options["pot_scale_int16"] = False
        y = draw.quantized(storage, draw.near(max(a.scale, b.scale) * 1.5))
        if storage == i16 and draw.chance(0.4):
            options["pot_scale_int16"] = True
            common = draw.whole(-14, -2)
            a = UniformQuantizedType.of(i16, 2.0 ** draw.one(common, common, common - draw.whole(0, 15)))
            b = UniformQuantizedType.of(i16, 2.0 ** draw.one(common, common, common - draw.whole(0, 15)))
            y = UniformQuantizedType.of(i16, 2.0**common)
    constant = draw.one(None, None, 0, 1)
    operands = [operand_of(draw, s, e, constant == i) for i, (s, e) in enumerate(((first, a), (second, b)))]
    return single(draw, name, operands, [argument(out, y)], options, 2, batched=first == second and constant is None)


@generator("maximum_minimum")
def maximum_minimum(draw: Draw) -> Case:
    storage = draw.storage()
    first, second, out = broadcast_shapes(draw)
    element = draw.quantized(storage)
    constant = draw.one(None, None, 0, 1)
    operands = [operand_of(draw, s, element, constant == i) for i, s in enumerate((first, second))]
    return single(draw, draw.one("maximum", "minimum"), operands, [argument(out, element)], {}, 2)


@generator("relu")
def relu(draw: Draw) -> Case:
    storage = draw.storage()
    x = draw.quantized(storage)
    y = x if draw.chance(0.3) else draw.quantized(storage, draw.near(x.scale))
    shape = draw.dims(draw.whole(0, 5))
    name = draw.one("relu", "relu6", "relu_n1_to_1", "relu_0_to_1") if storage != i16 else draw.one("relu", "relu6")
    return single(draw, name, [argument(shape, x)], [argument(shape, y)], {}, batched=True)


@generator("logistic_tanh")
def logistic(draw: Draw) -> Case:
    name, storage = draw.one("logistic", "tanh"), draw.storage()
    x = draw.quantized(storage)
    if storage == i16 and draw.chance(0.5):
        x = UniformQuantizedType.of(i16, 2.0 ** -draw.whole(8, 16))
    at = (
        {i8: (256, -128), ui8: (256, 0), i16: (32768, 0)}[storage]
        if name == "logistic"
        else {i8: (128, 0), ui8: (128, 128), i16: (32768, 0)}[storage]
    )
    y = UniformQuantizedType.of(storage, 1 / at[0], at[1])
    shape = draw.dims(draw.whole(0, 5), 1, 12)
    return single(draw, name, [argument(shape, x)], [argument(shape, y)], {}, 3, batched=True)


@generator("leaky_relu")
def leaky_relu(draw: Draw) -> Case:
    storage = draw.storage()
    x = draw.quantized(storage, draw.scale(-8, 0))
    y = draw.quantized(storage, draw.near(x.scale))
    alpha = draw.one(0.0, 0.1, 0.3, 1.0, 2.5, -0.7, float(draw.rng.uniform(0, 1)), 1e-6)
    shape = draw.dims(draw.whole(0, 5), 1, 8)
    return single(
        draw,
        "leaky_relu",
        [argument(shape, x)],
        [argument(shape, y)],
        {"alpha": float(np.float32(alpha))},
        2,
        batched=True,
    )


@generator("prelu")
def prelu(draw: Draw) -> Case:
    """The kernel reads alpha's bytes, whatever its type."""
    storage = draw.storage()
    x = draw.quantized(storage, draw.scale(-8, 0))
    w = draw.quantized(draw.one(ui8 if storage == ui8 else i8, draw.storage()), draw.scale(-9, -5))
    y = draw.quantized(storage, draw.near(x.scale))
    shape = draw.dims(draw.whole(1, 4), 1, 6)
    kept = draw.whole(0, len(shape))
    slopes = tuple(d if i >= kept or draw.chance(0.3) else 1 for i, d in enumerate(shape))
    slopes = slopes if draw.chance(0.5) else slopes[draw.whole(0, min(kept, len(shape) - 1)) :]
    if math.prod(shape) != math.prod(np.broadcast_shapes(shape, slopes)):
        slopes = shape[-1:]
    constant = draw.chance(0.8)
    operands = [argument(shape, x), operand_of(draw, slopes, w, constant)]
    batched = constant and (len(slopes) < len(shape) or slopes[0] == 1)
    return single(draw, "prelu", operands, [argument(shape, y)], {}, batched=batched)


@generator("hard_swish")
def hard_swish(draw: Draw) -> Case:
    storage = draw.storage(i8, ui8)
    x = draw.quantized(storage, draw.scale(-8, 0) if draw.chance(0.8) else draw.scale(-24, 8))
    shape = draw.dims(draw.whole(0, 5), 1, 12)
    return single(
        draw,
        "hard_swish",
        [argument(shape, x)],
        [argument(shape, draw.quantized(storage, draw.near(x.scale)))],
        {},
        batched=True,
    )


@generator("softmax")
def softmax(draw: Draw) -> Case:
    storage = draw.storage()
    x = draw.quantized(storage, draw.scale(-9, 0) if draw.chance(0.8) else draw.scale(-16, 8))
    target = i16 if storage == i8 and draw.chance(0.2) else storage
    scale, zero = {i8: (1 / 256, -128), ui8: (1 / 256, 0), i16: (1 / 32768, 0)}[target]
    if storage == i8 and target == i16:
        scale, zero = 1 / 65536, -32768
    beta = draw.one(1.0, 1.0, 0.5, 2.0, 0.1, 10.0, float(draw.rng.uniform(0.01, 3)))
    shape = (
        *draw.dims(draw.whole(0, 3), 1, 4),
        draw.one(1, 2, 3, draw.whole(1, 40), draw.whole(200, 2000 if storage == i16 else 511)),
    )  # 8-bit rows of 512 equal values abort the kernel
    y = UniformQuantizedType.of(target, scale, zero)
    return single(
        draw, "softmax", [argument(shape, x)], [argument(shape, y)], {"beta": float(np.float32(beta))}, 3, batched=True
    )


_REQUANTIZED: tuple[tuple[ScalarType, ScalarType], ...] = (
    *((i8, i8), (i8, ui8), (ui8, i8), (ui8, ui8), (i16, i8), (i16, i16), (i16, i32), (i32, i8), (i32, i16)),
    *((i8, i16), (ui8, i16)),
)


@generator("quantize")
def quantize(draw: Draw) -> Case:
    shape = draw.dims(draw.whole(0, 5), 1, 12)
    source, target = draw.one(*_REQUANTIZED, (f32, i8), (f32, ui8), (f32, i16), (f32, i8), (f32, ui8))
    if source == f32:
        y: ElementType = draw.quantized(target, draw.scale(-8, 3))
        return single(draw, "quantize", [argument(shape, f32)], [argument(shape, y)], {}, 3, batched=True)
    x = draw.quantized(source, draw.scale(-10, 0) if source.bits < 32 else draw.scale(-24, -10))
    most = (source.maximum - source.minimum) / (target.maximum - target.minimum)
    y = draw.quantized(target, draw.near(x.scale * most))
    return single(draw, "quantize", [argument(shape, x)], [argument(shape, y)], {}, 3, batched=True)


@generator("dequantize")
def dequantize(draw: Draw) -> Case:
    storage = draw.storage(i8, ui8, i16)
    x = draw.quantized(storage)
    shape = draw.dims(draw.whole(0, 5), 1, 8)
    operand = operand_of(draw, shape, x, draw.chance(0.15))
    return single(draw, "dequantize", [operand], [argument(shape, f32)], {}, 3, integer=False)


@generator("division")
def division(draw: Draw) -> Case:
    """DIV by a constant without zeros."""
    storage = draw.storage()
    first, second, out = broadcast_shapes(draw)
    a, w = draw.quantized(storage, draw.scale(-8, 0)), draw.quantized(storage, draw.scale(-8, 0))
    y = draw.quantized(storage, draw.near(a.scale / w.scale))
    divisors = draw.integers(storage, second)
    divisors = np.where(divisors == w.zero_point, divisors ^ 1, divisors)
    options = {"fused_activation_function": draw.activation()}
    return single(draw, "div", [argument(first, a), const(divisors, w)], [argument(out, y)], options, 2)
