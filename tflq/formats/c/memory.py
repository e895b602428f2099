"""Where tensors and scratch are in one arena.

Each lives from the kernel that writes it to the last that reads it. A result lies over an operand that is not read
later, as far as its kernel allows it. What outputs have room for before they are written is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tflq.analysis.overlap import lead
from tflq.analysis.placing import Span, alive, placed
from tflq.formats.c.fusion import Fusion, makes_rows
from tflq.formats.c.names import bytes_of, c_type, count
from tflq.formats.c.unit import Kernel
from tflq.ir.ops import Value


class Plan:
    """The places of tensors (by value) and of scratch (by kernel), once they are placed."""

    def __init__(self, fusion: Fusion, kernels: Sequence[Kernel], elsewhere: Iterable[Value]) -> None:
        """elsewhere: tensors that have memory of their own: inputs, outputs, state."""
        self._fusion = fusion
        self.spans: dict[Value, Span] = {}
        self._outer: dict[Value, Span] = {}
        self.lent: Final[dict[Value, tuple[str, Span]]] = {}
        """Tensors that are in the memory of an output, and its name."""
        for number, kernel in enumerate(kernels):
            for leaf in kernel.leaves:
                if span := self._span(leaf):
                    span.last = number
            for value in (fusion.base(v)[0] for v in kernel.results):
                spans = self._outer if value in elsewhere else self.spans
                span = spans.setdefault(value, Span(bytes_of(value), number, number))
                span.last = max(span.last, number)
        for value in fusion.outputs:
            if span := self._span(value):
                span.last = len(kernels)
        for number, kernel in enumerate(kernels):
            self._lie_over(number, kernel)
        self.scratch: list[list[Span]] = []

    def _span(self, value: Value) -> Span | None:
        return self.spans.get(self._fusion.base(value)[0])

    def lend(self, name: str, output: Value) -> None:
        """Moves results that live at the steps of the most bytes to the memory of an output, before that is written."""
        whole = self._outer.get(output)
        if whole is None:
            return
        lent: list[tuple[Value, Span]] = []

        def has_room(more: Sequence[tuple[Value, Span]]) -> bool:
            spans = [span for _, span in (*lent, *more)]
            placed([whole, *spans])
            return whole.at == 0 and all(span.at + span.size <= whole.size for span in spans)

        while bytes := alive(self.spans.values()):
            peak = max(bytes, key=bytes.__getitem__)
            ways = [(v, s) for v, s in self.spans.items() if s.first <= peak <= s.last and s.first < whole.first]
            ways = [(v, s) for v, s in ways if c_type(v) == c_type(output) or s.size == count(v)]
            way = next((w for w in sorted(ways, key=lambda way: -way[1].size) if has_room([w])), None)
            if way is None:
                break
            lent.append(way)
            value, span = way
            del self.spans[value]
            self.lent[value] = name, span
            span.behind.clear()
            for other in self.spans.values():
                other.behind.pop(span, None)
        has_room([])

    def place(self, kernels: Sequence[Kernel], enough: int = 0) -> int:
        """Places tensors, and the scratch of kernels. Returns the end, and searches none below `enough`."""
        self.scratch = [[Span(s.size, at, at) for s in kernel.scratch] for at, kernel in enumerate(kernels)]
        return placed([*self.spans.values(), *(span for row in self.scratch for span in row)], enough)

    def at(self, value: Value) -> tuple[str, int]:
        """The memory that a tensor is in, and the byte at which it begins."""
        name, span = self.lent[value] if value in self.lent else ("arena", self.spans[value])
        return name, span.at

    def _lie_over(self, number: int, kernel: Kernel) -> None:
        """Lets a result lie over operands that nothing reads later."""
        if len(kernel.results) != 1:
            return
        base = self._fusion.base(kernel.results[0])[0]
        span = self.spans.get(base) or self._outer.get(base)
        if span is None or span.first != number:
            return
        for leaf in kernel.leaves:
            other = self._span(leaf)
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
