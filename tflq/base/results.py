"""The arrays that slow functions of numbers return, declared, so that a cache tells a result from anything else.

    @returns(per_channel(3))
    def falling_arrays(thresholds, slope, low, high): ...

A function without a declaration is not cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

Arrays: TypeAlias = Sequence[np.ndarray]
Test: TypeAlias = Callable[..., bool]
"""Whether arrays can be the result of arguments, which follow."""
F = TypeVar("F", bound=Callable[..., Arrays])

_TESTS: Final[dict[Callable[..., Arrays], Test]] = {}


def returns(test: Test) -> Callable[[F], F]:
    """Declares the arrays that a function returns."""

    def declared(function: F) -> F:
        _TESTS[function] = test
        return function

    return declared


def is_result(function: Callable[..., Arrays], arguments: Sequence[Any], arrays: Arrays) -> bool:
    """Whether arrays have the number, types and shapes of the function's result for these arguments, and are finite."""
    test = _TESTS.get(function)
    return test is not None and test(arrays, *arguments) and all(bool(np.isfinite(array).all()) for array in arrays)


def has_form(array: np.ndarray, dtype: type, *shapes: tuple[int, ...]) -> bool:
    """Whether an array is of a type and of one of these shapes."""
    return array.dtype == dtype and array.shape in shapes


def per_channel(count: int, optional: int = 0) -> Test:
    """So many arrays of float32 with a number for each channel of `low`, the third argument. The last `optional` ones
    can be empty; without a proof there are none."""

    def test(arrays: Arrays, _: np.ndarray, __: np.ndarray, low: np.ndarray, *___: Any) -> bool:
        shapes = [[low.shape]] * (count - optional) + [[low.shape, (0,)]] * optional
        return not arrays or (
            len(arrays) == count
            and all(has_form(array, np.float32, *each) for array, each in zip(arrays, shapes, strict=True))
        )

    return test
