"""Where tensors and scratch are in one arena.

Each lives from the kernel that writes it to the last that reads it. A result lies on an operand that is not read later,
where its kernel allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tflq.analysis.placing import Span
from tflq.formats.c.fusion import Fusion
from tflq.formats.c.names import bytes_of, count
from tflq.formats.c.unit import Kernel
from tflq.ir.ops import Value


class Plan:
    """The places of tensors (by value) and of scratch (by kernel), once `all` are placed."""

    def __init__(self, fusion: Fusion, kernels: Sequence[Kernel], elsewhere: set[Value]) -> None:
        """elsewhere: tensors that have memory of their own: inputs, outputs, state."""
        self._fusion = fusion
        self._lying: dict[Value, Value] = {}
        self.spans: dict[Value, Span] = {}
        for number, kernel in enumerate(kernels):
            for leaf in kernel.leaves:
                span = self.spans.get(self.place_of(leaf))
                if span is not None:
                    span.last = number
            for value in map(self.place_of, kernel.results):
                if value not in elsewhere:
                    span = self.spans.setdefault(value, Span(bytes_of(value), number, number))
                    span.last = max(span.last, number)
        for value in fusion.outputs:
            span = self.spans.get(self.place_of(value))
            if span is not None:
                span.last = len(kernels)
        for number, kernel in enumerate(kernels):
            self._lie(number, kernel)
        self.scratch = [[Span(s.size, at, at) for s in kernel.scratch] for at, kernel in enumerate(kernels)]
        self.all: Final = [*self.spans.values(), *(span for row in self.scratch for span in row)]

    def at(self, value: Value) -> int | None:
        """The byte at which a tensor begins; None if it is elsewhere."""
        span = self.spans.get(self.place_of(value))
        return None if span is None else span.at

    def place_of(self, value: Value) -> Value:
        """The tensor in whose memory a value is."""
        value, _ = self._fusion.base(value)
        while value in self._lying:
            value = self._lying[value]
        return value

    def _lie(self, number: int, kernel: Kernel) -> None:
        """Puts a result on an operand, if nothing reads that later."""
        if len(kernel.results) != 1 or kernel.results[0] not in self.spans:
            return
        result, span = kernel.results[0], self.spans[kernel.results[0]]
        for leaf in kernel.shares:
            base = self.place_of(leaf)
            other = self.spans.get(base)
            whole = (
                leaf not in self._fusion.views
                and leaf not in self._fusion.pieces
                and count(leaf) * bytes_of(base) == bytes_of(leaf) * count(base)
            )
            if other is not None and other.last == number and whole and other.size == span.size:
                self._lying[result] = base
                other.last = max(span.last, number)
                del self.spans[result]
                return
