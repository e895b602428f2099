"""Requantizations in float32, fitted to what integers give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tflq.numerics.fixed_point import quantize_multipliers, rescale
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.float_forms import FloatForm
from tflq.numerics.requantize.numpy_ops import NUMPY, NumpyOps
from tflq.numerics.requantize.staircase import rescale_thresholds

Fit = TypeVar("Fit", bound=FloatForm)


def fitted(
    form: type[Fit],
    scales: np.ndarray,
    least: int,
    most: int,
    low: np.ndarray,
    high: np.ndarray,
    *,
    double_round: bool = True,
) -> tuple[Fit | None, np.ndarray, np.ndarray]:
    """A form with the levels least ... most around a zero point of 0, on accumulators in [low, high]; and the
    multiplier and shift of each channel."""
    mantissa, left = quantize_multipliers(scales)
    shift = 31 - left.astype(np.int64)
    thresholds = rescale_thresholds(np.arange(least + 1, most + 1), mantissa, shift, double_round=double_round)
    return form.fit(Climb(thresholds, mantissa / 2.0**shift, low, high, least)), mantissa, shift


def assert_scales_as_integers(
    form: type[Fit],
    seed: int,
    bits: int,
    least: int,
    levels: int,
    *,
    ways: Sequence[NumpyOps] = (NUMPY,),
    double_round: bool = True,
    **drawing: int,
) -> None:
    """The form equals the requantization of integers on every accumulator that is drawn, where it has a proof; without
    one another form is used."""
    scales, low, high = drawn(seed, bits, **drawing)
    fit, mantissa, shift = fitted(form, scales, least, least + levels, low, high, double_round=double_round)
    if fit is None:
        return
    x = np.clip(np.arange(low.min(), high.max() + 1)[:, None], low, high)
    want = np.clip(rescale(x, mantissa, shift, double_round=double_round), least, least + levels)
    for ops in ways:
        np.testing.assert_array_equal(fit(x, ops) + fit.offset(least), want)


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
