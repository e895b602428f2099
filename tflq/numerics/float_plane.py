"""A function of two 8-bit numbers in float32, proven on all 65,536 pairs: sums of two that are scaled and rounded.

    f(x, y) = floor(gain * relu6(x * m + y * n + c))

as kernels round, one operation after the other; the gain as in `tflq.numerics.float_requantize`. A table is
such a function if a plane climbs where it does: with levels 0 ... L, it is at least T(x, y) where that is not 0, and
less than T(x, y) + 1 where that is not L. The plane that keeps the largest distance to all of these bounds is found by
the ellipsoid method, beginning at the one of least squares; how products are rounded is chance, so several gains are
tried. The proof is f of all pairs, in float32.

Source of the method: Grötschel, Lovász, Schrijver, Geometric Algorithms and Combinatorial Optimization, chapter 3.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tflq.light import dataclass
from tflq.numerics.float_requantize import RELU6, gains

__all__ = ["FloatPlane", "fit_float_plane"]

_SEARCH: Final = ((0.03, 90, 8), (0.004, 210, 1))  # levels that a plane may be off, steps, every so-manieth bound
_FLAT: Final = 0.75  # from where on it is too far off for the table to be a plane
_NEAR: Final = 1e-3  # levels, of pairs that rounding decides
_TRIED: Final = 64


@dataclass(frozen=True, slots=True)
class FloatPlane:
    """f(x, y) = floor(gain * relu6(x * m + y * n + c)), float32 numbers."""

    gain: np.float32
    m: np.float32
    n: np.float32
    c: np.float32

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f of small whole numbers that broadcast, operation by operation in float32."""
        total = x.astype(np.float32) * self.m + y.astype(np.float32) * self.n
        total = np.clip(total + self.c, np.float32(RELU6.low), np.float32(RELU6.high))
        return np.floor(total * self.gain)


class _Bounds(NamedTuple):
    """sign * (x m + y n + c - bound) >= 0: rows float64 [N, 3] of (x, y, 1), of numbers between -1 and 1."""

    rows: np.ndarray
    sign: np.ndarray
    bound: np.ndarray

    def slack(self, plane: np.ndarray) -> np.ndarray:
        """The distance to each bound."""
        return self.sign * (self.rows @ plane - self.bound)

    def of(self, some: np.ndarray) -> _Bounds:
        return _Bounds(*(v[some] for v in self))


def fit_float_plane(table: np.ndarray, x: np.ndarray, y: np.ndarray) -> FloatPlane | None:
    """f with f(x, y) = table, whole numbers [256, 256] of which the least is 0, for consecutive whole
    numbers x and y, [256] each. None if there is none that is proven."""
    levels = int(table.max())
    if levels == 0:
        return None
    a, b = np.meshgrid(*((v - v.mean()) / 128 for v in (x, y)), indexing="ij")
    rows = np.stack([a.ravel(), b.ravel(), np.ones(a.size)], 1)
    flat = table.ravel().astype(np.float64)
    start = _least_squares(rows, flat, levels)
    if start is None:
        return None
    above, below = flat > 0, flat < levels
    bounds = _Bounds(
        np.concatenate([rows[above], rows[below]]),
        np.concatenate([np.ones(above.sum()), -np.ones(below.sum())]),
        np.concatenate([flat[above], flat[below] + 1]),
    )
    plane = start
    for radius, steps, stride in _SEARCH:
        slack = bounds.slack(plane)
        near = np.nonzero(slack < slack.min() + 4 * radius)[0][::stride]
        plane = _widest(bounds.of(near), plane, radius, steps)
    m, n = plane[:2] / 128
    c = plane[2] - m * x.mean() - n * y.mean()
    close = np.abs(bounds.slack(plane)) < _NEAR
    near = np.unique(np.concatenate([np.nonzero(above)[0], np.nonzero(below)[0]])[close])
    i, j = np.divmod(near, y.size)
    for gain, _ in zip(gains(RELU6, levels), range(_TRIED), strict=False):
        tried = FloatPlane(gain, *(np.float32(v / float(gain)) for v in (m, n, c)))
        if not (tried(x[i], y[j]) == flat[near]).all():
            continue
        if (tried(x[:, None], y[None, :]) == table).all():
            return tried
    return None


def _least_squares(rows: np.ndarray, flat: np.ndarray, levels: int) -> np.ndarray | None:
    """The plane through the middle of the steps that are not cut off; None if the table is none."""
    inside = (flat > 0) & (flat < levels)
    if inside.sum() < rows.shape[1]:
        return None
    some, middle = rows[inside], flat[inside] + 0.5
    plane: np.ndarray = np.linalg.lstsq(some, middle, rcond=None)[0]
    return plane if np.abs(some @ plane - middle).max() < _FLAT else None


def _widest(bounds: _Bounds, start: np.ndarray, radius: float, steps: int) -> np.ndarray:
    """The plane whose least distance to the bounds is the greatest, within `radius` of `start`, by ellipsoids that hold
    it."""
    centre, best, most = start, start, -np.inf
    shape, size = np.eye(start.size) * radius**2, start.size
    for _ in range(steps):
        slack = bounds.slack(centre)
        worst = int(slack.argmin())
        if slack[worst] > most:
            best, most = centre, slack[worst]
        across = shape @ (bounds.rows[worst] * bounds.sign[worst])
        width = float(np.sqrt(max(across @ (bounds.rows[worst] * bounds.sign[worst]), 0.0)))
        depth = (most - slack[worst]) / width if width > 0 else 1.0
        if depth >= 1:
            break
        across = across / width
        centre = centre + (1 + size * depth) / (size + 1) * across
        cut = 2 * (1 + size * depth) / ((size + 1) * (1 + depth))
        shape = size**2 / (size**2 - 1) * (1 - depth**2) * (shape - cut * np.outer(across, across))
    return best
