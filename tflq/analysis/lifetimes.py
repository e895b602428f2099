"""Spans of an arena that live at the same time."""

from __future__ import annotations

from collections import defaultdict


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
