"""Spans of an arena: which live at the same time, and places for them.

Spans are placed one after the other, each at the lowest free place; of several orders the one with the least end is
taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

ALIGNMENT: Final = 8
"""Bytes of which the begin of each placed span is a multiple."""


class Lifetimes:
    """Spans by number. Each lives from one step to another, both included."""

    def __init__(self) -> None:
        self._alive: defaultdict[int, list[int]] = defaultdict(list)
        self._begun: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, number: int, first: int, last: int) -> None:
        self._begun[first].append(number)
        for step in range(first, last + 1):
            self._alive[step].append(number)

    def beside(self, first: int, last: int) -> set[int]:
        """The spans that live at some step from the first to the last: alive at the first, or beginning later."""
        later = (number for step in range(first + 1, last + 1) for number in self._begun.get(step, ()))
        return {*self._alive.get(first, ()), *later}


@dataclass(slots=True)
class Span:
    """Bytes that live from one step to another, both included."""

    size: int
    first: int
    last: int
    at: int = 0


_ORDERS: Final[tuple[Callable[[Span], tuple[int, ...]], ...]] = (
    lambda s: (-s.size, s.first),
    lambda s: (s.first - s.last, -s.size),
    lambda s: (-s.size * (s.last - s.first + 1), s.first),
    lambda s: (s.first, -s.size),
    lambda s: (-s.last, -s.size),
)


def placed(spans: list[Span]) -> int:
    """The end of the spans where the best order places them."""
    end, places = min((_in_order(sorted(spans, key=order)) for order in _ORDERS), key=lambda each: each[0])
    for span, at in places:
        span.at = at
    return end


def aligned(size: int) -> int:
    """A size, up to the next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _in_order(spans: Sequence[Span]) -> tuple[int, list[tuple[Span, int]]]:
    """The end of the spans, and the place of each, if they are placed in this order."""
    places: list[tuple[int, int]] = []  # where each begins and ends
    lifetimes = Lifetimes()
    for number, span in enumerate(spans):
        size, at = aligned(span.size), 0
        for begin, end in sorted(places[other] for other in lifetimes.beside(span.first, span.last)):
            if at + size <= begin:
                break
            at = max(at, end)
        places.append((at, at + size))
        lifetimes.add(number, span.first, span.last)
    return max((end for _, end in places), default=0), [(s, at) for s, (at, _) in zip(spans, places, strict=True)]
