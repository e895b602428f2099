"""Integers of 1 to 64 bits, held in int64 by their sign, as MLIR computes on signless integers; bfloat16; and elements
as files store them.

Sums and products are modulo 2^bits. Where MLIR leaves a result undefined: a division by 0 or one that overflows is an
ArithmeticError, and a shift by the width or more (poison: it may be anything) moves all bits out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tflq.numerics.fixed_point import truncated_quotient

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy.typing as npt


_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def wrapped(x: np.ndarray, bits: int) -> np.ndarray:
    """int64 or uint64 modulo 2^bits, by its sign: int64."""
    left = np.int64(64 - bits)
    return (np.asarray(x).astype(np.int64) << left) >> left


def unsigned(x: np.ndarray, bits: int) -> np.ndarray:
    """The `bits` of integers without a sign: uint64."""
    return np.asarray(x, np.int64).astype(np.uint64) & np.uint64((1 << bits) - 1)


def rounded_to_odd(numbers: np.ndarray) -> np.ndarray:
    """Integers, int64 or uint64, as float64 numbers that round to fewer than 50 bits as they do. Where float64 does not
    hold them they are rounded to odd."""
    x = np.asarray(numbers)
    size = np.where(x < 0, -x, x).astype(np.uint64) if x.dtype.kind == "i" else x
    cut = size & ~np.uint64(0x7FF)
    sticky = np.where(size != cut, np.uint64(0x800), np.uint64(0))
    large = np.where(size >= np.uint64(1 << 53), cut | sticky, size).astype(np.float64)
    return np.where(x < 0, -large, large)


def divided_signed(a: np.ndarray, b: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Quotient toward zero and remainder, int64. ZeroDivisionError, OverflowError."""
    _check_divisor(b)
    if ((a == -(1 << (bits - 1))) & (b == -1)).any():
        raise OverflowError(f"the least integer of {bits} bits divided by -1 is not an integer of {bits} bits")
    return truncated_quotient(a, b), np.fmod(a, b)


def divided_unsigned(a: np.ndarray, b: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Quotient and remainder, uint64. ZeroDivisionError."""
    _check_divisor(b)
    x, y = unsigned(a, bits), unsigned(b, bits)
    return x // y, x % y


def _check_divisor(b: np.ndarray) -> None:
    if not np.asarray(b).all():
        raise ZeroDivisionError("a divisor is 0")


def shifted_left(a: np.ndarray, by: np.ndarray, bits: int) -> np.ndarray:
    count = unsigned(by, bits)
    return np.where(count < bits, wrapped(a << np.minimum(count, np.uint64(63)).astype(np.int64), bits), 0)


def shifted_right(a: np.ndarray, by: np.ndarray, bits: int, *, signed: bool) -> np.ndarray:
    """Rounded down; int64."""
    count = np.minimum(unsigned(by, bits), np.uint64(bits))
    if signed:
        return np.asarray(a, np.int64) >> np.minimum(count, np.uint64(63)).astype(np.int64)
    moved = unsigned(a, bits) >> np.minimum(count, np.uint64(63))
    return wrapped(np.where(count < bits, moved, np.uint64(0)), bits)


def added_unsigned(a: np.ndarray, b: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum, int64 modulo 2^bits, and whether the sum of the unsigned integers has a carry."""
    x = unsigned(a, bits)
    total = wrapped(x + unsigned(b, bits), bits)
    return total, unsigned(total, bits) < x


def product_unsigned(a: np.ndarray, b: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high part, of `bits` each, of the product of unsigned integers."""
    low, high = _product_of_words(unsigned(a, bits), unsigned(b, bits))
    return _parts(low, high, bits)


def product_signed(a: np.ndarray, b: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high part, of `bits` each, of the product of signed integers."""
    x, y = (np.asarray(v, np.int64).astype(np.uint64) for v in (a, b))
    low, high = _product_of_words(x, y)
    zero = np.uint64(0)
    high = high - np.where(np.asarray(a) < 0, y, zero) - np.where(np.asarray(b) < 0, x, zero)
    return _parts(low, high, bits)


def _parts(low: np.ndarray, high: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high part, of `bits` each, of a product in two words."""
    if bits == 64:
        return low.astype(np.int64), high.astype(np.int64)
    upper = (high << np.uint64(64 - bits)) | (low >> np.uint64(bits))
    return wrapped(low, bits), wrapped(upper, bits)


def _product_of_words(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high word of the product of words, by halves of words."""
    a, b, c, d = x >> _HALF, x & _LOW, y >> _HALF, y & _LOW
    middle = a * d + (b * d >> _HALF)  # below 2^64
    carry = (middle & _LOW) + b * c
    return x * y, a * c + (middle >> _HALF) + (carry >> _HALF)


def absolute(x: np.ndarray, bits: int) -> np.ndarray:
    """|x|; the least integer stays what it is."""
    return wrapped(np.where(x < 0, -x, x), bits)


def powers(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """a^b modulo 2^bits, for negative b the integer part. ZeroDivisionError for negative powers of 0."""
    if ((a == 0) & (b < 0)).any():
        raise ZeroDivisionError("a negative power of 0")
    whole = wrapped(np.power(a, np.maximum(b, 0)), bits)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2, -1, 1), 0))
    return wrapped(np.where(b < 0, inverse, whole), bits)


def count_ones(x: np.ndarray) -> np.ndarray:
    """The number of bits of each uint64 that are 1: int64."""
    v = np.asarray(x, np.uint64)
    pairs = v - ((v >> np.uint64(1)) & np.uint64(0x5555555555555555))
    mask = np.uint64(0x3333333333333333)
    fours = (pairs & mask) + ((pairs >> np.uint64(2)) & mask)
    eights = (fours + (fours >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((eights * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)


def leading_zeros(x: np.ndarray, bits: int) -> np.ndarray:
    """The zeros above the highest bit that is 1: int64."""
    v = unsigned(x, bits)
    for step in (1, 2, 4, 8, 16, 32):
        v = v | (v >> np.uint64(step))
    return bits - count_ones(v)


def trailing_zeros(x: np.ndarray, bits: int) -> np.ndarray:
    """The zeros below the lowest bit that is 1: int64."""
    v = unsigned(x, bits)
    below = (v & (~v + np.uint64(1))) - np.uint64(1)
    return np.where(v == 0, bits, count_ones(below))


# bfloat16, which numpy lacks: bits in uint16, values in float32. It is the upper half of a float32.

_TIE = np.uint32(0x8000)


def bfloat16_bits(values: npt.ArrayLike) -> np.ndarray:
    """The bits, uint16, of the nearest bfloat16, ties to even, to real numbers in float64 or less."""
    real = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        single = real.astype(np.float32)
    bits = single.view(np.uint32)
    rest, odd = bits & np.uint32(0xFFFF), (bits >> np.uint32(16)) & np.uint32(1)
    rounded = np.abs(single.astype(np.float64))
    above, even = np.abs(real) > rounded, np.abs(real) == rounded
    up = (rest > _TIE) | ((rest == _TIE) & (above | (even & (odd == 1))))
    upper = (bits >> np.uint32(16)) + up
    return np.where(np.isnan(real), np.uint32(0x7FC0), upper).astype(np.uint16)


def bfloat16_values(bits: np.ndarray) -> np.ndarray:
    """The values, float32, of bits in uint16."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


# Small fractions that stand for ratios of scales: scaled integers compared exactly, in int32.
#
# The sign of s1 x - s2 y, for integers |x|, |y| <= N, depends only on which two fractions of terms up to N the ratio
# s2 / s1 lies between. Any other ratio between these two gives the same signs: their mediant, of terms below 2 N, or
# the ratio itself where it is such a fraction. With A / B in place of s1 / s2, x A and y B are within 2 N^2.
# Source: Farey sequences.


def comparing_factors(first: np.ndarray, second: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers A and B, int64 of the arrays' shape. x A and y B compare as x first and y second do, for all |x|,
    |y| <= reach."""
    pairs = np.stack([first.reshape(-1), second.reshape(-1)], 1)
    distinct, places = np.unique(pairs, axis=0, return_inverse=True)
    terms = np.asarray([_terms(float(a), float(b), reach) for a, b in distinct], np.int64)
    factors = terms[places.reshape(-1)]
    return factors[:, 0].reshape(first.shape), factors[:, 1].reshape(first.shape)


def _terms(first: float, second: float, reach: int) -> tuple[int, int]:
    """A and B of two scales, which may be 0 or infinite: infinite ones are equal, and above all others."""
    from fractions import Fraction

    if not first or not second:
        return int(first > 0), int(second > 0)
    if first == second:
        return 1, 1
    if math.inf in (first, second):
        return (reach + 1, 1) if first > second else (1, reach + 1)
    return _between(Fraction(first) / Fraction(second), reach)


def _between(ratio: Fraction, reach: int) -> tuple[int, int]:
    """The ratio, if its terms are within reach, else the mediant of its neighbours of such terms."""
    if max(ratio.numerator, ratio.denominator) <= reach:
        return ratio.numerator, ratio.denominator
    low, high = (0, 1), (1, 0)
    while max(middle := (low[0] + high[0], low[1] + high[1])) <= reach:
        below = middle[0] * ratio.denominator < ratio.numerator * middle[1]
        near, far = (low, high) if below else (high, low)
        steps = _steps(ratio, near, far, reach)
        moved = near[0] + steps * far[0], near[1] + steps * far[1]
        low, high = (moved, high) if below else (low, moved)
    return middle


def _steps(ratio: Fraction, near: tuple[int, int], far: tuple[int, int], reach: int) -> int:
    """The number of times that `far` can be added to `near` without passing the ratio, with terms within reach."""
    gaps = [abs(ratio.numerator * q - ratio.denominator * p) for p, q in (near, far)]
    return min(gaps[0] // gaps[1], *((reach - n) // f for n, f in zip(near, far, strict=True) if f))


# Elements of constants as files store them: several to a byte if they have fewer than 8 bits, those that are not 0
# alone if the tensor is sparse.


_COMPRESSED = ("array_segments", "array_indices")


def packed(array: np.ndarray, bits: int) -> np.ndarray:
    """The bytes of integers of 4 or 2 bits, low bits first, uint8; the last byte is filled with zeros."""
    per = 8 // bits
    fields = np.zeros(-(-array.size // per) * per, np.uint8)
    fields[: array.size] = array.reshape(-1).astype(np.uint8) & np.uint8((1 << bits) - 1)
    shifts = np.arange(per, dtype=np.uint8) * np.uint8(bits)
    return np.bitwise_or.reduce(fields.reshape(-1, per) << shifts, axis=1)


def unpacked(data: np.ndarray, bits: int, shape: Sequence[int], *, signed: bool) -> np.ndarray:
    """The counterpart of `packed`: int8, sign extended, or uint8, in a shape."""
    per = 8 // bits
    count = int(np.prod(shape, dtype=np.int64))
    shifts = np.arange(per, dtype=np.uint8) * bits
    fields = (data[:, None] >> shifts) & np.uint8((1 << bits) - 1)
    flat = fields.reshape(-1)[:count].reshape(shape)
    if not signed:
        return flat
    up = np.uint8(8 - bits)
    return (flat << up).view(np.int8) >> up.astype(np.int8)


def densified(stored: np.ndarray, shape: Sequence[int], sparsity: Mapping[str, Any]) -> np.ndarray:
    """The dense array of a sparse tensor; elements that are not stored are 0.

    A sparse tensor stores elements level by level, in the traversal order: a dense level has every index of its dim, a
    compressed one those that its segments and indices list. Block dims come after the tensor's own, and count within a
    dim. Source: `SparsityParameters` in schema.fbs, tools/optimize/sparsity/format_converter.cc.
    """
    order, blocks = sparsity["traversal_order"], sparsity["block_map"]
    coordinates: list[np.ndarray] = []
    count = 1
    for level in sparsity["dim_metadata"]:
        if level["format"] == "DENSE":
            size = level["dense_size"]
            parents, indices = np.repeat(np.arange(count), size), np.tile(np.arange(size), count)
        else:
            segments, indices = (np.asarray(level[key][1]["values"], np.int64) for key in _COMPRESSED)
            parents = np.repeat(np.arange(count), np.diff(segments))
        coordinates = [c[parents] for c in coordinates] + [indices]
        count = len(indices)
    place = [coordinates[list(order).index(axis)] for axis in range(len(shape))]
    for block, axis in enumerate(() if blocks is None else blocks):
        level = list(order).index(len(shape) + block)
        place[axis] = place[axis] * sparsity["dim_metadata"][level]["dense_size"] + coordinates[level]
    dense = np.zeros(tuple(shape), stored.dtype)
    dense[tuple(place)] = stored.reshape(-1)[:count]
    return dense
