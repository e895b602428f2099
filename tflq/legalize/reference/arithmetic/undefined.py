"""RoundingDivideByPOT by a negative exponent, which C++ leaves undefined, as kernels compiled for x86-64 do it.

A loop over tensors of one shape runs in vector registers, four elements at once, and shifts all bits out but the sign;
to that it adds what rounding says, by the mask that it computes in the registers (8 bits: all ones) or before (int16).
What is left over at its end, and loops that broadcast or write over an operand, go one by one (`tflq.numerics.x86`).
Measured on SUB; the loops of other kernels are compiled differently.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.tfl.arithmetic import Add, Sub
from tflq.dialects.tosa.bits import BitwiseAnd
from tflq.ir.core import Value
from tflq.ir.types import Shape, i16
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.legalize.scaling import rounding_shift
from tflq.numerics.x86 import LANES

__all__ = ["divided_undefined"]


def divided_undefined(op: Add | Sub, b: RuleBuilder, x: Value, exponent: int, reach: int) -> Value:
    """x, i32 within [-reach, reach] and of the shape of the op's result, divided by 2^exponent, exponent < 0."""
    in_lanes = _in_lanes(b, x, exponent if op.result.type.storage is i16 else -1)
    if exponent & 32 and reach >> (exponent & 31) == 0:
        return in_lanes
    count = _elements_in_lanes(op, b)
    total = math.prod(d or 0 for d in x.type.shape or ())
    one_by_one = _one_by_one(b, x, exponent)
    if count == 0:
        return one_by_one
    if count is None or count == total:
        return in_lanes
    parts = [_part(b, in_lanes, 0, count), _part(b, one_by_one, count, total - count)]
    return b.reshape(b.concat(parts, 0), x.type.shape or ())


def _in_lanes(b: RuleBuilder, x: Value, exponent: int) -> Value:
    """The sign of each element, and one more if what the mask leaves of it is above half of that."""
    zero, one = _constant(b, 0), _constant(b, 1)
    if exponent & 32:
        return b.select(b.greater_equal(x, zero), one, _constant(b, -1))
    mask = (1 << (exponent & 31)) - 1
    sign = b.arithmetic_right_shift(x, _constant(b, 31))
    rest = b.emit(BitwiseAnd, [x, _constant(b, mask)], x.type)
    above = b.greater(rest, b.sub(_constant(b, mask >> 1), sign))
    return b.add(sign, b.select(above, one, zero))


def _one_by_one(b: RuleBuilder, x: Value, exponent: int) -> Value:
    """The same where the loop is not vectorized: by an exponent modulo 64, from 32 on as `x86.divide_by_pot` has it."""
    exponent &= 63
    if exponent < 32:
        return rounding_shift(b, x, exponent)
    above = b.select(b.greater_equal(x, _constant(b, 0)), _constant(b, 1), _constant(b, 0))
    return b.add(b.arithmetic_right_shift(x, _constant(b, exponent & 31)), above)


def _elements_in_lanes(op: Add | Sub, b: RuleBuilder) -> int | None:
    """How many of the first elements are computed in vector registers; None: all, however many there are."""
    first, second = (v.type.shape for v in (op.lhs, op.rhs))
    if b.memory is not None and b.memory.writes_over(op):
        return 0
    alike = _alike(first, second)
    if alike is None:
        raise NotApplicable("whether the kernel's loop is vectorized depends on shapes that are not known")
    if not alike:
        return 0
    known = math.prod(d for d in first or () if d is not None)
    if None not in (first or ()):
        return known - known % LANES
    if known % LANES == 0:
        return None
    raise NotApplicable("how much of the kernel's loop is vectorized depends on dims that are not known")


def _alike(first: Shape, second: Shape) -> bool | None:
    """Whether two shapes are one, but for leading dims of 1; None if that is not known."""
    if first is None or second is None:
        return None
    rank = max(len(first), len(second))
    pairs = [*zip((1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True)]
    if any(x is not None and y is not None and x != y for x, y in pairs):
        return False
    return True if all(x == y for x, y in pairs) else None


def _part(b: RuleBuilder, x: Value, start: int, size: int) -> Value:
    flat = b.reshape(x, (math.prod(d or 0 for d in x.type.shape or ()),))
    return b.slice(flat, (start,), (size,))


def _constant(b: RuleBuilder, value: int) -> Value:
    return b.constant(np.asarray(value))
