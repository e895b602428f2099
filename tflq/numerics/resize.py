"""Resized images: the rows and columns that each output comes from, in TFLite's arithmetic and in TOSA's.

TOSA's RESIZE puts output o at position (o * d + offset) / n of the input. With i = floor(position) and the fraction
f = o * d + offset - i * n:

    BILINEAR          x[max(i, 0)] * (n - f) + x[min(i + 1, size - 1)] * f        not divided by n
    NEAREST_NEIGHBOR  x[2 * f >= n ? min(i + 1, size - 1) : max(i, 0)]

TFLite's integer RESIZE_BILINEAR (int8, int16) is the same with n = 1024 and d = the ratio of the sizes in 1/1024,
rounded. Its float one (uint8) and RESIZE_NEAREST_NEIGHBOR find positions in float32. `uint8_is_rational` says where
the former is RESIZE by the ratio itself, divided by n_y * n_x and rounded half up: where its float32 operations are
exact, or where no value is so near the middle of two integers that the float error could take it to the other side.

Sources: kernels/internal/reference/resize_bilinear.h, kernels/internal/reference/resize_nearest_neighbor.h, TOSA 1.0
specification, RESIZE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

_EXACT_PARTS = 1 << 14
"""The most of which a weight may be one, for its product by a difference of 8-bit numbers to have 24 bits at most."""
_FLOAT_ERROR = 10 * 2.0**-24
"""Bounds the relative error of a float32 sum of four products of an integer and two rounded differences, plus 1/2."""


class Sampling(NamedTuple):
    """Sampling of one spatial dim: output o is at (o * d + offset) / n."""

    n: int
    d: int
    offset: int

    def border(self, size: int, out: int) -> int:
        """TOSA's border: how far the last sample is beyond the last element, in 1/n. It must be less than n."""
        return (out - 1) * self.d + self.offset - (size - 1) * self.n


def steps_of(scale: Sequence[int], offset: Sequence[int]) -> tuple[Sampling, Sampling]:
    """The steps of rows and columns of TOSA's attributes: scale is y_n, y_d, x_n, x_d; offset is y, x."""
    return Sampling(scale[0], scale[1], offset[0]), Sampling(scale[2], scale[3], offset[1])


def within_tosa(steps: Sampling, size: int, out: int, *, level: bool = True) -> bool:
    """Whether TOSA's RESIZE takes such steps; `level`: at level 8k, which limits the ratio of the sizes to 256."""
    n, d, offset = steps
    border = steps.border(size, out)
    allowed = n <= 2048 and d < 16 * n and -n <= offset < 16 * n and -16 * n <= border < n
    return allowed and not (level and n > 256 * d)


class Taps(NamedTuple):
    """The two input indices of each output, and the fraction of the upper one: in 1/n, or as float32."""

    lower: np.ndarray
    upper: np.ndarray
    fraction: np.ndarray


def taps(steps: Sampling, size: int, out: int) -> Taps:
    """The elements of `size` and the fractions that TOSA's RESIZE reads for each of `out`."""
    position = np.arange(out, dtype=np.int64) * steps.d + steps.offset
    index = position // steps.n
    lower, upper = np.maximum(index, 0).astype(np.int32), np.clip(index + 1, 0, size - 1).astype(np.int32)
    return Taps(lower, upper, (position - index * steps.n).astype(np.int32))


def is_copy(steps: Sampling, size: int, out: int) -> bool:
    """Whether each output is one element: BILINEAR, divided by n, is what NEAREST_NEIGHBOR takes."""
    lower, upper, fraction = taps(steps, size, out)
    return bool(((fraction == 0) | (lower == upper)).all())


def nearest_index(steps: Sampling, size: int, out: int) -> np.ndarray:
    """The element that TOSA's RESIZE takes for each output in mode NEAREST_NEIGHBOR."""
    lower, upper, fraction = taps(steps, size, out)
    return np.where(2 * fraction >= steps.n, upper, lower)


def integer_steps(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Sampling | None:
    """The steps of the integer RESIZE_BILINEAR; None where it would read beyond the last element."""
    long, short = (size - 1, out - 1) if align_corners and out > 1 else (size, out)
    d = (1024 * long + short // 2) // short
    steps = Sampling(1024, max(d, 1), d // 2 - 512 if half_pixel_centers else 0)
    return steps if steps.border(size, out) < steps.n else None


def rational_steps(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Sampling:
    """The ratio of the sizes itself, in lowest terms."""
    if align_corners and out > 1:
        n, d, offset = out - 1, size - 1, 0
    elif half_pixel_centers:
        n, d, offset = 2 * out, 2 * size, size - out
    else:
        n, d, offset = out, size, 0
    if not d:
        return Sampling(1 << (out - 1).bit_length(), 1, 0)  # one element: any position before the next one
    common = math.gcd(n, d, offset)
    return Sampling(n // common, d // common, offset // common)


def nearest_steps(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Sampling | None:
    """The steps of RESIZE_NEAREST_NEIGHBOR; None where float32 finds other elements, or TOSA forbids the border.

    Without `align_corners` the index is rounded down, which is TOSA's rounding half an element earlier.
    """
    long, short = (size - 1, out - 1) if align_corners and out > 1 else (size, out)
    offset = (long if half_pixel_centers else 0) - (0 if align_corners else short)
    common = math.gcd(2 * short, 2 * long, offset)
    steps = Sampling(2 * short // common, max(2 * long // common, 1), offset // common)
    if steps.border(size, out) >= steps.n:
        return None
    index = float_nearest_index(size, out, align_corners, half_pixel_centers)
    return steps if np.array_equal(index, nearest_index(steps, size, out)) else None


def _float_scale(size: int, out: int, align_corners: bool) -> np.float32:
    long, short = (size - 1, out - 1) if align_corners and out > 1 else (size, out)
    return np.float32(long) / np.float32(short)


def float_nearest_index(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """The element that RESIZE_NEAREST_NEIGHBOR takes for each output."""
    f = np.float32
    position = (np.arange(out).astype(f) + f(0.5 if half_pixel_centers else 0)) * _float_scale(size, out, align_corners)
    whole = np.floor(position)
    rounded = whole + (position - whole >= f(0.5)) if align_corners else whole
    return np.minimum(rounded, size - 1).astype(np.int32)


def float_taps(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """The elements and fractions of the float RESIZE_BILINEAR, every step in float32 as there; `lower` weighs 1 -
    fraction."""
    position = _float_positions(size, out, align_corners, half_pixel_centers)
    lower = np.maximum(np.floor(position).astype(np.int32), 0)
    upper = np.minimum(np.ceil(position).astype(np.int32), size - 1)
    return Taps(lower, upper, position - lower.astype(np.float32))


def _float_positions(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    f = np.float32
    scale, index = _float_scale(size, out, align_corners), np.arange(out).astype(f)
    return (index + f(0.5)) * scale - f(0.5) if half_pixel_centers else index * scale


class FloatKernel(NamedTuple):
    """Options of the float RESIZE_BILINEAR; its results are whole numbers of parts, of which `parts` are 1."""

    align_corners: bool
    half_pixel_centers: bool
    parts: int


def float_kernel(
    steps: Sequence[Sampling], source: Sequence[int | None], out: Sequence[int | None]
) -> FloatKernel | None:
    """The float RESIZE_BILINEAR that takes just these steps of rows and columns, given the sizes of source and result:
    positions are exact in float32 in whatever way they are computed, and so are sums of 8-bit numbers times weights.
    None if there is none."""
    lowest = [_in_lowest_terms(each) for each in steps]
    parts = math.prod(each.n for each in lowest)
    if parts & (parts - 1) or parts > _EXACT_PARTS:
        return None
    for flags in ((False, False), (True, False), (False, True)):
        candidate = [rational_steps(size or 0, count or 0, *flags) for size, count in zip(source, out, strict=True)]
        if candidate == lowest:
            return FloatKernel(*flags, parts)
    return None


def _in_lowest_terms(steps: Sampling) -> Sampling:
    common = math.gcd(*steps)
    return Sampling(*(v // common for v in steps))


def uint8_is_rational(
    size: tuple[int, int], out: tuple[int, int], align_corners: bool, half_pixel_centers: bool
) -> bool:
    """Whether the uint8 RESIZE_BILINEAR is (RESIZE by `rational_steps` + n_y * n_x / 2) // (n_y * n_x)."""
    rows, columns = (_Fractions.of(s, o, align_corners, half_pixel_centers) for s, o in zip(size, out, strict=True))
    if rows.q.size * columns.q.size > _MOST_PAIRS:
        return False
    return all(_are_rational(rows.of_rows(at), columns) for at in range(0, rows.q.size, _ROWS_AT_ONCE))


def _are_rational(rows: _Fractions, columns: _Fractions) -> bool:
    exact = rows.exact[:, None] & columns.exact & (rows.bits[:, None] + columns.bits <= 14)
    q = rows.q[:, None] * columns.q
    error = rows.weight[:, None] * columns.weight * _FLOAT_ERROR
    error += rows.error[:, None] * columns.weight + columns.error * rows.weight[:, None]
    apart = (q % 2 == 1) & (
        2 * 256 * q * error < 1
    )  # every value is at least 1 / (2 q) from the middle of two integers
    return bool((exact | apart).all())


_MOST_PAIRS: Final = 1 << 24
"""Elements of a plane for which that is looked for."""
_ROWS_AT_ONCE: Final = 64


class _Fractions:
    """Per output of one dim, how the float kernel's weights compare with the ratio's."""

    __slots__ = ("bits", "error", "exact", "q", "weight")

    def __init__(
        self, q: np.ndarray, bits: np.ndarray, exact: np.ndarray, error: np.ndarray, weight: np.ndarray
    ) -> None:
        self.q: Final = q  # the denominator of the ratio's weights
        self.bits: Final = bits  # the bits of the float weights' denominator, where they are exact
        self.exact: Final = exact  # whether the float position has no error and its denominator is a power of two
        self.error: Final = error  # the error of the float position, within the input
        self.weight: Final = weight  # the sum of the absolute values of both float weights

    def of_rows(self, at: int) -> _Fractions:
        """The fractions of some outputs."""
        these = slice(at, at + _ROWS_AT_ONCE)
        return _Fractions(*(v[these] for v in (self.q, self.bits, self.exact, self.error, self.weight)))

    @classmethod
    def of(cls, size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> _Fractions:
        steps = rational_steps(size, out, align_corners, half_pixel_centers)
        position = np.arange(out, dtype=np.int64) * steps.d + steps.offset
        inside = np.clip(position, 0, (size - 1) * steps.n)
        float_position = _float_positions(size, out, align_corners, half_pixel_centers).astype(np.float64)
        denominator = steps.n // np.gcd(position, steps.n)
        bits = np.round(np.log2(denominator)).astype(np.int64)
        fraction = float_taps(size, out, align_corners, half_pixel_centers).fraction.astype(np.float64)
        return cls(
            q=steps.n // np.gcd(inside, steps.n),
            bits=bits,
            exact=(denominator == np.int64(1) << bits) & (float_position * steps.n == position),
            error=np.abs(np.clip(float_position, 0, size - 1) - inside / steps.n),
            weight=np.abs(1 - fraction) + np.abs(fraction),
        )
