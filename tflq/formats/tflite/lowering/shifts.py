"""Integers cut into pieces and put together: high words, right shifts, int8 digits, weighted sums.

RIGHT_SHIFT broadcasts at most four dims and has no int64; an int64 shifted by 32 is its high word. For that, BITCAST
makes two int32 (or four int16), low word first, of which the last is taken. As a [n, 2] matrix, TRANSPOSE and GATHER of
one row read it with whole-vector copies, four times faster than GATHER or STRIDED_SLICE along the last axis (1.0
against 3.7 and 12 ns per element); of a few elements, as one for each row, GATHER alone is faster.

BATCH_MATMUL is exact only on int8, so stored integers are taken as signed bytes:

    value = sum of coefficient * digit + offset        each digit an int8 tensor of the value's shape

int8 is its own digit. uint8 is one digit, value - 128 (the top bit flipped). int16 is its high byte, and its low byte
less 128.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.base.errors import Reason, UnsupportedError
from tflq.dialects.builder import Operand
from tflq.dialects.quant import RescaleF32, RescaleF64, RescaleI64
from tflq.dialects.tosa.convolution import Convolution, MatMul
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.tflite.lowering.lowering import BROADCAST_DIMS, KernelBuilder, Tflite
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, Shape, i8, i16, i32, i64, ui8

_FEW: Final = 16
"""Elements up to which an operator less is worth more than whole-vector copies."""


def flat(shape: Shape) -> bool:
    """Whether a tensor of this shape can be flattened and given its shape again without knowing its first dim."""
    return shape is not None and len(shape) > 0 and None not in shape[1:] and 0 not in shape[1:]


def high_part(k: KernelBuilder, x: Value, part: ScalarType) -> Value:
    """The upper bits of each element of x, as wide as `part`.

    The result is flat where `flat(x.type.shape)` and there are more than a few, else of x's shape.
    """
    shape = x.type.shape
    pieces = x.type.storage.bits // part.bits
    words = k.bitcast(x, part, None if shape is None else (*shape, pieces))
    last = k.constant(pieces - 1)
    if flat(shape) and x.type.size > _FEW:
        return k.gather(k.transpose(k.reshape(words, (None, pieces)), (1, 0)), last)
    return k.gather(words, last, axis=-1 if shape is None else len(shape))


def restore(k: KernelBuilder, x: Value, shape: Shape) -> Value:
    """x of `shape` again, after `high_part` of a tensor of that shape."""
    return x if shape is None or x.type.shape == shape or not flat(shape) else k.refold(x, shape)


def right_shift(k: KernelBuilder, x: Value, amount: Value) -> Value:
    """floor(x / 2^amount), amounts broadcast to x.

    Deeper tensors than the kernel broadcasts are flattened around it.
    """
    shape, by = x.type.shape, amount.type.shape
    if shape is None or len(shape) <= BROADCAST_DIMS or shape == by:
        return k.right_shift(x, amount)
    if 0 in shape and None not in shape:
        return k.reshape(k.right_shift(k.reshape(x, (0,)), 0), shape)
    if amount.is_constant and amount.array.size == 1:
        rows: tuple[int | None, ...] = (None,)
        amount = k.constant(amount.array.reshape(()), amount.type.storage)
    elif by is not None and by == (*(1,) * (len(by) - 1), shape[-1]):
        rows, amount = (None, shape[-1]), k.reshape(amount, (shape[-1] or 0,)) if len(by) > 1 else amount
    elif by is not None and len(by) == len(shape) and by[1:] == (*shape[1:-1], 1):
        rows, amount = (None, shape[-1]), k.reshape(amount, (None, 1))
    else:
        what = f"RIGHT_SHIFT broadcasts {BROADCAST_DIMS} dims at most, not {by} to {shape}"
        raise UnsupportedError(Reason.at(k.location, what, remedy="reshape its operands before it"))
    if not flat(shape):
        raise UnsupportedError(Reason.at(k.location, f"a tensor of shape {shape} cannot be flattened for RIGHT_SHIFT"))
    return restore(k, k.right_shift(k.reshape(x, rows), amount), shape)


def product_shifted(k: KernelBuilder, a: Value, b: Value, shift: int) -> Value:
    """(a b + 2^(shift-1)) >> shift of int32, the product in 64 bits, for results that fit int32."""
    up = max(32 - shift, 0)
    if a.is_constant:
        a, b = b, a
    if b.is_constant:
        factor = k.constant(b.array.astype(np.int64) << up, i64)
        product = k.mul(k.cast(a, i64), factor)
    else:
        factors = [k.cast(v, i64) for v in (a, b)]
        if up:
            smaller = int(b.type.size < a.type.size)
            factors[smaller] = k.mul(factors[smaller], 1 << up)
        product = k.mul(*factors)
    total = k.add(product, 1 << (shift + up - 1))
    word = high_part(k, total, i32)
    if shift > 32:
        word = k.right_shift(word, shift - 32)
    return restore(k, word, total.type.shape)


# Digits.


class Digit:
    """One int8 tensor and its weight in the sum."""

    __slots__ = ("coefficient", "value")

    def __init__(self, coefficient: int, value: Value) -> None:
        self.coefficient: Final = coefficient
        self.value: Final = value


class Digits:
    """The digits of a tensor and what is added to their sum."""

    __slots__ = ("offset", "parts")

    def __init__(self, parts: tuple[Digit, ...], offset: int) -> None:
        self.parts: Final = parts
        self.offset: Final = offset


def digits(k: Tflite, x: Value) -> Digits:
    """The digits of an int8, uint8 or int16 tensor; of a constant, constants."""
    if x.type.storage == i8:
        return Digits((Digit(1, x),), 0)
    if x.is_constant:
        arrays, offset = array_digits(x.array)
        return Digits(tuple(Digit(c, constant(a)) for c, a in arrays), offset)
    if x.type.storage == ui8:
        return Digits((Digit(1, _moved(k, k.cast(x, i16), -128)),), 128)
    if x.type.storage != i16:
        raise TypeError(f"{x.type.storage} has no int8 digits")
    high = k.cast(k.right_shift(x, 8), i8)
    low = _moved(k, k.cast(k.cast(x, i8), i16), 128)
    return Digits((Digit(256, high), Digit(1, low)), 128)


def _moved(k: Tflite, x: Value, by: int) -> Value:
    """x + by as int8, wrapping; ADD and CAST take a tenth of BITWISE_XOR's time."""
    return k.cast(k.add(x, by), i8)


def array_digits(array: np.ndarray) -> tuple[list[tuple[int, np.ndarray]], int]:
    """(coefficient, digit) pairs of an array of stored integers, and the offset."""
    if array.dtype == np.int8:
        return [(1, array)], 0
    if array.dtype == np.uint8:
        return [(1, (array ^ np.uint8(0x80)).view(np.int8))], 128
    low = (array.astype(np.uint8) ^ np.uint8(0x80)).view(np.int8)
    return [(256, (array >> 8).astype(np.int8)), (1, low)], 128


def fills(dtype: np.dtype, stored: int) -> list[int]:
    """The digits of one stored integer, in the order of `digits`."""
    return [int(d) for _, d in array_digits(np.asarray(stored).astype(dtype))[0]]


class WeightedSum:
    """The sum of coefficient * tensor, of int32 tensors, in `element`; a coefficient of 1 costs nothing."""

    def __init__(self, k: Tflite, element: ScalarType) -> None:
        self._k = k
        self._total: Value | None = None
        self.element = element

    def add(self, x: Value, coefficient: int) -> None:
        """Adds coefficient * x."""
        wide = self._k.cast(x, self.element)
        if coefficient != 1:
            wide = self._k.mul(wide, coefficient)
        self._total = wide if self._total is None else self._k.add(self._total, wide)

    def plus(self, offset: Operand = 0) -> Value:
        """The sum and numbers or a tensor of `element`; a constant of zeros costs nothing."""
        more = offset if isinstance(offset, Value) else self._k.constant(offset, self.element)
        if self._total is None:
            return more
        return self._total if more.is_constant and not more.array.any() else self._k.add(self._total, more)


def fits_int32(k: Tflite, op: Convolution | MatMul) -> bool:
    """Whether the one reader of an accumulator says that it stays within int32."""
    user = k.only_user(op.output, Op)
    if not isinstance(user, (Rescale, RescaleF64, RescaleF32, RescaleI64)) or user.input_range is None:
        return False
    low, high = user.input_range
    return low >= i32.minimum and high <= i32.maximum
