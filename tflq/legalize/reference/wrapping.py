"""Sums that may leave int32, where the kernels wrap and TOSA's result is not defined: low and high halves apart.

    low = sum(x & 0xffff), high = sum(x >> 16), y = ((high + (low >> 16)) << 16) | (low & 0xffff)

The shift to the left loses what int32 does not hold. Good for 2^15 terms.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.bits import BitwiseAnd
from tflq.ir.core import Value
from tflq.legalize.rule import RuleBuilder

__all__ = ["wrapped_sum"]


def wrapped_sum(b: RuleBuilder, terms: Value, axis: int) -> Value:
    """The sum of i32 terms over an axis, which stays with size 1, as int32 wraps."""
    mask, half = b.constant(np.asarray(0xFFFF)), b.constant(np.asarray(16))
    low = b.reduce("sum", _lower(b, terms, mask), axis)
    high = b.reduce("sum", b.arithmetic_right_shift(terms, half), axis)
    high = b.add(high, b.arithmetic_right_shift(low, half))
    return b.add(b.logical_left_shift(high, half), _lower(b, low, mask))


def _lower(b: RuleBuilder, x: Value, mask: Value) -> Value:
    return b.emit(BitwiseAnd, [x, mask], x.type)
