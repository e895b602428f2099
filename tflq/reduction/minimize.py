"""Delta debugging (Zeller and Hildebrandt 2002): the least part of a list that still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

__all__ = ["minimize"]

T = TypeVar("T")


def minimize(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of items, in their order, that fails and of which no single one can be left out. `items` itself fails.

    A part is tried once. About 2 log2(n) are, if one item is at fault.
    """
    kept, chunks = list(items), 2
    tried: set[tuple[T, ...]] = {tuple(kept)}

    def still(candidate: list[T]) -> bool:
        key = tuple(candidate)
        if not candidate or key in tried:
            return False
        tried.add(key)
        return fails(candidate)

    while len(kept) > 1:
        bounds = [len(kept) * i // chunks for i in range(chunks + 1)]
        parts = [kept[a:b] for a, b in pairwise(bounds)]
        smaller = next((part for part in parts if still(part)), None)
        if smaller is not None:
            kept, chunks = smaller, 2
            continue
        rests = ([x for j, part in enumerate(parts) if j != i for x in part] for i in range(chunks))
        smaller = next((rest for rest in rests if still(rest)), None)
        if smaller is not None:
            kept, chunks = smaller, max(chunks - 1, 2)
        elif chunks < len(kept):
            chunks = min(2 * chunks, len(kept))
        else:
            break
    return kept
