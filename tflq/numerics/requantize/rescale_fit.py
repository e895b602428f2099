"""A factor in float as TOSA's RESCALE with one rounding: (x q M + 2^(s-1)) >> s.

Both are staircases (`staircase.py`): they are equal on a range of x if they pass each level at the same
x. With T(n) the threshold of level n, x q M >= (2n - 1) 2^(s-1) must hold at x = T(n) and not at T(n) - 1. Each
bounds M, so the right multipliers are the integers of one interval, which is found exactly. s makes M as large as
31 bits allow. Where the interval has no integer, an odd factor q of x makes the slopes M q / 2^s denser: it is tried
as far as q x fits int32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tflq.numerics.requantize.scaling import Factor

_I31 = (1 << 31) - 1
_BEYOND = 1 << 62  # beyond any product of 31 by 31 bits
_LARGEST_FACTOR = 127
_CHUNK = 1 << 18  # thresholds looked at together: 2 MiB an array


class RescaleFit(NamedTuple):
    """The factors q, multipliers M and shifts s, int64 [C] each."""

    factor: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray


def saturation_bounds(factor: Factor, lows: int, highs: int) -> tuple[int, int]:
    """Bounds beyond which the result, saturated to [lows, highs], is the same as at them."""
    ends = factor.thresholds(np.asarray([lows + 1, highs]))
    return int(ends[0].min()) - 1, int(ends[1].max())


def fit_rescale(factor: Factor, lows: int, highs: int, least: int, most: int) -> RescaleFit | None:
    """The RESCALE by a factor in float for x in [least, most], saturated to [lows, highs].

    None if a channel has none.
    """
    reach = max(-least, most, 1)
    levels = np.arange(lows + 1, highs + 1)
    if reach > _I31 + 1 or not levels.size:
        return None
    count = factor.slope.size
    fit = RescaleFit(*(np.zeros(count, np.int64) for _ in range(3)))
    step = max(1, _CHUNK // levels.size)
    for at in range(0, count, step):
        if not _fit_block(fit, np.arange(at, min(at + step, count)), factor, levels, least, most):
            return None
    return fit


def _fit_block(
    fit: RescaleFit, channels: np.ndarray, factor: Factor, levels: np.ndarray, least: int, most: int
) -> bool:
    """Fills in `channels`; answers whether all of them have a multiplier."""
    scale, thresholds = factor.slope, factor.of_channels(channels).thresholds(levels)
    reach = max(-least, most, 1)
    for times in range(1, _LARGEST_FACTOR + 1, 2):
        if times > 1 and times * reach > _I31:
            return False
        multiplier, shift, exists = _multipliers(levels, thresholds, scale[channels], least, most, times)
        exists &= times * reach <= np.left_shift(np.int64(1), shift - 1)
        done = channels[exists]
        fit.factor[done], fit.multiplier[done], fit.shift[done] = times, multiplier[exists], shift[exists]
        channels, thresholds = channels[~exists], thresholds[:, ~exists]
        if not channels.size:
            return True
    return False


def _multipliers(
    levels: np.ndarray, thresholds: np.ndarray, scale: np.ndarray, least: int, most: int, factor: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The middle of each channel's interval of multipliers, the shift, and whether the interval has an integer."""
    shift = np.clip(31 - np.frexp(scale / factor)[1], 2, 62).astype(np.int64)
    odd = 2 * levels[:, None] - 1
    far = np.abs(odd) > _BEYOND >> (shift - 1)
    border = np.where(far, np.where(odd > 0, _BEYOND, -_BEYOND), np.where(far, 0, odd) << (shift - 1))
    # x M >= border at the first x that reaches the level, x M <= border - 1 at the last that does not
    low, high = _bounds(np.maximum(thresholds, least) * factor, border, thresholds <= most)
    low_too, high_too = _bounds(-np.minimum(thresholds - 1, most) * factor, 1 - border, thresholds > least)
    low, high = np.maximum(low, low_too), np.minimum(high, high_too)
    return (low + high) >> 1, shift, low <= high


def _bounds(x: np.ndarray, border: np.ndarray, holds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest M in 0 .. 2^31 - 1 with x M >= border where `holds`, per column; crossed if none."""
    floor = border // np.where(x == 0, 1, x)
    exact = floor * x == border
    low = np.where(holds & (x > 0), np.where(exact, floor, floor + 1), 0).max(axis=0)
    high = np.where(holds & (x < 0), floor, _I31).min(axis=0)
    never = (holds & (x == 0) & (border > 0)).any(axis=0)
    return np.where(never, _I31 + 1, np.maximum(low, 0)), high
