"""Where tensors and scratch are in one arena.

Each has a size, and lives from the kernel that writes it to the last that reads it. Spans are placed one after the
other, each at the lowest free place; of several orders the one with the least end is taken. A result lies on an operand
that is not read later, where its kernel allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tflq.formats.c.fusion import Fusion
from tflq.formats.c.names import bytes_of, count
from tflq.formats.c.unit import Kernel
from tflq.ir.core import Value

ALIGNMENT: Final = 8


@dataclass(slots=True)
class Span:
    """Bytes that live from one kernel to another, both included."""

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


class Plan:
    """The places of tensors (by value) and of scratch (by kernel), and the bytes of the arena."""

    def __init__(self, fusion: Fusion, kernels: Sequence[Kernel], elsewhere: set[Value]) -> None:
        """elsewhere: tensors that have memory of their own: inputs, outputs, state."""
        self._fusion = fusion
        self._lying: dict[Value, Value] = {}
        self.spans: dict[Value, Span] = {}
        for number, kernel in enumerate(kernels):
            for leaf in kernel.leaves:
                span = self.spans.get(self._place_of(leaf))
                if span is not None:
                    span.last = number
            if kernel.result is not None and kernel.result not in elsewhere:
                self.spans[kernel.result] = Span(bytes_of(kernel.result), number, number)
        for value in fusion.outputs:
            span = self.spans.get(self._place_of(value))
            if span is not None:
                span.last = len(kernels)
        for number, kernel in enumerate(kernels):
            self._lie(number, kernel)
        self.scratch = [[Span(s.size, at, at) for s in kernel.scratch] for at, kernel in enumerate(kernels)]
        self.size = _placed([*self.spans.values(), *(span for row in self.scratch for span in row)])

    def at(self, value: Value) -> int | None:
        """The byte at which a tensor begins; None if it is elsewhere."""
        span = self.spans.get(self._place_of(value))
        return None if span is None else span.at

    def _place_of(self, value: Value) -> Value:
        value, _ = self._fusion.base(value)
        while value in self._lying:
            value = self._lying[value]
        return value

    def _lie(self, number: int, kernel: Kernel) -> None:
        """Puts a result on an operand, if nothing reads that later."""
        if kernel.result not in self.spans:
            return
        span = self.spans[kernel.result]
        for leaf in kernel.shares:
            base = self._place_of(leaf)
            other = self.spans.get(base)
            whole = leaf not in self._fusion.views and count(leaf) * bytes_of(base) == bytes_of(leaf) * count(base)
            if other is not None and other.last == number and whole and other.size == span.size:
                self._lying[kernel.result] = base
                other.last = max(span.last, number)
                del self.spans[kernel.result]
                return


def _placed(spans: list[Span]) -> int:
    """The end of the spans where the best order places them."""
    best: tuple[int, list[int]] | None = None
    for order in _ORDERS:
        end = _in_order(sorted(spans, key=order))
        if best is None or end < best[0]:
            best = end, [span.at for span in spans]
    assert best is not None
    for span, at in zip(spans, best[1], strict=True):
        span.at = at
    return best[0]


def _in_order(spans: Sequence[Span]) -> int:
    placed: list[Span] = []
    end = 0
    for span in spans:
        size, at = -(-span.size // ALIGNMENT) * ALIGNMENT, 0
        beside = [p for p in placed if p.first <= span.last and span.first <= p.last]
        for other in sorted(beside, key=lambda p: p.at):
            if at + size <= other.at:
                break
            at = max(at, other.at + -(-other.size // ALIGNMENT) * ALIGNMENT)
        span.at = at
        placed.append(span)
        end = max(end, at + size)
    return end
