"""Parameters of the convolution family: output sizes and padding, real multipliers, accumulator bounds.

A kernel sums products of stored integers less their zero points, adds the bias and multiplies the sum by the real
number `input_scale * weight_scale / output_scale`. How it is rounded differs by kernel, and so does the result:

    int8, int16x8 convolutions    double(input) * double(weight) / double(output), per channel or not
    uint8 convolutions,           double(float(input * weight)) / double(output)
    int16x16 FULLY_CONNECTED
    other FULLY_CONNECTED         the double product itself, applied in float64 and rounded half away from zero

Sources: kernels/kernel_util.cc (PopulateConvolutionQuantizationParams, GetQuantizedConvolutionMultipler),
kernels/padding.h, kernels/internal/reference/fully_connected.h, integer_ops/fully_connected.h.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tflq.light import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Window",
    "channel_sums",
    "crude_bounds",
    "double_scales",
    "exact_bounds",
    "exact_channel_bounds",
    "exact_end",
    "legacy_scale",
    "window",
]


@dataclass(frozen=True, slots=True)
class Window:
    """One spatial dim: output size (None where the input's is not known), padding before and after."""

    output: int | None
    before: int
    after: int


def window(size: int | None, kernel: int, stride: int, dilation: int, padding: str) -> Window | None:
    """Output size and padding of one dim. None if the padding depends on a size that is not known.

    SAME gives ceil(size / stride) outputs and puts odd padding after; VALID pads nothing. Source: kernels/padding.h.
    """
    extent = (kernel - 1) * dilation + 1
    if size is None:
        if padding == "VALID" or extent <= 1:
            return Window(None, 0, 0)
        if stride > 1:
            return None
        return Window(None, (extent - 1) // 2, extent - 1 - (extent - 1) // 2)
    if padding == "VALID":
        return Window((size + stride - extent) // stride, 0, 0)
    output = -(-size // stride)
    total = max((output - 1) * stride + extent - size, 0)
    return Window(output, total // 2, total - total // 2)


def exact_end(size: int, extent: int, stride: int, before: int, after: int, output: int) -> tuple[int, int]:
    """The elements and the padding after them that `output` windows read: (elements from the start, padding).

    A window's last step may leave elements over; TOSA takes only sizes that its windows use up. ValueError if there
    are too few.
    """
    read = (output - 1) * stride + extent - before
    if read > size + after:
        raise ValueError(f"{output} windows read {read} elements of {size} and {after} of padding")
    return min(size, max(read, 0)), max(read - size, 0)


def double_scales(input_scale: float, weight_scales: npt.ArrayLike, output_scale: float) -> np.ndarray:
    """input * weight / output of float32 scales, in double: float64[n]; infinite or no number where scales are 0."""
    weights = np.atleast_1d(np.asarray(weight_scales, np.float32)).astype(np.float64)
    with np.errstate(all="ignore"):
        return float(np.float32(input_scale)) * weights / np.float64(np.float32(output_scale))


def legacy_scale(input_scale: float, weight_scale: float, output_scale: float) -> float:
    """The per-layer multiplier: the product of the inputs' scales in float32, the quotient in double."""
    with np.errstate(all="ignore"):
        product = np.float32(input_scale) * np.float32(weight_scale)
        return float(np.float64(product) / np.float64(np.float32(output_scale)))


def channel_sums(weights: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """The sum of 8-bit or 16-bit weights over `axis`, int64; added up in int32, twice as fast, where that holds it."""
    count = math.prod([weights.shape[a] for a in axis])
    fits = count << (8 * weights.dtype.itemsize) < 1 << 31
    return weights.sum(axis, dtype=np.int32 if fits else np.int64).astype(np.int64)


def exact_channel_bounds(
    weights: np.ndarray, axis: tuple[int, ...], weight_zp: int, low: int, high: int, bias: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest sums of (weight - weight_zp) * x over `axis`, plus bias, for x in [low, high], int64 [C] each.

    `low` <= 0 <= `high`, so that the bounds hold for padded positions and partial sums, too.
    """
    none = weight_zp * math.prod([weights.shape[a] for a in axis])
    total = channel_sums(weights, axis) - none
    rows = weights.reshape(weights.shape[0], math.prod(weights.shape[1:]))
    least = np.full(rows.shape[1], weight_zp, weights.dtype)  # a row: numpy is ten times slower with a scalar
    positive = channel_sums(np.maximum(rows, least).reshape(weights.shape), axis) - none
    negative = total - positive
    offset = np.asarray(bias, np.int64)
    return positive * low + negative * high + offset, positive * high + negative * low + offset


def exact_bounds(
    weights: np.ndarray, axis: tuple[int, ...], weight_zp: int, low: int, high: int, bias: npt.ArrayLike
) -> tuple[int, int]:
    """`exact_channel_bounds` of all channels together."""
    least, most = exact_channel_bounds(weights, axis, weight_zp, low, high, bias)
    return int(least.min()), int(most.max())


def crude_bounds(terms: int, weight: int, low: int, high: int, bias: npt.ArrayLike) -> tuple[int, int]:
    """Bounds of a sum of `terms` products with weights within [-weight, weight], plus bias."""
    reach = terms * weight * max(-low, high)
    offset = np.asarray(bias, np.int64)
    return int(offset.min(initial=0)) - reach, int(offset.max(initial=0)) + reach
