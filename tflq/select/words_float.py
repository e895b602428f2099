"""Integers of 32 bits in float32: quotients by powers of two are exact there, and FLOOR is a shift.

x >> n        floor(a 2^(16 - n)) + floor(c 2^-n), of halves x = a 2^16 + c
a b >> n      limbs of 11 bits, whose products and carries are below 2^24
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.dialects.tfl.arithmetic import Floor
from tflq.ir.core import Value
from tflq.ir.types import f32, i32
from tflq.select.arithmetic import elementwise
from tflq.select.lowering import KernelBuilder

WORD: Final = 31
"""Bits of an int32 without its sign."""
LIMB: Final = 11
"""Bits of a limb."""
_HALF: Final = 16


def _quotient(k: KernelBuilder, x: Value, n: int) -> Value:
    """floor(x 2^-n) of float32."""
    return k.emit(Floor, [k.mul(x, k.constant(2.0**-n, f32))])


def _split(k: KernelBuilder, x: Value, n: int) -> tuple[Value, Value]:
    """x = high 2^n + low of int32, in float32, n up to 22. The quotient may be one too many where float32 rounds x: low
    is from -64 to 2^n."""
    high = _quotient(k, k.cast(x, f32), n)
    return high, k.cast(k.sub(x, k.mul(k.cast(high, i32), k.constant(1 << n))), f32)


def _rest(k: KernelBuilder, x: Value, high: Value, n: int) -> Value:
    """x - high 2^n, in float32."""
    return k.sub(x, k.mul(high, k.constant(float(1 << n), f32)))


def _shifted(k: KernelBuilder, x: Value, down: Value, up: Value) -> Value:
    """x >> n for int32 x, n from 0 to 31: `down` 2^-n and `up` 2^(16 - n), float32. With x = a 2^16 + c, c not below 0,
    it is floor(a 2^(16 - n)) + floor(c 2^-n): the first is whole wherever the second is not 0."""
    high, low = _split(k, x, _HALF)
    less = _quotient(k, low, _HALF)
    high, low = k.add(high, less), _rest(k, low, less, _HALF)
    first, second = (k.emit(Floor, [elementwise(k, k.mul, *pair)]) for pair in ((high, up), (low, down)))
    return k.add(k.cast(first, i32), k.cast(second, i32))


def by_amount(k: KernelBuilder, x: Value, amount: Value) -> Value:
    """x >> amount of int32, amounts 0 ... 31 that broadcast to x."""
    n = np.arange(32)
    down, up = (k.gather(k.constant(np.exp2(exponents), f32), amount) for exponents in (-n, _HALF - n))
    return _shifted(k, x, down, up)


def by_number(k: KernelBuilder, x: Value, n: int) -> Value:
    """x >> n of int32, n from 0 to 31."""
    return _shifted(k, x, k.constant(2.0**-n, f32), k.constant(2.0 ** (_HALF - n), f32))


def _shifted_by(k: KernelBuilder, x: Value, n: np.ndarray) -> Value:
    """x >> n of int32, for a constant n [1 or C]."""
    return _shifted(k, x, k.row(np.exp2(-n), f32), k.row(np.exp2(_HALF - n), f32))


def limbs(k: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """int32 as three limbs in float32, the least first; the last has the sign, and the second may be -1."""
    if x.is_constant:
        wide = x.array.astype(np.int64)
        low, middle, high = wide & 2047, (wide >> LIMB) & 2047, wide >> 2 * LIMB
        return k.constant(low, f32), k.constant(middle, f32), k.constant(high, f32)
    top, rest = _split(k, x, 2 * LIMB)
    centre = _quotient(k, rest, LIMB)
    return _rest(k, rest, centre, LIMB), centre, top


def halved(k: KernelBuilder, x: Value, n: np.ndarray) -> Value:
    """x 2^-n, halves away from zero, for a constant n [1 or C], 0 to 31."""
    some = np.minimum(n, 1)
    below = k.cast(k.greater(k.constant(0), x), i32)
    twice = _shifted_by(k, k.sub(x, k.mul(below, k.row(some))), n - some)
    return k.sub(twice, k.mul(by_number(k, twice, 1), k.row(some)))


def high_product(k: KernelBuilder, a: Value, b: Value, shift: int) -> Value:
    """(a b + 2^(s - 1)) >> s, for s from 23 to 33: products of limbs have 22 bits, so sums of three and what is carried
    are below 2^24."""
    (a0, a1, a2), (b0, b1, b2) = (limbs(k, v) for v in (a, b))

    def times(x: Value, y: Value) -> Value:
        return elementwise(k, k.mul, x, y)

    rest = shift - 2 * LIMB
    total = k.add(k.add(times(a0, b1), times(a1, b0)), _quotient(k, times(a0, b0), LIMB))
    half = k.constant(float(1 << (rest - 1)), f32)
    total = k.add(k.add(times(a1, b1), _quotient(k, total, LIMB)), half)
    total = k.cast(_quotient(k, k.add(k.add(times(a0, b2), times(a2, b0)), total), rest), i32)
    fourth = k.cast(k.add(times(a1, b2), times(a2, b1)), i32)
    above = k.add(fourth, k.mul(k.cast(times(a2, b2), i32), k.constant(1 << LIMB)))
    return k.add(total, k.mul(above, k.constant(1 << (LIMB - rest))))
