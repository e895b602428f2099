"""Windows that slide over rows and columns, as TOSA wants them: their last step ends at the last element read.

TFLite drops what the stride leaves over; TOSA has an error there, so that it is not padded, or is cut off before.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.numerics.convolution import exact_end, window
from tflq.tosa.lowering.context import Tosa

__all__ = ["extents", "fitted", "same_or_valid"]


def extents(kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """How far windows reach."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))


def fitted(
    t: Tosa,
    x: Value,
    extent: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    output: Sequence[int | None],
) -> tuple[Value, tuple[int, ...]]:
    """x, whose dims after the first are those that windows slide over, without what they do not read, and `pad` (before
    and after per dim) to match."""
    shape = list(x.type.shape or ())
    pads: list[int] = []
    for axis, (reach, step, out) in enumerate(zip(extent, stride, output, strict=True), 1):
        before, after = pad[2 * axis - 2], pad[2 * axis - 1]
        size = shape[axis]
        if size is None or out is None:
            if step != 1:
                raise Refused(f"dim {axis} is not known, and TOSA takes only sizes that a stride of {step} uses up")
        elif out < 1:
            raise Refused("the result has no elements")
        else:
            shape[axis], after = exact_end(size, reach, step, before, after, out)
        pads += before, after
    return t.slice(x, [0] * len(shape), shape), tuple(pads)


def same_or_valid(
    x: Value, extent: Sequence[int], stride: Sequence[int], padding: str
) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """TFLite's padding of the dims after the first, before and after each, and the sizes of the result."""
    pads: list[int] = []
    sizes: list[int | None] = []
    for size, reach, step in zip((x.type.shape or ())[1:], extent, stride, strict=False):
        found = window(size, reach, step, 1, padding)
        if found is None:
            raise Refused("SAME padding depends on a height or width that is not known")
        pads += found.before, found.after
        sizes.append(found.output)
    return tuple(pads), tuple(sizes)
