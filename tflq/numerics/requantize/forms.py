"""Forms of a requantization: other operations that compute the same function.

A form is searched for and proven by `fit`. Its operations are written once, in `apply`, for any `Ops`: arrays of numpy
(`numpy_ops.py`), on which they are proven, and the emitters of formats, which write them. A new form is one class and
its name in the lists of the formats that have it; a new format is one class of `Ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from tflq.numerics.requantize.float_forms import Clamp

X = TypeVar("X")


class Ops(Generic[X]):
    """The operations of forms on tensors X. `relu`: 0 where the result is negative. A format has those that its forms
    need.

    constants_last: constants are added to sums of products, so that none is added to a product by a constant alone.
    """

    constants_last = False

    def row(self, numbers: np.ndarray) -> X:
        """A constant for each channel, [1 or C]."""
        raise NotImplementedError

    def add(self, a: X, b: X, *, relu: bool = False) -> X:
        raise NotImplementedError

    def sub(self, a: X, b: X, *, relu: bool = False) -> X:
        raise NotImplementedError

    def mul(self, a: X, b: X) -> X:
        raise NotImplementedError

    def div(self, a: X, b: X) -> X:
        """Of integers, truncated."""
        raise NotImplementedError

    def multiply_add(self, x: X, m: X, c: X, *, relu: bool = False) -> X:
        """x m + c, rounded twice, or once by a runtime that makes one kernel of both."""
        raise NotImplementedError

    def products(self, x: X, m: X, y: X, n: X) -> X:
        """x m + y n; of a runtime that rounds once, y n is rounded first."""
        raise NotImplementedError

    def shifted(self, x: X, numbers: np.ndarray) -> X:
        """x and a whole number for each channel, [1 or C]."""
        raise NotImplementedError

    def clip(self, x: X, low: np.ndarray, high: np.ndarray) -> X:
        """Between constants for each channel, [1 or C]."""
        raise NotImplementedError

    def clamped(self, x: X, y: X, clamp: Clamp) -> X:
        """x + y, clamped by an activation."""
        raise NotImplementedError

    def floor(self, x: X) -> X:
        """Rounded down; x may be overwritten."""
        raise NotImplementedError

    def rint(self, x: X) -> X:
        """Rounded to the nearest whole number, halves to even, of numbers below 2^22 in magnitude."""
        raise NotImplementedError

    def sign(self, x: X) -> X:
        raise NotImplementedError

    def of_sign(self, x: X, a: np.ndarray | None, e: np.ndarray, c: np.ndarray) -> X:
        """c + e, c or c - e, by the sign of x + a, whole numbers."""
        raise NotImplementedError

    def positive(self, x: X) -> X:
        """1 where a whole number is above 0, else 0."""
        raise NotImplementedError

    def high_word(self, x: X) -> X:
        """floor(x / 2^32) of int64."""
        raise NotImplementedError

    def right_shift(self, x: X, places: int) -> X:
        """floor(x / 2^places) of int64, in int32, which holds it."""
        raise NotImplementedError


class Form:
    """One way to compute a requantization: the docstring of a class has its formula, and why it is exact."""

    def apply(self, x: X, ops: Ops[X]) -> X:
        """The operations."""
        raise NotImplementedError
