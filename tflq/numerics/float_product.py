"""Tables of two 8-bit numbers as float32 formulas, proven on all 65,536 pairs: products and sums; products of many; and
sums as XNNPACK rounds them.

MUL, as a function of the product:

    f(x, y) = g((x - a) (y - b))        g a form of a requantization in float32 (`tflq.numerics.requantize`) that holds
                                        with such roundings of sums

The product of two differences is below 2^17, so exact. A table is such a function if its row at a and its column at b
are constant, with the entry of 0, and all entries climb with the product. Where several rows or columns are constant,
as around a for small scales, or on one side of it where a clamp cuts negative products off, the ends and the middle are
tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from tflq.numerics.float_basics import SumRounding, multiply_add
from tflq.numerics.requantize.clamped import ClampedToSix, gains
from tflq.numerics.requantize.climb import Climb, line_slope
from tflq.numerics.requantize.distance import Distance
from tflq.numerics.requantize.falling import Clipped
from tflq.numerics.requantize.float_forms import RELU6, FloatForm
from tflq.numerics.requantize.forms import Form, Ops, X
from tflq.numerics.requantize.numpy_ops import NUMPY
from tflq.numerics.requantize.split import Split

_FORMS: Final[dict[SumRounding, tuple[type[FloatForm], ...]]] = {
    "separate": (ClampedToSix,),
    "either": (Clipped, Split),
    "any": (Distance, Split),
}
"""The forms of a product that hold for roundings of sums, the best one first."""
_COARSE: Final = 7  # these rows and columns tell most tables that do not climb


@dataclass(frozen=True, slots=True)
class Product:
    """A table whose entry at (x, y) climbs with (x - a) (y - b): thresholds T(1) ... T(L) of the product, int64 [L],
    the greatest products below them, its bounds, and about how many levels it climbs per unit."""

    a: int
    b: int
    thresholds: np.ndarray
    below: np.ndarray
    low: int
    high: int
    slope: float


@dataclass(frozen=True, slots=True)
class FloatProduct:
    """f(x, y) = g((x - a) (y - b)) + offset for places x and y of a table."""

    a: int
    b: int
    g: FloatForm
    offset: int = 0

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f of places that broadcast, in float32."""
        product = (x - self.a).astype(np.float32) * (y - self.b).astype(np.float32)
        return self.g(product[..., None])[..., 0] + np.float32(self.offset)


def product_of(table: np.ndarray) -> Product | None:
    """A table of integers [256, 256], the least 0, as a function of a product; None if it is not one."""
    if not table.any():
        return None
    rows, columns = (_some(np.nonzero(np.ptp(table, axis) == 0)[0]) for axis in (1, 0))
    for a in rows:
        for b in columns:
            if _in_order(table[::_COARSE, ::_COARSE], a, b, _COARSE) is not None:
                product = _climbing(table, a, b)
                if product is not None:
                    return product
    return None


def _some(places: np.ndarray) -> list[int]:
    """The middle and the ends of places, and what is next to the ends."""
    return list(dict.fromkeys(int(v) for v in (*places[places.size // 2 :][:1], *places[-3:][::-1], *places[:3])))


def _in_order(table: np.ndarray, a: int, b: int, stride: int) -> tuple[np.ndarray, np.ndarray] | None:
    """The entries and products of every `stride`-th place, in order; None if entries do not climb with the products."""
    places = np.arange(table.shape[0]) * stride
    products = np.multiply.outer(places - a, places - b).ravel()
    order = np.argsort(products, kind="stable")
    level, product = table.ravel()[order], products[order]
    step = np.diff(level)
    return None if (step < 0).any() or (step[np.diff(product) == 0] != 0).any() else (level, product)


def _climbing(table: np.ndarray, a: int, b: int) -> Product | None:
    ordered = _in_order(table, a, b, 1)
    if ordered is None:
        return None
    level, product = ordered
    first = np.searchsorted(level, np.arange(1, int(level[-1]) + 1))
    thresholds, below = product[first], product[first - 1]
    slope = line_slope(thresholds, below)
    if slope is None:
        return None
    return Product(a, b, thresholds, below, int(product[0]), int(product[-1]), slope)


def fit_float_product(table: np.ndarray, product: Product, rounding: SumRounding = "separate") -> FloatProduct | None:
    """f with f(x, y) = table, where `product` is `product_of(table)`, with such rounding of sums; None without a
    proof."""
    slope, low, high = (np.asarray([v]) for v in (product.slope, product.low, product.high))
    climb = Climb(product.thresholds[:, None], slope, low, high, below=product.below[:, None])
    zero = int((product.thresholds <= 0).sum())
    for form in _FORMS[rounding]:
        offset = zero if form.zero_centred else 0
        g = form.fit(climb._replace(bottom=-offset))
        if g is not None:
            break
    else:
        return None
    fit, places = FloatProduct(product.a, product.b, g, offset), np.arange(256)
    if not (fit(places[:, None], places) == table).all():
        raise AssertionError("a product in float32 is not that of the table")
    return fit


def fit_product_table(table: np.ndarray, rounding: SumRounding = "separate") -> FloatProduct | None:
    """`fit_float_product` of a table that is a function of a product; None if it is not."""
    product = product_of(table)
    return None if product is None else fit_float_product(table, product, rounding)


# Scaled and rounded sums of two:
#
#     f(x, y) = floor(gain * relu6(x * m + y * n + c))
#
# as kernels round, one operation after the other, or a product with the sum, too (`tflq.numerics.float_basics`); the
# gain as in `tflq.numerics.requantize.clamped`. A table T is such a function if a plane climbs with it: with levels
# 0 ... L, the plane is at least T(x, y) where that is not 0, and less than T(x, y) + 1 where that is not L. The plane
# with the largest distance to all of these bounds is the solution of a linear program in four unknowns; how products
# are rounded is chance, so several gains are tried. The proof is f of all pairs, in float32.
#
# Source of the method: Stiefel, Über diskrete und lineare Tschebyscheff-Approximationen, 1959 (exchange of one bound
# for the one that is missed most, the dual simplex method).

# These numbers bound the search, not the proof. By docs/decisions/0016 nine of 3,560 models have a plane, five of them
# networks of the zoo: 1 ns for an element, where a table of both takes 4.

_FITTED: Final = 4096  # pairs of least squares, about
_FLAT: Final = 0.75  # levels off, from which on the table is not a plane
_NEAR: Final = 1e-3  # levels, within which rounding decides
_EXCHANGES: Final = 64  # of bounds; most planes take 5 to 20
_CLOSE: Final = 0.05  # levels, within which bounds of a start are looked at first
_ROUNDED: Final = 1e-11  # more than an exchange is rounded by
_TRIED: Final = 64
_ROUNDINGS: Final[tuple[Literal["", "x", "y"], ...]] = ("", "x", "y")


@dataclass(frozen=True, slots=True)
class FloatPlane(Form):
    """f(x, y) = floor(gain * relu6(x * m + y * n + c)), float32 numbers; applied to x * m + y * n."""

    gain: np.float32
    m: np.float32
    n: np.float32
    c: np.float32

    def __call__(self, x: np.ndarray, y: np.ndarray, fused: Literal["", "x", "y"] = "") -> np.ndarray:
        """f of small integers that broadcast in float32; `fused`: the operand whose product is rounded with the sum."""
        (x, m), (y, n) = (x.astype(np.float32), self.m), (y.astype(np.float32), self.n)
        if fused == "y":
            (x, m), (y, n) = (y, n), (x, m)
        return self.apply(multiply_add(x, m, y * n, fused=bool(fused)), NUMPY)

    def apply(self, x: X, ops: Ops[X]) -> X:
        total = ops.clamped(x, ops.row(np.asarray(self.c)), RELU6)
        return ops.floor(ops.mul(total, ops.row(np.asarray(self.gain))))


class _Points(NamedTuple):
    """Pairs of x and y, float64 [N] each, and the bounds of the plane there: from the first to below the second,
    infinite where there is none."""

    x: np.ndarray
    y: np.ndarray
    at_least: np.ndarray
    below: np.ndarray

    @classmethod
    def of(cls, table: np.ndarray, x: np.ndarray, y: np.ndarray) -> _Points:
        level = table.ravel().astype(np.float64)
        x, y = ((v - v.mean()) / 128 for v in (x, y))
        x, y = np.repeat(x, y.size), np.tile(y, x.size)
        return cls(x, y, np.where(level > 0, level, -np.inf), np.where(level < level.max(), level + 1, np.inf))

    def _some(self, places: np.ndarray) -> _Points:
        return _Points(*(v[places] for v in self))

    def slack(self, plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distance of a plane [3] to both bounds, [N] each."""
        m, n, c = plane
        value = self.x * m + (self.y * n + c)
        return value - self.at_least, self.below - value

    def least_squares(self) -> np.ndarray | None:
        """About the plane through the middle of the steps that no end cuts off; None if the table is not a plane."""
        some = np.flatnonzero(self.below - self.at_least == 1)
        if some.size < 3:
            return None
        few = self._some(some[:: max(some.size // _FITTED, 1)])
        rows = np.stack([few.x, few.y, np.ones(few.x.size)], 1)
        plane: np.ndarray = np.linalg.lstsq(rows, few.at_least + 0.5, rcond=None)[0]
        return plane if min(v.min() for v in self.slack(plane)) > 0.5 - _FLAT else None

    def widest(self, start: np.ndarray) -> np.ndarray:
        """The plane with the greatest least distance to the bounds: to those that the start is close to, if it is not
        nearer to any other one."""
        least = np.minimum(*self.slack(start))
        plane, distance = self._some(np.flatnonzero(least < least.min() + _CLOSE))._widest(start)
        others = np.minimum(*self.slack(plane)).min()
        return plane if others > distance - _ROUNDED else self._widest(start)[0]

    def _widest(self, start: np.ndarray) -> tuple[np.ndarray, float]:
        """The plane with the greatest least distance to the bounds, and that distance.

        Four of them decide about a plane: those at the same distance from it, if no move takes it away from all. The
        bound that it is nearest to takes the place of one of these, until none is nearer. The first four are one of
        them, and three that keep the plane near the start.
        """
        row, bound = self._nearest(start)
        sign = np.where(row[:-1] > 0, -1.0, 1.0)
        rows = np.vstack([row, np.pad(np.diag(sign), ((0, 0), (0, 1)))])
        limit = np.append(bound, sign * start - 1)
        for _ in range(_EXCHANGES):
            inverse = np.linalg.inv(rows)
            plane = inverse @ limit
            row, bound = self._nearest(plane[:-1])
            if row @ plane - bound > -_ROUNDED:
                break
            share = row @ inverse
            with np.errstate(divide="ignore", invalid="ignore"):
                place = np.where(share > _ROUNDED, -inverse[-1] / share, np.inf).argmin()
            rows[place], limit[place] = row, bound
        return plane[:-1], float(plane[-1])

    def _nearest(self, plane: np.ndarray) -> tuple[np.ndarray, float]:
        """The bound that a plane is nearest to, as r and b of r . (m, n, c, distance) = b."""
        at_least, below = self.slack(plane)
        i, j = int(at_least.argmin()), int(below.argmin())
        if at_least[i] < below[j]:
            return np.asarray([self.x[i], self.y[i], 1, -1]), float(self.at_least[i])
        return -np.asarray([self.x[j], self.y[j], 1, 1]), -float(self.below[j])


def fit_float_plane(
    table: np.ndarray, x: np.ndarray, y: np.ndarray, rounding: SumRounding = "separate"
) -> FloatPlane | None:
    """f with f(x, y) = table, integers [256, 256], the least 0, for consecutive integers x and y, [256] each, with such
    rounding of sums. None without a proof."""
    levels = int(table.max())
    if levels == 0:
        return None
    pairs = _Points.of(table, x, y)
    plane = pairs.least_squares()
    if plane is None:
        return None
    plane = pairs.widest(plane)
    flat, (m, n) = table.ravel(), plane[:2] / 128
    c = plane[2] - m * x.mean() - n * y.mean()
    near = np.flatnonzero(np.minimum(*map(np.abs, pairs.slack(plane))) < _NEAR)
    i, j = np.divmod(near, y.size)
    roundings = _ROUNDINGS if rounding != "separate" else _ROUNDINGS[:1]
    for gain, _ in zip(gains(RELU6, levels), range(_TRIED), strict=False):
        tried = FloatPlane(gain, *(np.float32(v / float(gain)) for v in (m, n, c)))
        if not all((tried(x[i], y[j], fused) == flat[near]).all() for fused in roundings):
            continue
        if (tried(x[:, None], y[None, :]) == table).all():  # of others no rounding decides
            return tried
    return None


# Products of many integers as sums of logarithms, in int32: REDUCE_PROD where no kernel computes it.
#
#     product of d_i times a scale = sign * 2^(sum of log2 |d_i| s_i)
#
# Each value of the storage type has log2(|d| s) with `bits` behind the point, as many as the sum leaves. The sum's
# upper 16 bits behind the point choose 2^fraction from 65536 entries of 30 bits, and its integer part shifts that
# right. A second sum counts negative factors, and zeros as 2^20 of them. For n factors the result is off by at most
# n 2^-bits / 2 + 2^-17 of itself.

ZERO = 1 << 20
"""The number of negative factors for which a zero counts."""
FRACTION_BITS = 16
MANTISSA_BITS = 29


@dataclass(frozen=True, slots=True)
class LogTable:
    """For each stored value log2 of its magnitude, int32, and 1 if it is negative, `ZERO` if it is zero. `bits`:
    the bits behind the point; `off`: the largest error of the sum of all logarithms."""

    logs: np.ndarray
    signs: np.ndarray
    bits: int
    off: float


def log_table(values: np.ndarray, scales: np.ndarray, count: int) -> LogTable:
    """The table for stored values less their zero points [..., n], each times its scale [..., 1]; `count` of them are
    multiplied."""
    magnitude = np.where(values == 0, 1, np.abs(values)) * scales
    logs = np.where(values == 0, 0.0, np.log2(magnitude))
    bits = min(30 - math.frexp(count * max(float(np.abs(logs).max()), 1.0))[1], 24)
    signs = np.where(values == 0, ZERO, values < 0).astype(np.int32)
    return LogTable(np.rint(np.ldexp(logs, bits)).astype(np.int32), signs, bits, count * 2.0 ** (-bits - 1))


def powers_of_two() -> np.ndarray:
    """2^(f / 65536) * 2^29 for f in 0..65535, int32; the middle of each step."""
    steps = (np.arange(1 << FRACTION_BITS) + 0.5) / (1 << FRACTION_BITS)
    return np.rint(2.0 ** (steps + MANTISSA_BITS)).astype(np.int32)


# Scales with which a sum of dequantized bytes rounds as XNNPACK's kernels round sums of bytes.
#
# XNNPACK takes (a - za) sa/sc + (b - zb) sb/sc with multipliers of 21 bits, and rounds half up: one result for each of
# the 65536 pairs of bytes. ONNX Runtime computes it in float32, with scales in the place of multipliers, and rounds
# half to even. Both differ for few pairs, but a pair that differs can be a frequent one. Scales a few millionths away
# differ for none, or for fewer: those that keep all sums farthest from where the result changes.
#
# Sources: XNNPACK, xnn_init_qs8_add_minmax_scalar_params and the kernels qs8-vadd; ONNX Runtime, MLAS, qladd.cpp.


_BITS: Final = 20
"""XNNPACK's greater multiplier lies in [2^20, 2^21]."""
_LEAST, _BEYOND = 2.0**-10, 2.0**8
"""The ratios of scales that XNNPACK takes."""
_NEAR_TIES: Final = 1 / 256
"""Sums that far from where the result changes stay on their side, whichever of the scales is taken."""
_STEPS: Final = np.linspace(-4e-6, 4e-6, 41)
_SCALES_TRIED: Final = 32
"""So many scales are tried, those first that keep sums farthest away."""


class Byte(NamedTuple):
    """The parameters of a tensor of uint8."""

    scale: float
    zero_point: int


class _Pairs(NamedTuple):
    """All pairs of bytes less their zero points, and XNNPACK's result for each less its own, before it saturates."""

    x: np.ndarray
    y: np.ndarray
    result: np.ndarray
    multipliers: tuple[float, float]


def fitted_scales(a: Byte, b: Byte, out: Byte, *, subtract: bool = False) -> tuple[float, float]:
    """Scales for a and b with which `rounded_sums` gives `xnnpack_sums` for the most pairs; their own if none are
    better."""
    scales_of_operands = a.scale, b.scale
    pairs = _pairs(a, b, out, subtract=subtract)
    if pairs is None:
        return scales_of_operands
    best, fewest = scales_of_operands, _differing(scales_of_operands, pairs, a, b, out, subtract=subtract)
    for scales in _candidates(pairs, out) if fewest else ():
        count = _differing(scales, pairs, a, b, out, subtract=subtract)
        if count < fewest:
            best, fewest = scales, count
        if not fewest:
            break
    return best


def xnnpack_sums(a: Byte, b: Byte, out: Byte, *, subtract: bool = False) -> np.ndarray | None:
    """Results of XNNPACK's kernel for all pairs of bytes, [256, 256]; None for scales that it does not take."""
    pairs = _pairs(a, b, out, subtract=subtract)
    return None if pairs is None else _saturated(pairs.result, out).reshape(256, 256) + out.zero_point


def rounded_sums(a: Byte, b: Byte, out: Byte, *, subtract: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Results of ONNX Runtime for all pairs of bytes, [256, 256]: as one kernel, and as three operators."""
    x, y = _bytes()
    sign = np.float32(-1 if subtract else 1)
    f = np.float32
    first, second = f(a.scale) / f(out.scale), sign * f(b.scale) / f(out.scale)
    fixed = f(out.zero_point) - (first * f(a.zero_point) + second * f(b.zero_point))
    fused = np.rint(fixed + (first * x.astype(f) + second * y.astype(f)))
    real = (x - a.zero_point).astype(f) * f(a.scale) + sign * ((y - b.zero_point).astype(f) * f(b.scale))
    apart = np.rint(real / f(out.scale)) + f(out.zero_point)
    return _bytes_of(fused), _bytes_of(apart)


def _bytes_of(numbers: np.ndarray) -> np.ndarray:
    return np.clip(numbers, 0, 255).astype(np.int64).reshape(256, 256)


def _bytes() -> tuple[np.ndarray, np.ndarray]:
    """All pairs, one after another."""
    x, y = np.indices((256, 256)).reshape(2, -1)
    return x, y


def _pairs(a: Byte, b: Byte, out: Byte, *, subtract: bool) -> _Pairs | None:
    ratios = [np.float32(v.scale) / np.float32(out.scale) for v in (a, b)]
    if not all(_LEAST <= ratio < _BEYOND for ratio in ratios):
        return None
    shift = _BITS - (int(np.frexp(max(ratios))[1]) - 1)
    first, second = (int(np.rint(np.ldexp(np.float64(ratio), shift))) for ratio in ratios)
    second = -second if subtract else second
    x, y = _bytes()
    x, y = x - a.zero_point, y - b.zero_point
    result = (first * x + second * y + (1 << (shift - 1))) >> shift
    return _Pairs(x, y, result, (first * 2.0**-shift, second * 2.0**-shift))


def _saturated(result: np.ndarray, out: Byte) -> np.ndarray:
    return np.clip(result, -out.zero_point, 255 - out.zero_point)


def _differing(scales: tuple[float, float], pairs: _Pairs, a: Byte, b: Byte, out: Byte, *, subtract: bool) -> int:
    """The number of pairs that differ, in either way of ONNX Runtime."""
    wanted = _saturated(pairs.result, out).reshape(256, 256) + out.zero_point
    first, second = Byte(scales[0], a.zero_point), Byte(scales[1], b.zero_point)
    sums = rounded_sums(first, second, out, subtract=subtract)
    return sum(int(np.count_nonzero(each != wanted)) for each in sums)


def _candidates(pairs: _Pairs, out: Byte) -> list[tuple[float, float]]:
    """Scales around XNNPACK's multipliers, in the order of how far all sums stay from where the result changes."""
    first, second = pairs.multipliers
    sums = first * pairs.x + second * pairs.y
    edge = np.floor(sums) + 0.5
    near = (np.abs(sums - edge) < _NEAR_TIES) & (edge > -out.zero_point) & (edge < 255 - out.zero_point)
    x, y, edge = pairs.x[near], pairs.y[near], edge[near]
    side = np.where(pairs.result[near] > edge, 1.0, -1.0)
    row = (first * (1 + _STEPS))[:, None] * x - edge
    margins = np.asarray([((row + second * (1 + step) * y) * side).min(1, initial=1.0) for step in _STEPS])
    order = np.argsort(-margins, axis=None, kind="stable")[:_SCALES_TRIED]
    places = zip(*np.unravel_index(order, margins.shape), strict=True)
    scale = np.float64(out.scale)
    candidates = [(first * (1 + _STEPS[j]) * scale, abs(second) * (1 + _STEPS[i]) * scale) for i, j in places]
    return [(float(np.float32(p)), float(np.float32(q))) for p, q in candidates]


_TIE: Final = 2.0**-17
"""The excess of the scale of a mean over a whole: enough for float32 to round a tie up."""
_MOST: Final = 128
"""Elements of a window in which nothing but ties moves by that: 255 * 2^-17 is less than 1 / (2 * 128)."""


def mean_scale(scale: float, zero_point: int, count: int, *, signed: bool) -> float:
    """The scale with which the mean of a window rounds ties as TFLite's kernel does, next to the zero point.

    The kernel rounds the mean of stored integers: of int8 half away from 0, of uint8 half up. ONNX Runtime rounds that
    of real numbers half to even. With a scale a little greater its ties go away from the zero point, with one a little
    smaller toward it; which of them is the kernel's differs beyond 0, where int8 changes its sign. zero_point: as the
    model stores it. Source: kernels/internal/reference/integer_ops/pooling.h.
    """
    if count % 2 or count > _MOST:
        return scale
    return scale * (1 - _TIE if signed and zero_point < 0 else 1 + _TIE)
