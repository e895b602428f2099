"""The operations of forms on arrays, as kernels round them: what forms are proven with."""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.numerics.float_basics import multiply_add
from tflq.numerics.requantize.forms import FusedClamp, Ops


class NumpyOps(Ops[np.ndarray]):
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

    def add_row(self, x: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        return x + numbers

    def clip(self, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return np.clip(x, low, high)

    def clamped(self, x: np.ndarray, y: np.ndarray, clamp: FusedClamp) -> np.ndarray:
        total = x + y
        np.maximum(total, np.float32(clamp.low), out=total)
        return np.minimum(total, np.float32(clamp.high), out=total)

    def floor(self, x: np.ndarray) -> np.ndarray:
        return np.floor(x, out=x)

    def rint(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.rint(x))

    def sign(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(x))

    def of_sign(self, x: np.ndarray, a: np.ndarray | None, e: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(x if a is None else x + a) * e + c)

    def positive(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, 0, 1)

    def high_word(self, x: np.ndarray) -> np.ndarray:
        return x >> 32

    def right_shift(self, x: np.ndarray, places: int) -> np.ndarray:
        return x >> places


def _rectified(x: np.ndarray, relu: bool) -> np.ndarray:
    return np.maximum(x, x.dtype.type(0), out=x) if relu else x


NUMPY: Final = NumpyOps()
NUMPY_FUSED: Final = NumpyOps(fused=True)
