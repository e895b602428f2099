"""Forms of a requantization: other operations that compute the same function.

A form is searched for and proven by `fit`. Its operations are written once, in `apply`, for any `Ops`: arrays of numpy,
on which they are proven, and the emitters of formats, which write them. A new form is one class and its name in the
lists of the formats that have it; a new format is one class of `Ops`.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np

from tflq.numerics.float_basics import multiply_add

X = TypeVar("X")


class Clamp(NamedTuple):
    """A fused activation, its bounds, and the level, of 0 ... 255, of a result of 0."""

    activation: str
    low: float
    high: float
    middle: int


RELU6: Final = Clamp("RELU6", 0.0, 6.0, 0)
N1_TO_1: Final = Clamp("RELU_N1_TO_1", -1.0, 1.0, 128)


class Ops(Protocol[X]):
    """The operations of forms on tensors X. `relu`: 0 where the result is negative.

    constants_last: constants are added to sums of products, so that none is added to a product by a constant alone.
    """

    @property
    def constants_last(self) -> bool: ...

    def row(self, numbers: np.ndarray) -> X:
        """A constant for each channel, [1 or C]."""

    def add(self, a: X, b: X, *, relu: bool = False) -> X: ...

    def sub(self, a: X, b: X, *, relu: bool = False) -> X: ...

    def mul(self, a: X, b: X) -> X: ...

    def div(self, a: X, b: X) -> X:
        """Of integers, truncated."""

    def multiply_add(self, x: X, m: X, c: X, *, relu: bool = False) -> X:
        """x m + c, rounded twice, or once by a runtime that makes one kernel of both."""

    def products(self, x: X, m: X, y: X, n: X) -> X:
        """x m + y n; of a runtime that rounds once, y n is rounded first."""

    def shifted(self, x: X, numbers: np.ndarray) -> X:
        """x and a whole number for each channel, [1 or C]."""

    def clip(self, x: X, low: np.ndarray, high: np.ndarray) -> X:
        """Between constants for each channel, [1 or C]."""

    def clamped(self, x: X, y: X, clamp: Clamp) -> X:
        """x + y, clamped by an activation."""

    def floor(self, x: X) -> X:
        """Rounded down; x may be overwritten."""

    def sign(self, x: X) -> X: ...

    def of_sign(self, x: X, a: np.ndarray | None, e: np.ndarray, c: np.ndarray) -> X:
        """c + e, c or c - e, by the sign of x + a, whole numbers."""

    def positive(self, x: X) -> X:
        """1 where a whole number is above 0, else 0."""


class NumpyOps:
    """Arrays of one type, each operation rounded on its own; `fused`: MUL and ADD rounded once."""

    def __init__(self, *, fused: bool = False, constants_last: bool = False) -> None:
        self.constants_last = constants_last
        self._fused = fused

    def row(self, numbers: np.ndarray) -> np.ndarray:
        return numbers

    def add(self, a: np.ndarray, b: np.ndarray, *, relu: bool = False) -> np.ndarray:
        return _rectified(a + b, relu)

    def sub(self, a: np.ndarray, b: np.ndarray, *, relu: bool = False) -> np.ndarray:
        return _rectified(a - b, relu)

    def mul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a * b

    def div(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.sign(a) * (np.abs(a) // b)

    def multiply_add(self, x: np.ndarray, m: np.ndarray, c: np.ndarray, *, relu: bool = False) -> np.ndarray:
        return _rectified(multiply_add(x, m, c, fused=self._fused), relu)

    def products(self, x: np.ndarray, m: np.ndarray, y: np.ndarray, n: np.ndarray) -> np.ndarray:
        return multiply_add(x, m, y * n, fused=self._fused)

    def shifted(self, x: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        return x + numbers

    def clip(self, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return np.clip(x, low, high)

    def clamped(self, x: np.ndarray, y: np.ndarray, clamp: Clamp) -> np.ndarray:
        total = x + y
        np.maximum(total, np.float32(clamp.low), out=total)
        return np.minimum(total, np.float32(clamp.high), out=total)

    def floor(self, x: np.ndarray) -> np.ndarray:
        return np.floor(x, out=x)

    def sign(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(x))

    def of_sign(self, x: np.ndarray, a: np.ndarray | None, e: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(x if a is None else x + a) * e + c)

    def positive(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, 0, 1)


def _rectified(x: np.ndarray, relu: bool) -> np.ndarray:
    return np.maximum(x, x.dtype.type(0), out=x) if relu else x


NUMPY: Final = NumpyOps()
NUMPY_FUSED: Final = NumpyOps(fused=True)


class Form:
    """One way to compute a requantization: the docstring of a class has its formula, and why it is exact."""

    def apply(self, x: X, ops: Ops[X]) -> X:
        """The operations."""
        raise NotImplementedError
