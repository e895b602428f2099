"""How many places a sliding window has: the spatial sizes of convolutions, pools and reductions over windows."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.inference import Dims, Misfit, NotInferred, plus
from tflq.numerics.convolution import window

__all__ = ["convolved", "places", "slide"]


def slide(
    sizes: Sequence[int | None],
    kernel: Sequence[int | None],
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] | None = None,
) -> Dims:
    """Sizes of the results of windows over spatial dims that are padded as TFLite does: SAME or VALID.

    Source: `ComputeOutSize` in kernels/padding.h.
    """
    out: list[int | None] = []
    for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations or (1,) * len(sizes), strict=True):
        if extent is None:
            raise NotInferred("the size of its filter is not known")
        found = window(size, extent, stride, dilation, padding)
        output = None if found is None else found.output
        if output is not None and output < 0:
            raise Misfit(f"a filter of {extent} does not fit into {size}")
        out.append(output)
    return tuple(out)


def places(size: int | None, window: int | None, stride: int | None, dilation: int | None = 1) -> int | None:
    """How many windows fit into one dim, padding included; what the last step leaves over is not used."""
    if size is None or window is None or stride is None or stride < 1 or dilation is None:
        return None
    reach = (window - 1) * dilation + 1
    return 0 if size < reach else (size - reach) // stride + 1


def convolved(
    sizes: Sequence[int | None],
    kernel: Sequence[int | None],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int] | None = None,
) -> Dims:
    """Sizes of the results of windows over spatial dims with so many elements before and after each: `pads` has both of
    the first dim, then both of the next."""
    padded = map(plus, sizes, pads[::2], pads[1::2])
    return tuple(map(places, padded, kernel, strides, dilations or (1,) * len(strides)))
