"""The arrays that slow functions of numbers return, declared, so that a cache tells a result from anything else.

    @returns(_are_divisions)
    def rescale_divisions(bottom, count, ...): ...

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
