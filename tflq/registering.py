"""Tables of functions by op name: what a decorator adds to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["registering"]

F = TypeVar("F")


def registering(table: dict[str, F]) -> Callable[..., Callable[[F], F]]:
    """The decorator that enters a function in a table under the op names it is given; the last one entered stays."""

    def decorator(*names: str) -> Callable[[F], F]:
        def register(function: F) -> F:
            for name in names:
                table[name] = function
            return function

        return register

    return decorator
