"""Where tensors and scratch are in one arena.

Each lives from the kernel that writes it to the last that reads it. A result lies on an operand that is not read later,
where its kernel allows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.analysis.overlap import lead
from tflq.analysis.placing import Span, placed
from tflq.formats.c.fusion import Fusion, makes_rows
from tflq.formats.c.names import bytes_of, c_type, count
from tflq.formats.c.unit import Kernel
from tflq.ir.ops import Value


class Plan:
    """The places of tensors (by value) and of scratch (by kernel), once they are placed."""

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
        for number, kernel in enumerate(kernels):
            self._lie_over(number, kernel)
        self.scratch: list[list[Span]] = []

    def place(self, kernels: Sequence[Kernel]) -> int:
        """Places tensors, and the scratch of kernels. Returns the end."""
        self.scratch = [[Span(s.size, at, at) for s in kernel.scratch] for at, kernel in enumerate(kernels)]
        return placed([*self.spans.values(), *(span for row in self.scratch for span in row)])

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

    def _lie_over(self, number: int, kernel: Kernel) -> None:
        """Lets a result lie over operands that nothing reads later."""
        span = self.spans.get(self.place_of(kernel.results[0])) if len(kernel.results) == 1 else None
        if span is None or span.first != number:
            return
        for leaf in kernel.leaves:
            other = self.spans.get(self.place_of(leaf))
            if other is not None and other is not span and other.last == number:
                span.behind[other] = max(self._lead(kernel, leaf), span.behind.get(other, 0))

    def _lead(self, kernel: Kernel, leaf: Value) -> int:
        """The bytes by which the memory of a result begins before that of an operand, at least."""
        fusion, (result,) = self._fusion, kernel.results
        (_, begin), (whole, at) = fusion.base(leaf), fusion.base(result)
        read, written = (bytes_of(v) // max(count(v), 1) for v in (leaf, result))
        readers = [op for op in fusion.tree(result) if leaf in map(fusion.root, op.present_operands)]
        bytes: int | None = None
        if c_type(leaf) != c_type(result) and 1 not in (read, written):
            bytes = None  # compilers may take memory of two types for two places
        elif leaf in kernel.shares and not any(map(makes_rows, readers)):
            bytes = max(count(leaf) * (written - read), 0)
        elif len(readers) == 1 and makes_rows(op := readers[0]):
            operands = [*map(fusion.root, op.present_operands)]
            bytes = lead(op, read, written) if operands.index(leaf) == 0 and operands.count(leaf) == 1 else None
        return bytes_of(whole) if bytes is None else max(bytes + at * written - begin * read, 0)
