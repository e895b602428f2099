"""Sums of products of integers in float32: exact in any order while no partial sum reaches 2^24.

A partial sum has some of the products and not the others. For inputs in [low, high] let the positive weights add up
to p, and the negative ones to n. Then

    min(low, 0) p + max(high, 0) n  <=  any partial sum  <=  max(high, 0) p + min(low, 0) n

and a bias is in it or not. Inputs of one sign reach about half as far as their magnitudes suggest.
"""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from tflq.light import NamedTuple

EXACT: Final = 1 << 24
"""Integers below it in magnitude are exact in float32."""

_MOST_RUNS: Final = 32


class ProductBounds(NamedTuple):
    """The least and the most that each input adds to partial sums of each output, float64 [O, I] each."""

    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, positive: np.ndarray, negative: np.ndarray, low: int, high: int) -> ProductBounds:
        """From sums of weights by sign [O, I], and for inputs in [low, high]."""
        below, above = min(low, 0), max(high, 0)
        return cls(positive * below + negative * above, positive * above + negative * below)

    def runs(self, bias: np.ndarray | float = 0.0) -> list[slice] | None:
        """The fewest runs of inputs whose partial sums are all exact; the first run has the bias [O], too. None if
        there are too many."""
        ends = self.least.sum(1) + np.minimum(bias, 0), self.most.sum(1) + np.maximum(bias, 0)
        if self.least.shape[1] and max(-ends[0].min(initial=0), ends[1].max(initial=0)) < EXACT:
            return [slice(0, self.least.shape[1])]
        least, most = (np.concatenate([np.zeros((v.shape[0], 1)), np.cumsum(v, 1)], 1) for v in self)
        first, inputs = np.asarray(bias, np.float64), self.least.shape[1]
        for count in range(1, min(inputs, _MOST_RUNS) + 1):
            edges = [inputs * i // count for i in range(count + 1)]
            below, above = np.diff(least[:, edges], axis=1), np.diff(most[:, edges], axis=1)
            below[:, 0] += np.minimum(first, 0)
            above[:, 0] += np.maximum(first, 0)
            if max(-below.min(initial=0), above.max(initial=0)) < EXACT:
                return [slice(a, b) for a, b in itertools.pairwise(edges)]
        return None
