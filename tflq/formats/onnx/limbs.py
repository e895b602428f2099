"""Products of more than 32 bits and shifts, on float32 and int32 alone, which every runtime computes exactly.

A number is a sum of limbs of 11 bits, x = x0 + x1 2^11 + x2 2^22, each a whole number in float32; the last one has
the sign. Products of two limbs have 22 bits, so float32 holds the sum of three, with a carry. FLOOR splits:

    int32 into limbs   x2 = floor(float(x) / 2^22), of the rounded x; what is left is exact, and may be below 0
    total >> s         floors, from limb to limb: floor((c0 + c1 2^11) / 2^22) = floor((c1 + floor(c0 / 2^11)) / 2^11)

What is above the limb that s cuts is added in int32, where the result fits, whatever its parts do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from tflq.formats.onnx.builder import OnnxBuilder
from tflq.ir.ops import Value
from tflq.ir.types import f32, i32

BITS: Final = 11
_BASE: Final = 1 << BITS

Limbs: TypeAlias = "list[Value]"


def split(b: OnnxBuilder, x: Value, low: int, high: int) -> Limbs:
    """The limbs of whole numbers in float32 or int32, within bounds."""
    if x.type.storage == i32:
        top = b.floor(b.powered(b.cast(x, f32), 2 * BITS))
        rest = b.cast(b.sub(x, b.mul(b.cast(top, i32), b.constant(1 << 2 * BITS, i32))), f32)
        return [*_split(b, rest, 2), top]
    count = 1 + (high >= _BASE or low < -_BASE) + (high >= _BASE**2 or low < -(_BASE**2))
    return _split(b, x, count)


def _split(b: OnnxBuilder, x: Value, count: int) -> Limbs:
    limbs = []
    for _ in range(count - 1):
        up = b.floor(b.powered(x, BITS))
        limbs.append(b.sub(x, b.mul(up, b.like(_BASE, up))))
        x = up
    return [*limbs, x]


def limbs_of(numbers: np.ndarray) -> list[np.ndarray]:
    """The limbs of Python's integers [C], int64 each."""
    rest, limbs = numbers.astype(object), []
    while max(abs(int(n)) for n in rest) > _BASE:
        limbs.append((rest % _BASE).astype(np.int64))
        rest = rest // _BASE
    return [*limbs, rest.astype(np.int64)]


def product(b: OnnxBuilder, x: Limbs, y: Limbs) -> list[Value | None]:
    """The sums of products of limbs, by their weight."""
    sums: list[Value | None] = [None] * (len(x) + len(y) - 1)
    for i, a in enumerate(x):
        for j, c in enumerate(y):
            sums[i + j] = plus(b, sums[i + j], b.mul(a, c))
    return sums


def plus(b: OnnxBuilder, x: Value | None, y: Value | None) -> Value | None:
    if x is None or y is None:
        return x if y is None else y
    return b.add(x, y)


def shifted_right(b: OnnxBuilder, sums: Sequence[Value | None], places: int) -> Value:
    """The number of these limbs divided by 2^places, rounded down, in int32, which holds it."""
    cut, rest = divmod(places, BITS)
    below: Value | None = None
    for x in sums[:cut]:
        whole = plus(b, x, below)
        below = None if whole is None else b.floor(b.powered(whole, BITS))
    at = plus(b, sums[cut] if cut < len(sums) else None, below)
    total = None if at is None else b.cast(b.floor(b.powered(at, rest)) if rest else at, i32)
    for i, x in enumerate(sums[cut + 1 :], 1):
        if x is not None:
            factor = b.constant(np.int64(1) << (i * BITS - rest), i32)
            total = plus(b, total, b.mul(b.cast(x, i32), factor))
    return b.constant(0, i32) if total is None else total


# Shifts of int32. With x = a 2^16 + c, c from 0 up, x >> s = floor(a 2^(16 - s)) + floor(c / 2^s) for s from 0 to 31:
# the first term is whole where the second one is not 0.


def shift_right(b: OnnxBuilder, x: Value, places: Value) -> Value:
    """int32 by int32 places, rounded down."""
    down = b.gather(b.constant(np.ldexp(1.0, -np.arange(32)), f32), places)
    top = b.floor(b.powered(b.cast(x, f32), 16))
    rest = b.cast(b.sub(x, b.mul(b.cast(top, i32), b.constant(1 << 16, i32))), f32)
    more = b.floor(b.powered(rest, 16))  # where x was rounded
    top, rest = b.add(top, more), b.sub(rest, b.mul(more, b.like(1 << 16, more)))
    upper = b.floor(b.mul(b.mul(top, b.like(1 << 16, top)), down))
    return b.add(b.cast(upper, i32), b.cast(b.floor(b.mul(rest, down)), i32))


def shift_left(b: OnnxBuilder, x: Value, places: Value) -> Value:
    """int32 by int32 places; bits shifted out are lost: a product, which wraps."""
    powers = (np.int64(1) << np.arange(32, dtype=np.int64)).astype(np.int32)
    return b.mul(x, b.gather(b.constant(powers, i32), places))
