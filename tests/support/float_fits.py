"""Requantizations in float32, fitted to what integers give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tflq.numerics.fixed_point import quantize_multipliers
from tflq.numerics.staircase import rescale_thresholds

Fit = TypeVar("Fit")


def fitted(
    fit: Callable[..., Fit],
    scales: np.ndarray,
    least: int,
    most: int,
    low: np.ndarray,
    high: np.ndarray,
    *more: Any,
    double_round: bool = True,
    **options: Any,
) -> tuple[Fit, np.ndarray, np.ndarray]:
    """What `fit` makes of the levels least ... most around a zero point of 0, on accumulators in [low, high]; and the
    multiplier and shift of each channel."""
    mantissa, left = quantize_multipliers(scales)
    shift = 31 - left.astype(np.int64)
    thresholds = rescale_thresholds(np.arange(least + 1, most + 1), mantissa, shift, double_round=double_round)
    return fit(thresholds, mantissa / 2.0**shift, low, high, *more, **options), mantissa, shift


def drawn(
    seed: int, bits: int, *, smallest: int = 1, largest: int = 8, most: int = 3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scales of 2^(-bits - smallest) to 2^(largest - bits), at most 2^most, and the ends of accumulators of about so
    many bits; of two channels these are of one sign."""
    rng, bound = np.random.default_rng(seed), np.full(8, 1 << bits)
    scales = 2.0 ** rng.uniform(-bits - smallest, min(largest - bits, most), 8)
    low, high = -bound - rng.integers(0, 9, 8), bound + rng.integers(0, 9, 8)
    low[0], high[1] = min(5, high[0]), max(-5, low[1])
    return scales, low, high
