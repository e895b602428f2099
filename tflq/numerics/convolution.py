"""Sums of kernels: convolutions, pooling, reductions; and the scales of recurrent kernels.

The convolution family first: output sizes and padding, real multipliers, accumulator bounds. A kernel sums products of
stored integers less their zero points, adds the bias and multiplies the sum by the real number
`input_scale * weight_scale / output_scale`. Kernels differ in how they round it, and so do their results:

    int8, int16x8 convolutions    double(input) * double(weight) / double(output), per channel or not
    uint8 convolutions,           double(float(input * weight)) / double(output)
    int16x16 FULLY_CONNECTED
    other FULLY_CONNECTED         the double product itself, applied in float64 and rounded half away from zero

Sources: kernels/kernel_util.cc (PopulateConvolutionQuantizationParams, GetQuantizedConvolutionMultipler),
kernels/padding.h, kernels/internal/reference/fully_connected.h, integer_ops/fully_connected.h.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tflq.numerics.fixed_point import Multiplier, checked_log2, quotient, ratio_multiplier

if TYPE_CHECKING:
    import numpy.typing as npt


class Window:
    """One spatial dim: output size (None where the input's is unknown), padding before and after."""

    __slots__ = ("after", "before", "output")

    def __init__(self, output: int | None, before: int, after: int) -> None:
        self.output: Final = output
        self.before: Final = before
        self.after: Final = after

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Window) and (self.output, self.before, self.after) == (
            other.output,
            other.before,
            other.after,
        )

    def __hash__(self) -> int:
        return hash((self.output, self.before, self.after))


@functools.lru_cache(maxsize=1024)
def window(size: int | None, kernel: int, stride: int, dilation: int, padding: str) -> Window | None:
    """Output size and padding of one dim. None if the padding depends on an unknown size.

    SAME gives ceil(size / stride) outputs and puts odd padding after; VALID pads nothing, and gives a negative number
    where the kernel is too large. Quotients are C++'s, which end at 0. Source: kernels/padding.h.
    """
    extent = (kernel - 1) * dilation + 1
    if size is None:
        if padding == "VALID" or extent <= 1:
            return Window(None, 0, 0)
        if stride > 1:
            return None
        return Window(None, (extent - 1) // 2, extent - 1 - (extent - 1) // 2)
    if padding == "VALID":
        room = size + stride - extent
        return Window(room // stride if room >= 0 else -(-room // stride), 0, 0)
    output = -(-size // stride)
    total = max((output - 1) * stride + extent - size, 0)
    return Window(output, total // 2, total - total // 2)


def exact_end(size: int, extent: int, stride: int, before: int, after: int, output: int) -> tuple[int, int]:
    """The number of elements, from the start, and of padding after them that `output` windows read.

    A window's last step may leave elements over; TOSA takes only sizes that its windows use up. ValueError if there
    are too few.
    """
    read = (output - 1) * stride + extent - before
    if read > size + after:
        raise ValueError(f"{output} windows read {read} elements of {size} and {after} of padding")
    return min(size, max(read, 0)), max(read - size, 0)


def double_scales(input_scale: float, weight_scales: npt.ArrayLike, output_scale: float) -> np.ndarray:
    """input * weight / output of float32 scales, in double: float64[n]; infinite or NaN where scales are 0."""
    weights = np.atleast_1d(np.asarray(weight_scales, np.float32)).astype(np.float64)
    with np.errstate(all="ignore"):
        return float(np.float32(input_scale)) * weights / np.float64(np.float32(output_scale))


def legacy_scale(input_scale: float, weight_scale: float, output_scale: float) -> float:
    """The per-layer multiplier: the product of the inputs' scales in float32, the quotient in double."""
    with np.errstate(all="ignore"):
        product = np.float32(input_scale) * np.float32(weight_scale)
        return float(np.float64(product) / np.float64(np.float32(output_scale)))


def channel_sums(weights: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """The sum of 8-bit or 16-bit weights over `axis`, int64; added in int32, twice as fast, where that holds it."""
    count = math.prod([weights.shape[a] for a in axis])
    fits = count << (8 * weights.dtype.itemsize) < 1 << 31
    return weights.sum(axis, dtype=np.int32 if fits else np.int64).astype(np.int64)


def exact_channel_bounds(
    weights: np.ndarray,
    axis: tuple[int, ...],
    weight_zp: int,
    low: int,
    high: int,
    bias: npt.ArrayLike,
    sums: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest sums of (weight - weight_zp) * x over `axis`, plus bias, for x in [low, high], int64 [C] each.
    sums: the `channel_sums`, where they are known.

    `low` <= 0 <= `high`, so that the bounds hold for padded positions and partial sums, too.
    """
    none = weight_zp * math.prod([weights.shape[a] for a in axis])
    total = (channel_sums(weights, axis) if sums is None else sums) - none
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


# Pooling over windows of rows and columns.
#
#     average[y, x] = (sum ± count // 2) / count, truncated; + for a positive sum: the mean, half away from zero
#     maximum[y, x] = the greatest element
#
# over the elements of the window inside the input: padding is neither summed nor counted. The kernels look at neither
# scales nor zero points, so both are the same on stored integers of any parameters.
#
# TOSA's AVG_POOL2D sums x - input_zp, multiplies by a reciprocal and adds output_zp:
#
#     (sum * m + 2^(s - 1)) >> s        m = ((2^30 + 1) << k) // count, s = 30 + k, k the bits of count - 1
#
# That is the mean, half away from zero, of every |sum| < 2^29: m * count = 2^s + d with 0 < d <= 2^k, since
# count <= 2^k, so the product is sum / count * (1 + d / 2^s), farther from zero, which takes both halves away from it.
# All other quotients are at least 1 / (2 count) from a half, and |sum| / count * 2^-30 is less than that.
#
# Sources: kernels/internal/reference/integer_ops/pooling.h, kernels/internal/reference/pooling.h; TOSA 1.0
# specification, AVG_POOL2D, reciprocal_scale.


def reciprocal_scale(count: int) -> tuple[int, int]:
    """TOSA's multiplier and shift for a division by `count`."""
    k = (count - 1).bit_length()
    return (((1 << 30) + 1) << k) // count, 30 + k


def average_is_exact(kernel: Sequence[int], low: int, high: int, zero_point: int) -> bool:
    """Whether TOSA's average of integers within [low, high] less their zero point is the mean, half away from zero."""
    return kernel[0] * kernel[1] * max(high - zero_point, zero_point - low) < 1 << 29


def average_pool(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> np.ndarray:
    """AVERAGE_POOL_2D of NHWC integers, int64; `kernel` and `stride` are y, x, `pad` is top, bottom, left, right.

    For floats it is the quotient itself, float64.
    """
    total, count = _sums(x, kernel, stride, pad)
    if x.dtype.kind == "f":
        return total / count
    return np.sign(total) * ((np.abs(total) + count // 2) // count)


def reciprocal_average_pool(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]
) -> np.ndarray:
    """TOSA's AVG_POOL2D of NHWC integers less their zero point, int64; arguments as for `average_pool`."""
    total, count = _sums(x, kernel, stride, pad)
    counts, place = np.unique(count, return_inverse=True)
    scales = np.asarray([reciprocal_scale(int(c)) for c in counts], np.int64)
    multiplier, shift = scales[place.reshape(count.shape)].transpose(4, 0, 1, 2, 3)
    return (total * multiplier + (np.int64(1) << (shift - 1))) >> shift


def window_counts(sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> np.ndarray:
    """The elements of each window that are not padding, for an input of `sizes` rows and columns: [OH, OW]."""
    ones = np.ones((1, *sizes, 1), np.int64)
    return functools.reduce(np.add, _shifted(ones, kernel, stride, pad, 0))[0, :, :, 0]


def _sums(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """The sum of each window, in int64 or float64, and the number of its elements."""
    wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
    counts = window_counts(x.shape[1:3], kernel, stride, pad)
    return functools.reduce(np.add, _shifted(wide, kernel, stride, pad, 0)), counts[None, :, :, None]


def max_pool(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> np.ndarray:
    """MAX_POOL_2D of NHWC integers; arguments as for `average_pool`."""
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return functools.reduce(np.maximum, _shifted(x, kernel, stride, pad, least))


def _shifted(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int], fill: float
) -> Iterator[np.ndarray]:
    """For each position in the window, the element there of every window."""
    top, bottom, left, right = pad
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    rows, columns = ((size - k) // s + 1 for size, k, s in zip(padded.shape[1:3], kernel, stride, strict=True))
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            yield padded[:, row :: stride[0], column :: stride[1]][:, :rows, :columns]


# The fixed-point multipliers of MEAN, SUM and REDUCE_PROD over quantized tensors.
#
# MEAN and SUM sum stored integers in int32 and apply one multiplier to `sum - zero_point_in * count`:
#
#     SUM    `ratio_multiplier` of the scales
#     MEAN   the same, with 1 / count folded in: (M << s) / count, truncated, and s less in the left shift, where
#            s = floor(log2(count)), but at most 32 and at most 31 + shift
#
# so that MEAN's mantissa has 30 or 31 significant bits. REDUCE_PROD multiplies element by element, and by
# `quantize_multiplier(scale_in / scale_out^(1 / count))` after each, 64 bits to 32 (`reduce_to_16_bits`):
#
#     p = x[0], then multiply(p * x[i]) for the others in row-major order, then multiply(p)        x less zero_point_in
#
# Sources: kernels/reduce.cc (PrepareMeanOrSum, GetQuantProdScaling), kernels/internal/reference/reduce.h
# (QuantizedMeanOrSum, QuantizedReduceProd).


def mean_multiplier(scale_in: float, scale_out: float, count: int) -> Multiplier:
    """The multiplier of the sum of `count` elements in MEAN. ValueError if the ratio of the scales is too large."""
    return divided_multiplier(ratio_multiplier(scale_in, scale_out), count)


def divided_multiplier(multiplier: Multiplier, count: int) -> Multiplier:
    """A multiplier with 1 / count folded in."""
    mantissa, left = multiplier
    folded = min(count.bit_length() - 1, 32, 31 + left)
    return Multiplier((mantissa << folded) // count, left - folded)


def product_scale(scale_in: float, scale_out: float, count: int) -> float:
    """The factor of REDUCE_PROD after each of `count` factors; 0 for infinities and NaN, like their multiplier."""
    scale = quotient(scale_in, scale_out ** (1.0 / count))
    return scale if math.isfinite(scale) else 0.0


def product_bounds(reach: int, scale: float, count: int) -> list[int]:
    """For factors within [-reach, reach]: bounds of what each multiplication by `scale` takes, and of the result."""
    bounds, product = [], float(reach)
    for _ in range(count - 1):
        bounds.append(int(product * reach))
        product = bounds[-1] * scale * (1 + 2.0**-14) + 1  # the multiplier is rounded to 15 bits
    return [*bounds, int(product), int(product * scale * (1 + 2.0**-14) + 1)]


# Scales of the integer SVDF and LSTM kernels, in the float32 they use.
#
#     gate         w * x / 2^-12        Q3.12, or the scale of an intermediate tensor before a layer norm
#     peephole     2^c * w / 2^-12      the product in double; 2^c the scale of the cell state
#     hidden       2^-15 / h * 2^-15    of an output gate times a tanh, both in Q0.15; h the hidden state's scale
#     projection   w * h / s            s the output state's scale
#     SVDF         x * f / s, s * t / y
#
# Gate, projection and SVDF are `fixed_point.float_ratio`. Sources: kernels/unidirectional_sequence_lstm.cc and lstm.cc
# (PopulateQuantizedLstmParams8x8_16), kernels/svdf.cc (Prepare).

GATE_SCALE = 2.0**-12


def peephole_scale(cell_exponent: int, weights: float, gate: float = GATE_SCALE) -> float:
    return float(np.float32(2.0**cell_exponent * float(np.float32(weights)) / float(np.float32(gate))))


def hidden_scale(hidden: float) -> float:
    return float(np.float32(2.0**-15 / float(np.float32(hidden)) * 2.0**-15))


def power_of_two(scale: float) -> int:
    """The exponent of a scale that is a power of two, or nearly. ValueError for another."""
    exponent = checked_log2(scale)
    if exponent is None:
        raise ValueError(f"a cell state's scale must be a power of two, not {scale}")
    return exponent


def clip_bound(clip: float, scale: float, most: int) -> int:
    """A clip in stored integers, 0 for none."""
    return int(min(np.float32(clip) / np.float32(scale), np.float32(most))) if clip > 0 else 0


def scattered_in_turn(places: np.ndarray, rows: int) -> list[np.ndarray]:
    """For each occurrence of a place among those of updates, the first to the last: which update each row takes, or the
    row after them all. One turn, if there are no updates."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    occurrence = np.arange(places.size) - np.searchsorted(ordered, ordered)
    turns = []
    for turn in range(int(occurrence.max(initial=0)) + 1):
        source = np.full(rows, places.size)
        source[ordered[occurrence == turn]] = order[occurrence == turn]
        turns.append(source)
    return turns
