"""Places for spans in an arena: one after the other, each where the memory grows least, in several orders, of which the
one with the least end wins. None can end below the bytes of what lives at the same time.

A span may lie over others that end where it begins, `behind` it: each begins at least so many bytes behind its begin.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from tflq.analysis.lifetimes import Lifetimes

ALIGNMENT: Final = 8
"""Bytes of which the begin of each span is a multiple."""


@dataclass(slots=True, eq=False)
class Span:
    """Bytes that live from one step to another, both included. behind: by how many bytes others may be."""

    size: int
    first: int
    last: int
    at: int = 0
    behind: dict[Span, int] = field(default_factory=dict)

    def reach(self, other: Span) -> int:
        """The bytes from its begin to the first at which another may begin."""
        return aligned(self.behind.get(other, self.size))


_ORDERS: Final[tuple[Callable[[Span], tuple[int, ...]], ...]] = (
    lambda s: (-s.size, s.first),
    lambda s: (s.first - s.last, -s.size),
    lambda s: (-s.size * (s.last - s.first + 1), s.first),
    lambda s: (s.first, -s.size),
    lambda s: (-s.last, -s.size),
)


_TRIES: Final = 8


def placed(spans: list[Span]) -> int:
    """The end of the spans where the best order places them. After the fixed orders come those of the best one, with
    what lies above the least end first."""
    best, least = _in_order(sorted(spans, key=_ORDERS[0])), least_end(spans)
    for order in _ORDERS[1:]:
        if best[0] > least:
            best = min(best, _in_order(sorted(spans, key=order)), key=lambda each: each[0])
    tried = best
    for _ in range(_TRIES):
        if best[0] > least:
            above = [span for span, at in tried[1] if at + aligned(span.size) > least]
            tried = _in_order([*above, *(span for span, _ in tried[1] if span not in above)])
            best = min(best, tried, key=lambda each: each[0])
    for span, at in best[1]:
        span.at = at
    return best[0]


def least_end(spans: Iterable[Span]) -> int:
    """The end below which no places are: the most bytes that live at the same time."""
    return max(alive(spans).values(), default=0)


def alive(spans: Iterable[Span]) -> dict[int, int]:
    """The bytes that live at each step, of which spans that lie over each other need the least."""
    changes: defaultdict[int, int] = defaultdict(int)
    for span in spans:
        changes[span.first] += aligned(span.size)
        changes[span.last + 1] -= aligned(span.size)
        for other in span.behind:
            shared = aligned(span.size) + aligned(other.size)
            shared -= max(aligned(span.size), span.reach(other) + aligned(other.size))
            changes[span.first] -= shared
            changes[span.first + 1] += shared
    steps = range(min(changes, default=0), max(changes, default=0))
    return dict(zip(steps, accumulate(changes[step] for step in steps), strict=True))


def aligned(size: int) -> int:
    """A size, up to the next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _in_order(spans: Sequence[Span]) -> tuple[int, list[tuple[Span, int]]]:
    """The end of the spans, and the place of each, if they are placed in this order: each where the memory grows least,
    at its end rather than before its begin."""
    places: list[int] = []
    lifetimes = Lifetimes()
    low = high = 0
    for number, span in enumerate(spans):
        size = aligned(span.size)
        others = [(spans[n], places[n]) for n in lifetimes.beside(span.first, span.last)]
        between = sorted((place - span.reach(other), place + other.reach(span)) for other, place in others)
        begins = [-math.inf, *accumulate((end for _, end in between), max)]
        gaps = [
            gap for gap in zip(begins, [*(begin for begin, _ in between), math.inf], strict=True) if gap[0] <= gap[1]
        ]
        ways = [int(min(max(at, begin), end)) for begin, end in gaps for at in (low, high - size)]
        at = min(ways, key=lambda at: (max(high, at + size) - min(low, at), at < low, at))
        low, high = min(low, at), max(high, at + size)
        places.append(at)
        lifetimes.add(number, span.first, span.last)
    return high - low, [(span, at - low) for span, at in zip(spans, places, strict=True)]
