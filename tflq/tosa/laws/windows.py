"""Sizes of what windows make."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Sizes"]


class Sizes:
    """The sizes of a result's spatial dims, and what of them does not divide."""

    def __init__(self) -> None:
        self.out: list[int | None] = []
        self.faults: list[str] = []

    def add(self, size: int | None, pads: Sequence[int], window: int | None, stride: int) -> None:
        """One dim: (size + pads - window) / stride + 1, the division exact."""
        if size is None or window is None or stride < 1:
            self.out.append(None)
            return
        whole, rest = divmod(size + sum(pads) - window, stride)
        self.out.append(whole + 1)
        if rest:
            self.faults.append(f"{size} + {sum(pads)} of padding - a window of {window} is not divisible by {stride}")
