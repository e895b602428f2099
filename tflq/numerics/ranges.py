"""Choice of quantization steps: the range of values that samples showed, the scale of constant weights, weights
rounded for their products, and fake quantization.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tflq.numerics.fixed_point import half_away
from tflq.numerics.unary import FloatFunction

if TYPE_CHECKING:
    import numpy.typing as npt

# Histograms of float32 values in bins that do not depend on the values: 32 to each power of two.
#
# A bin holds the floats that have the sign, the exponent and the first five bits of the fraction in common, so that
# its width is 1/32 of the power of two below it. Bins are numbered in the order of their values: 0 holds +0 and the
# smallest positive values, -1 holds -0 and the smallest negative ones. Sums of histograms are exact, in any order.


PER_OCTAVE: Final = 32
_SHIFT: Final = 18  # of 23 bits of a fraction, five remain
_MAGNITUDES: Final = 1 << (31 - _SHIFT)
_PIECE: Final = 1 << 13
FINITE: Final = 255 * PER_OCTAVE
"""Bins from -FINITE up to, but without, FINITE are of finite values."""


def histogram(values: np.ndarray) -> np.ndarray:
    """The counts of float32 values in each bin: int64, the bins of +0 and up, then those of -0 and down. Values
    that are not finite count beyond FINITE in both halves."""
    counts = np.zeros(2 * _MAGNITUDES, np.int64)
    add_histogram(counts, values)
    return counts


def add_histogram(counts: np.ndarray, values: np.ndarray) -> None:
    """Adds the histogram of values to counts, in pieces that stay in the processor's cache."""
    patterns = np.ascontiguousarray(values, np.float32).reshape(-1).view(np.uint32)
    for start in range(0, patterns.size, _PIECE):
        places = (patterns[start : start + _PIECE] >> np.uint32(_SHIFT)).astype(np.intp)
        np.add.at(counts, places, 1)  # of one dim and as it is stored, it goes without buffers


def finite_bins(counts: np.ndarray) -> dict[int, int]:
    """The bins of finite values that are not empty, by number and in order. counts: of `histogram`, or sums of such."""
    ordered = np.concatenate([counts[_MAGNITUDES : _MAGNITUDES + FINITE][::-1], counts[:FINITE]])
    bins = np.flatnonzero(ordered)
    return dict(zip((bins - FINITE).tolist(), ordered[bins].tolist(), strict=True))


def edges(bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of bins, by their numbers, as float64. Both belong to the bin."""
    magnitudes = np.where(bins < 0, -1 - bins, bins).astype(np.uint32)
    near = (magnitudes << np.uint32(_SHIFT)).view(np.float32).astype(np.float64)
    far = ((magnitudes + np.uint32(1)) * np.uint32(1 << _SHIFT) - np.uint32(1)).view(np.float32).astype(np.float64)
    return np.where(bins < 0, -far, near), np.where(bins < 0, -near, far)


# The range that values are quantized over, of what samples showed of them: four methods.
#
#     minmax        [min of all samples, max of all samples]
#     ema           low = 0.95 low + 0.05 (low of the sample), in the order of the samples, from the first; high too
#     percentile:P  [quantile 1 - P/100, quantile P/100] of the elements, by the histogram, linear within a bin
#     mse           of 100 fractions of [min, max], 0.01 to 1, the one with the least squared error of quantization
#
# Sources: min and max and their moving average as in ai-edge-quantizer (`algorithms/utils/common_utils`, smoothing
# 0.95); percentile and mean squared error as in TensorFlow's calibration (`calibration_algorithm.py`, histogram
# methods), on bins that do not depend on the data.


METHODS: Final = ("minmax", "ema", "percentile", "mse")
SMOOTHING: Final = 0.95
DEVIATIONS: Final = 4
"""Of what samples reach to, by so many standard deviations from their mean others may reach further."""
_FRACTIONS: Final = np.arange(1, 101) / 100
_PARTS: Final = 4
"""Places in a bin at which the error is measured."""


def range_before_softmax(
    lows: Sequence[float], highs: Sequence[float], classes: int, levels: int, beta: float = 1.0
) -> tuple[float, float]:
    """The range that counts for e^(beta·x) / Σ e^(beta·x) over classes, from each sample's least and largest.

    It goes up to what is `reached`, and down to where all classes together are less than half a step of a result of so
    many levels, below the largest of any sample.
    """
    return max(min(lows), min(highs) - math.log(2 * levels * classes) / beta), reached(highs)


def reached(ends: Sequence[float]) -> float:
    """The largest number that samples not seen may reach, from the largest of each sample, at least one: `DEVIATIONS`
    standard deviations beyond the mean of these, if that is more than all of them.

    It does not cross 0. A number that several samples reach is a bound, and remains.
    """
    largest, further = max(ends), float(np.mean(ends) + DEVIATIONS * np.std(ends))
    if list(ends).count(largest) > 1:
        return largest
    return max(largest, further if largest > 0 else min(further, 0.0))


def moving_average(lows: Sequence[float], highs: Sequence[float]) -> tuple[float, float]:
    """The moving average of each sample's least and largest. lows, highs: at least one each."""
    low, high = lows[0], highs[0]
    for least, largest in zip(lows[1:], highs[1:], strict=True):
        low, high = (SMOOTHING * old + (1 - SMOOTHING) * new for old, new in ((low, least), (high, largest)))
    return low, high


def percentile(bins: Mapping[int, int], percent: float, low: float, high: float) -> tuple[float, float]:
    """The quantiles 1 - percent/100 and percent/100. bins: numbers of elements, in order. low, high: the least and
    the largest element, beyond which no quantile is."""
    numbers, counts = (np.array(list(side), np.int64) for side in (bins.keys(), bins.values()))
    near, far = edges(numbers)
    ends = np.concatenate([[0], np.cumsum(counts)])
    places = np.array([1 - percent / 100, percent / 100]) * ends[-1]
    at = np.clip(np.searchsorted(ends, places, side="right") - 1, 0, len(counts) - 1)
    values = near[at] + (places - ends[at]) / counts[at] * (far[at] - near[at])
    least, largest = np.clip(values, low, high)
    return float(least), float(largest)


def least_squared_error(bins: Mapping[int, int], levels: int, low: float, high: float) -> tuple[float, float]:
    """The fraction of [low, high], widened to hold 0, whose quantization to so many levels has the least squared
    error. It is the error on the elements; of several fractions the largest. Elements are taken to be spread evenly
    over their bins."""
    low, high = min(low, 0.0), max(high, 0.0)
    if high == low:
        return low, high
    numbers, counts = (np.array(list(side), np.int64) for side in (bins.keys(), bins.values()))
    near, far = edges(numbers)
    parts = (np.arange(_PARTS) + 0.5) / _PARTS
    values = np.clip(near[:, None] + parts * (far - near)[:, None], low, high).reshape(-1)
    weights = np.repeat(counts, _PARTS).astype(np.float64)
    errors = [_error(values, weights, levels, low * fraction, high * fraction) for fraction in _FRACTIONS]
    best = _FRACTIONS[len(errors) - 1 - int(np.argmin(errors[::-1]))]
    return float(low * best), float(high * best)


def _error(values: np.ndarray, weights: np.ndarray, levels: int, low: float, high: float) -> float:
    """The weighted sum of squared errors of quantization over a range that holds 0."""
    scale = (high - low) / (levels - 1)
    lowest = np.rint(low / scale)
    steps = np.clip(np.rint(values / scale), lowest, lowest + levels - 1)
    return float((weights * (steps * scale - values) ** 2).sum())


# The scale that constant weights are stored with, symmetric around 0: three methods.
#
#     minmax  s = max|w| / q, q the largest that is stored
#     mse     of 100 fractions of that, 0.01 to 1, the one with the least Σ (w - s · stored)²
#     octav   s = c / q, c the clip with the least expected squared error:
#             c = Σ{|w| > c} |w| / (4^-bits / 3 · #{|w| <= c} + #{|w| > c}), by iteration from 0
#
# Sources: minmax as in ai-edge-quantizer; octav from "Optimal Clipping and Magnitude-aware Differentiation for
# Improved Quantization-aware Training" (arXiv 2206.06501), equation 6. A clip is never beyond the largest magnitude.


WEIGHT_RANGES: Final = ("minmax", "mse", "octav")
GPTQ: Final = "gptq"
"""The range of mse, and weights rounded by what they are multiplied with."""
RECONSTRUCT: Final = "reconstruct"
"""The range of mse, and weights fitted to what they are multiplied with (`numerics.reconstruction`)."""
WEIGHT_METHODS: Final = (*WEIGHT_RANGES, GPTQ, RECONSTRUCT)
_CLIPS: Final = np.arange(100, 0, -1) / 100
_STEPS: Final = 100
"""Iterations of octav at most; it settles in about ten."""
_LEAST: Final = 1e-9
"""The least magnitude, so that weights that are all 0 have a scale."""


def clips(weights: np.ndarray, axes: tuple[int, ...], bits: int, method: str) -> np.ndarray:
    """The magnitude that the largest stored number stands for, of all weights along some axes: float64, with dims of 1
    in their places. bits: what weights are stored in, 2, 4 or 8. method: of `WEIGHT_METHODS`."""
    magnitudes = np.abs(weights.astype(np.float64))
    largest = magnitudes.max(axis=axes, keepdims=True)
    if method in ("mse", GPTQ, RECONSTRUCT):
        largest = _least_squared_error(weights.astype(np.float64), largest, axes, bits)
    elif method == "octav":
        largest = np.minimum(_optimal_clip(magnitudes, axes, bits), largest)
    return np.maximum(largest, _LEAST)


def stored_weights(weights: np.ndarray, scales: np.ndarray, bits: int) -> np.ndarray:
    """Weights of few bits as int8: round half even(w / s) in float32, clamped to [-2, 1] for 2 bits, to [-8, 7] for 4,
    to [-127, 127] for 8."""
    least, largest = bounds(bits)
    return np.clip(np.rint(weights / scales.astype(np.float32)), least, largest).astype(np.int8)


def bounds(bits: int) -> tuple[int, int]:
    """The least and the largest number that is stored. Kernels of 8 bits count on -128 not being there."""
    largest = (1 << (bits - 1)) - 1
    return (-largest if bits == 8 else -largest - 1), largest


def block_scales(scales: np.ndarray) -> np.ndarray:
    """Scales of blocks, float16 with 8 bits of precision: rounded to bfloat16, half to even, then to float16."""
    raw = np.clip(scales, np.finfo(np.float16).tiny, np.finfo(np.float16).max).astype(np.float32).view(np.uint32)
    rounded = (raw + np.uint32(0x7FFF) + ((raw >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.minimum(rounded.view(np.float32), np.float32(65280)).astype(np.float16)


def _least_squared_error(weights: np.ndarray, largest: np.ndarray, axes: tuple[int, ...], bits: int) -> np.ndarray:
    low, high = bounds(bits)
    best, least = largest, np.full(largest.shape, np.inf)
    for fraction in _CLIPS:
        scale = np.maximum(largest * fraction, _LEAST) / high
        steps = np.clip(np.rint(weights / scale), low, high)
        error = ((steps * scale - weights) ** 2).sum(axis=axes, keepdims=True)
        best = np.where(error < least, largest * fraction, best)
        least = np.minimum(error, least)
    return best


def _optimal_clip(magnitudes: np.ndarray, axes: tuple[int, ...], bits: int) -> np.ndarray:
    weight = 4.0**-bits / 3
    clip = np.zeros_like(magnitudes.max(axis=axes, keepdims=True))
    for _ in range(_STEPS):
        beyond = magnitudes > clip
        total = np.where(beyond, magnitudes, 0).sum(axis=axes, keepdims=True)
        count = beyond.sum(axis=axes, keepdims=True)
        inside = (~beyond).sum(axis=axes, keepdims=True)
        updated = total / (weight * inside + count)
        if np.array_equal(updated, clip):
            break
        clip = updated
    return clip


# Weights that are rounded so that products, not the weights themselves, are near: by second moments of what they are
# multiplied with.
#
# Of a row of weights w that is stored as numbers q of scale s, and inputs x with M = Σ x xᵀ, the products are off by
# (w - s q)ᵀ M (w - s q) in all. Columns are rounded in order, and what each is off by is made up for by those behind
# it:
#
#     U = upper Cholesky factor of (M + λ I)⁻¹, UᵀU of it; λ = 0.01 · mean of the diagonal of M
#     q_i = round half even(w_i / s), clamped;  e = (w_i - s q_i) / U_ii;  w_j -= e U_ij for j > i
#
# Source: "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers" (arXiv 2210.17323),
# algorithm 1.


DAMPING: Final = 0.01
_BLOCK: Final = 128
"""Columns after which the ones behind them are corrected at once."""


def compensated_weights(weights: np.ndarray, scales: np.ndarray, moments: np.ndarray, bits: int) -> np.ndarray:
    """Weights as int8, each column made up for by those behind it. weights: [..., rows, columns]. scales:
    [..., rows, 1], or of each weight. moments: [..., columns, columns], float64. bits: 2, 4 or 8."""
    inverse = _factor(moments)
    left = weights.astype(np.float64)
    scales = np.broadcast_to(scales, weights.shape)
    stored = np.empty(weights.shape, np.int8)
    columns = weights.shape[-1]
    for start in range(0, columns, _BLOCK):
        end = min(start + _BLOCK, columns)
        errors = np.zeros((*weights.shape[:-1], end - start))
        for column in range(start, end):
            steps = scales[..., column, None]
            each = stored_weights(left[..., column, None], steps, bits)
            error = left[..., column, None] - each * steps.astype(np.float64)
            error /= inverse[..., column, column][..., None, None]
            left[..., column:end] -= error * inverse[..., column, None, column:end]
            errors[..., column - start], stored[..., column] = error[..., 0], each[..., 0]
        left[..., end:] -= errors @ inverse[..., start:end, end:]
    return stored


def error_of_products(differences: np.ndarray, moments: np.ndarray) -> float:
    """Σ of the squared errors of all products whose weights differ by [rows, columns] from the right ones."""
    apart = differences.astype(np.float64)
    return float(((apart @ moments) * apart).sum())


def _factor(moments: np.ndarray) -> np.ndarray:
    """U of the inverse; the identity, with which nothing is made up for, if nothing was seen but zeros."""
    inverse = np.linalg.inv(damped(moments))
    return np.swapaxes(np.linalg.cholesky((inverse + np.swapaxes(inverse, -1, -2)) / 2), -1, -2)


def damped(moments: np.ndarray) -> np.ndarray:
    """Moments with a share of the mean of their diagonal added to it, so that they have an inverse."""
    size = moments.shape[-1]
    damping = DAMPING * np.trace(moments, axis1=-2, axis2=-1) / size
    return moments + np.where(damping > 0, damping, 1.0)[..., None, None] * np.eye(size)


# Fake quantization: reals, rounded to the steps that quantization to a few bits would leave.


BITS = range(2, 17)
"""The numbers of bits that it is done with."""


class Nudged(NamedTuple):
    """Steps, one of which is 0: real = scale · (step - zero), for steps from `least` to `greatest`."""

    scale: np.ndarray
    zero: np.ndarray
    least: int
    greatest: int

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The reals of the least and the greatest step."""
        of = self.scale.dtype.type
        return (self.least - self.zero).astype(of) * self.scale, (self.greatest - self.zero).astype(of) * self.scale


def nudged(
    minimum: npt.ArrayLike,
    maximum: npt.ArrayLike,
    bits: int,
    *,
    narrow_range: bool = False,
    dtype: npt.DTypeLike = np.float64,
) -> Nudged:
    """The steps between two bounds, or between those of each channel, moved so that 0 is one of them.

        scale = (max - min) / (greatest - least)          least = 1 with narrow_range, else 0; greatest = 2^bits - 1
        zero  = round half away(least - min / scale), clamped to the steps

    `dtype` is what this is computed in: float64 by the converter of TensorFlow Lite, which makes parameters of it
    (rounded to float32 in the file), float32 by kernels. Bounds that are equal, which stand for zeros only, have scale
    1. ValueError unless minimum <= maximum, both are finite, and there are 2 to 16 bits.

    Sources: kernels/internal/quantization_util.cc (NudgeQuantizationRange), FakeQuantSupport.cc
    (getNudgedScaleAndZeroPoint) of TensorFlow's quantization, which has 4 bits for 2 and 3, and 8 for 5 to 7.
    """
    low, high = np.asarray(minimum, dtype), np.asarray(maximum, dtype)
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all() or bits not in BITS:
        raise ValueError(f"min {low.tolist()}, max {high.tolist()} and {bits} bits are not ranges in 2 to 16 bits")
    least, greatest = int(narrow_range), (1 << bits) - 1
    span = np.where(high > low, high - low, low.dtype.type(greatest - least))
    scale = (span / low.dtype.type(greatest - least)).astype(low.dtype)
    zero = half_away(low.dtype.type(least) - low / scale)
    return Nudged(scale, np.clip(zero, least, greatest).astype(np.int64), least, greatest)


def fake_quant(minimum: float, maximum: float, bits: int, *, narrow_range: bool = False) -> FloatFunction:
    """FAKE_QUANT of an array, in float32: the nearest of the `nudged` steps. ValueError unless
    minimum <= 0 <= maximum, minimum < maximum and there are 2 to 16 bits.

        low, high = (least - zero) scale, (greatest - zero) scale
        result = round((clamp(x, low, high) - low) (1 / scale)) scale + low

    Sources: kernels/fake_quant.cc, kernels/internal/quantization_util.cc (FakeQuantizeArray). The kernel does not take
    narrow_range: there it is TensorFlow's.
    """
    if not minimum <= 0 <= maximum or minimum == maximum or bits not in BITS:
        raise ValueError(f"min {minimum:g}, max {maximum:g} and {bits} bits are not a range around 0 in 2 to 16 bits")
    f = np.float32
    steps = nudged(minimum, maximum, bits, narrow_range=narrow_range, dtype=f)
    scale, (low, high) = steps.scale, steps.bounds()
    inverse = f(1) / scale

    def function(x: np.ndarray) -> np.ndarray:
        return half_away((np.minimum(high, np.maximum(low, x.astype(f))) - low) * inverse) * scale + low

    return function


def simulated(
    x: np.ndarray, minimum: npt.ArrayLike, maximum: npt.ArrayLike, bits: int, *, narrow_range: bool = False
) -> np.ndarray:
    """Results of TensorFlow's fake_quant ops for float32: the nearest of the `nudged` steps between bounds, which
    broadcast to x.

        low, high = (least - zero) scale, (greatest - zero) scale
        result = floor((clamp(x, low, high) - low) inverse - floor(1/2 - low inverse) + 1/2) scale
        where inverse = (greatest - least) / (max - min)

    Each step is rounded to float32. TFLite's kernel (`fake_quant`) takes other steps from the bounds on: its
    results differ by the last bits. Source: tensorflow/core/kernels/fake_quant_ops_functor.h.
    """
    f = np.float32
    steps = nudged(minimum, maximum, bits, narrow_range=narrow_range, dtype=f)
    low, high = steps.bounds()
    inverse = f(steps.greatest - steps.least) / (np.asarray(maximum, f) - np.asarray(minimum, f))
    shifted = np.minimum(high, np.maximum(low, np.asarray(x, f))) - low
    return np.asarray(np.floor(shifted * inverse - np.floor(f(0.5) - low * inverse) + f(0.5)) * steps.scale, f)
