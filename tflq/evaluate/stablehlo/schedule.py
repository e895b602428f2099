"""The order in which a reduction combines its values: a full binary tree whose leaves, from left to right, are the
values in ascending order of their index, with init values anywhere among them.

A tree is written in postfix order: the number of a value, `INIT`, or `BODY`, which combines the two before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np

__all__ = ["BODY", "INIT", "Schedule", "left_to_right", "random_schedule"]

Schedule: TypeAlias = Callable[[int], Sequence[int]]
"""The tree for a number of values."""

INIT: Final = -1
BODY: Final = -2


def left_to_right(count: int) -> list[int]:
    """The init value once, then one value after the other: what is computed where nothing else is said."""
    return [INIT, *(step for value in range(count) for step in (value, BODY))]


def random_schedule(rng: np.random.Generator) -> Schedule:
    """Trees of random shape, with init values at random places."""

    def schedule(count: int) -> list[int]:
        leaves = list(range(count))
        for _ in range(int(rng.integers(0 if count else 1, 4))):
            leaves.insert(int(rng.integers(0, len(leaves) + 1)), INIT)
        steps: list[int] = []
        pending: list[list[int] | None] = [leaves]  # None: a BODY
        while pending:
            part = pending.pop()
            if part is None:
                steps.append(BODY)
            elif len(part) == 1:
                steps.append(part[0])
            else:
                cut = int(rng.integers(1, len(part)))
                pending += [None, part[cut:], part[:cut]]
        return steps

    return schedule
