"""Forms of a requantization: other operations that compute the same function.

A form is searched for and proven by `fit`. Its operations are written once, in `apply`, for any `Ops`: arrays of numpy
(`numpy_ops.py`), on which they are proven, and the emitters of formats, which write them. A new format is one class
of `Ops` and a list of forms. Beside these, a format may emit by hand what only it has, with a proof of its own: sums of
int64 in TFLite (`rescale.py`), limbs and doubles in ONNX. A new form takes these steps:

    1. A class in a file of this folder: `Form` for integers, or a dataclass of `FloatForm`. `fit` gives None without a
       proof on both sides of every threshold (`Climb.steps`; `Staircase` for integers).
    2. Two roundings (`FixedPoint.double_round`) make thresholds jump at zero, where levels have both signs: one line
       seldom has all of them. A form adds a term by the sign, as e in `Clamped` and `Split`, or gives None.
    3. A form in float32 clamps to the levels itself. The format clamps what a form of integers gives.
    4. Its name, in a list of each format that has its operations, the cheapest first. TFLite, `rescale_float.py`:
       `FLOAT32` where each operation rounds on its own, `MOVABLE` where a runtime may also move constants. ONNX,
       `rescale.py`: `LINES`, proven with `NUMPY_FUSED` as well as `NUMPY`. Integers, by a function that applies the
       form: `FORMS` in `rescale.py` of TFLite and of ONNX, `FORMS_64` and `FORMS_32` in `rescale_double.py`. Where a
       scaling is searched twice, the second search is remembered (`remembered` and `searched` of the emitters).
    5. A docstring of the formula, a colon, and why it is exact; `scripts/pages/numerics.py` takes it apart for
       docs/numerics.md. PROOFS there has the test. `scripts/make_docs.py numerics` writes the page.
    6. Tests of a form in float32: `BOTTOMS` of tests/numerics/requantize/test_forms.py (the kernel's levels on all
       sums, the operations that a format has), and the list of tests/formats/tflite/lowering/test_form_ops.py
       (builtins equal arrays). A form of integers has a test of each kind of its own, and its name in
       `test_every_form_is_tried_here`.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np

X = TypeVar("X")


class OperationError(NotImplementedError):
    """An operation of a form that a format's `Ops` lacks: a bug of tflq's, which names both."""


class FusedClamp(NamedTuple):
    """A fused activation, its bounds, and the level, of 0 ... 255, of a result of 0."""

    activation: str
    low: float
    high: float
    middle: int


class Ops(Generic[X]):
    """The operations of forms on tensors X. `relu`: 0 where the result is negative. A format has those that its forms
    need.

    A form computes in one number type: float32, int32 or int64. `row`, `add`, `sub`, `mul`, `add_row`, `clip` and
    `sign` have all of these; the others name theirs. A class raises `OperationError` for a number type that it would
    compute otherwise.

    constants_last: constants are added to sums of products, so that none is added to a product by a constant alone.
    """

    constants_last = False

    def _lacks(self, operation: str, of: object = "") -> OperationError:
        """The error of an operation that a class has not, or has not `of` a number type."""
        what = f"{type(self).__name__} has no `{operation}`" + (f" of {of}" if of else "")
        return OperationError(f"{what}: write it there, or take the form that applies it out of the format's list")

    def row(self, numbers: np.ndarray) -> X:
        """A constant for each channel, [1 or C]."""
        raise self._lacks("row")

    def add(self, a: X, b: X, *, relu: bool = False) -> X:
        raise self._lacks("add")

    def sub(self, a: X, b: X, *, relu: bool = False) -> X:
        raise self._lacks("sub")

    def mul(self, a: X, b: X) -> X:
        raise self._lacks("mul")

    def div(self, a: X, b: X) -> X:
        """The quotient of int32, truncated."""
        raise self._lacks("div")

    def multiply_add(self, x: X, m: X, c: X, *, relu: bool = False) -> X:
        """x m + c of float32, rounded twice, or once by a runtime that makes one kernel of both."""
        raise self._lacks("multiply_add")

    def products(self, x: X, m: X, y: X, n: X) -> X:
        """x m + y n of float32; of a runtime that rounds once, y n is rounded first."""
        raise self._lacks("products")

    def add_row(self, x: X, numbers: np.ndarray) -> X:
        """x and a whole number for each channel, [1 or C]."""
        raise self._lacks("add_row")

    def clip(self, x: X, low: np.ndarray, high: np.ndarray) -> X:
        """x between constants for each channel, [1 or C]."""
        raise self._lacks("clip")

    def clamped(self, x: X, y: X, clamp: FusedClamp) -> X:
        """x + y of float32, clamped by an activation."""
        raise self._lacks("clamped")

    def floor(self, x: X) -> X:
        """float32 rounded down; x may be overwritten."""
        raise self._lacks("floor")

    def rint(self, x: X) -> X:
        """float32 below 2^22 in magnitude, rounded to the nearest whole number, halves to even."""
        raise self._lacks("rint")

    def sign(self, x: X) -> X:
        """-1, 0 or 1; int64 is within int32."""
        raise self._lacks("sign")

    def of_sign(self, x: X, a: np.ndarray | None, e: np.ndarray, c: np.ndarray) -> X:
        """c + e, c or c - e, by the sign of x + a, whole numbers in float32."""
        raise self._lacks("of_sign")

    def positive(self, x: X) -> X:
        """1 where a whole number in float32 is above 0, else 0."""
        raise self._lacks("positive")

    def high_word(self, x: X) -> X:
        """floor(x / 2^32) of int64."""
        raise self._lacks("high_word")

    def right_shift(self, x: X, places: int) -> X:
        """floor(x / 2^places) of int64, in int32, which holds it."""
        raise self._lacks("right_shift")


class Form:
    """One way to compute a requantization: the docstring of a class has its formula, and why it is exact."""

    def apply(self, x: X, ops: Ops[X]) -> X:
        """The operations."""
        raise NotImplementedError
