"""Places for spans in an arena: one after the other, each where the memory grows least, in several orders, of which the
one with the least end wins. None can end below the bytes of what lives at the same time.

A span may lie over others that end where it begins, `behind` it: each begins at least so many bytes behind its begin.
"""

from __future__ import annotations

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
_FAR: Final = 1 << 62
"""A place that no span reaches."""


def placed(spans: Sequence[Span], enough: int = 0) -> int:
    """The end of the spans where the best order places them. After the fixed orders come those of the best one, with
    what lies above the least end first. enough: an end with which the search stops."""
    sizes, beside, least = [aligned(span.size) for span in spans], _beside(spans), least_end(spans)
    best, places = _FAR, dict[int, int]()
    for order in _ORDERS:
        if best > max(least, enough):
            keys = [*map(order, spans)]
            end, tried = _in_order(sorted(range(len(spans)), key=keys.__getitem__), sizes, beside, best)
            if end < best:
                best, places = end, tried
    tried, known = places, {tuple(places)}
    for _ in range(_TRIES):
        if best <= max(least, enough):
            break
        above = {n: None for n, at in tried.items() if at + sizes[n] > least}
        numbers = tuple({**above, **tried})
        if numbers in known:
            break
        known.add(numbers)
        end, tried = _in_order(numbers, sizes, beside)
        if end < best:
            best, places = end, tried
    for n, at in places.items():
        spans[n].at = at
    return best


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


def _beside(spans: Sequence[Span]) -> list[list[tuple[int, int, int]]]:
    """For each span the numbers of those that live at the same time. With each the least distance of their begins if
    the span lies before it, and if it lies behind."""
    lifetimes = Lifetimes()
    beside: list[list[tuple[int, int, int]]] = [[] for _ in spans]
    for number, span in enumerate(spans):
        for n in lifetimes.beside(span.first, span.last):
            before, behind = span.reach(spans[n]), spans[n].reach(span)
            beside[number].append((n, before, behind))
            beside[n].append((number, behind, before))
        lifetimes.add(number, span.first, span.last)
    return beside


def _in_order(
    numbers: Iterable[int], sizes: Sequence[int], beside: Sequence[Sequence[tuple[int, int, int]]], most: int = _FAR
) -> tuple[int, dict[int, int]]:
    """The end of spans, and the place of each, if they are placed in this order: each where the memory grows least, at
    its end rather than before its begin. From an end of `most` on no others are placed."""
    places: dict[int, int] = {}
    low = high = 0
    for number in numbers:
        size = sizes[number]
        others = [(places[n] - before, places[n] + behind) for n, before, behind in beside[number] if n in places]
        begin, ways = -_FAR, list[tuple[int, bool, int]]()
        for end, next_begin in (*sorted(others), (_FAR, _FAR)):
            if begin <= end:
                for near in (low, high - size):
                    at = begin if near < begin else min(near, end)
                    grown = max(high, at + size) - min(low, at)
                    ways.append((grown, at < low, at))
            begin = max(begin, next_begin)
        _, _, at = min(ways)
        low, high = min(low, at), max(high, at + size)
        places[number] = at
        if high - low >= most:
            break
    return high - low, {n: at - low for n, at in places.items()}
