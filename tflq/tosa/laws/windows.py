"""Windows that use up what they slide over, as TOSA demands."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.tosa.laws.registry import Violations

__all__ = ["divides"]


def divides(
    sizes: Sequence[int | None], pads: Sequence[int], windows: Sequence[int | None], strides: Sequence[int]
) -> Violations:
    """size + pads - window is a multiple of the stride in each spatial dim. `pads`: both of a dim, then of the next."""
    for i, (size, window, stride) in enumerate(zip(sizes, windows, strides, strict=True)):
        added = sum(pads[2 * i : 2 * i + 2])
        if size is not None and window is not None and stride >= 1 and (size + added - window) % stride:
            yield f"{size} + {added} of padding - a window of {window} is not divisible by {stride}"
