"""Places for spans in an arena: one after the other, each at the lowest free place, in several orders, of which the one
with the least end is taken. None can end below the bytes of what lives at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from tflq.analysis.lifetimes import Lifetimes

ALIGNMENT: Final = 8
"""Bytes of which the begin of each span is a multiple."""


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
    ends, least = [], least_end(spans)
    for order in _ORDERS:
        ends.append(_in_order(sorted(spans, key=order)))
        if ends[-1][0] == least:
            break
    end, places = min(ends, key=lambda each: each[0])
    for span, at in places:
        span.at = at
    return end


def least_end(spans: Iterable[Span]) -> int:
    """The most bytes that live at the same time."""
    changes: defaultdict[int, int] = defaultdict(int)
    for span in spans:
        changes[span.first] += aligned(span.size)
        changes[span.last + 1] -= aligned(span.size)
    return max(accumulate(changes[step] for step in sorted(changes)), default=0)


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
