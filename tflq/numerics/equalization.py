"""Factors of channels that bring their ranges to like sizes, where one scale is for all of them.

A channel c of an activation is multiplied by a factor f_c > 0, and the weights that read it are divided by f_c. With
its range r_c and the weights w_oc that read it:

    k_c = max over o of |w_oc| · r_c, over the largest of the k        what comes of the channel, at most
    f_c = √k_c / r_c

Then activation and weights of a channel both have √k_c as their range: neither is rounded to steps that are large
beside it. A depthwise convolution has a scale for each channel of its weights: k_c is 1 there. Where an activation is
read several times, the largest k_c counts. Channels whose range is 0 have the factor with which their weights are not
larger than others. Sources: "Data-Free Quantization Through Weight Equalization and Bias Correction" (arXiv 1906.04721)
with ranges that samples show in place of weights'; "SmoothQuant" (arXiv 2211.10438), equation 4, with α = 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

_WIDEST: Final = 2.0**40
"""Factors stay within this and its reciprocal."""


def relative(ranges: np.ndarray) -> np.ndarray:
    """Ranges of channels over the largest; all 0 where that is 0."""
    largest = ranges.max()
    return ranges / largest if largest > 0 else np.zeros(ranges.shape)


def equalizing_factors(ranges: Sequence[np.ndarray], products: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The factor of each channel: float64, [channels].

    ranges: of each tensor that has the channels. products: of each operator with weights that reads them, the range of
    what it reads, and the largest magnitude of the weights of each channel, over the range of the channel for those
    that have a scale for each.
    """
    reach = np.maximum.reduce([relative(each) for each in ranges])
    shares = [relative(read * weights) for read, weights in products]
    share = np.maximum.reduce(shares) if shares else np.ones(reach.shape)
    alive = (reach > 0) & (share > 0)
    factors = np.ones(reach.shape)
    factors[alive] = np.sqrt(share[alive]) / reach[alive]
    for _, weights in products:
        if alive.any() and (largest := (weights[alive] / factors[alive]).max()) > 0:
            factors = np.where(alive, factors, np.maximum(factors, weights / largest))
    return np.clip(factors, 1 / _WIDEST, _WIDEST)
