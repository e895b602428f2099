"""The range that values are quantized over, of what samples showed of them: four methods.

    minmax        [min of all samples, max of all samples]
    ema           low = 0.95 low + 0.05 (low of the sample), in the order of the samples, from the first; high likewise
    percentile:P  [quantile 1 - P/100, quantile P/100] of the elements, by the histogram, linear within a bin
    mse           of 100 fractions of [min, max], 0.01 to 1, the one with the least squared error of quantization

Sources: min and max and their moving average as in ai-edge-quantizer (`algorithms/utils/common_utils`, smoothing 0.95);
percentile and mean squared error as in TensorFlow's calibration (`calibration_algorithm.py`, histogram methods), on
bins that do not depend on the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tflq.numerics.histogram import edges

METHODS: Final = ("minmax", "ema", "percentile", "mse")
SMOOTHING: Final = 0.95
_FRACTIONS: Final = np.arange(1, 101) / 100
_PARTS: Final = 4
"""Places in a bin at which the error is measured."""


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
    """The fraction of [low, high], widened to hold 0, whose quantization to so many levels has the least squared error
    on the elements; of several the largest. Elements are taken to be spread evenly over their bins."""
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
