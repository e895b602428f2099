"""Scales with which a sum of dequantized bytes rounds as XNNPACK's kernels round sums of bytes.

XNNPACK takes (a - za) sa/sc + (b - zb) sb/sc with multipliers of 21 bits, and rounds half up: one result for each of
the 65536 pairs of bytes. ONNX Runtime computes it in float32, with scales in the place of multipliers, and rounds half
to even. Both differ for few pairs, but a pair that differs can be a frequent one. Scales a few millionths away differ
for none, or for fewer: those that keep all sums farthest from where the result changes.

Sources: XNNPACK, xnn_init_qs8_add_minmax_scalar_params and the kernels qs8-vadd; ONNX Runtime, MLAS, qladd.cpp.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.light import NamedTuple

_BITS: Final = 20
"""XNNPACK's greater multiplier lies in [2^20, 2^21]."""
_LEAST, _BEYOND = 2.0**-10, 2.0**8
"""The ratios of scales that XNNPACK takes."""
_NEAR: Final = 1 / 256
"""Sums that far from where the result changes stay on their side, whichever of the scales is taken."""
_STEPS: Final = np.linspace(-4e-6, 4e-6, 41)
_TRIED: Final = 32
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
    own = a.scale, b.scale
    pairs = _pairs(a, b, out, subtract=subtract)
    if pairs is None:
        return own
    best, fewest = own, _differing(own, pairs, a, b, out, subtract=subtract)
    for scales in _candidates(pairs, out) if fewest else ():
        count = _differing(scales, pairs, a, b, out, subtract=subtract)
        if count < fewest:
            best, fewest = scales, count
        if not fewest:
            break
    return best


def xnnpack_sums(a: Byte, b: Byte, out: Byte, *, subtract: bool = False) -> np.ndarray | None:
    """What XNNPACK's kernel gives for all pairs of bytes, [256, 256]; None for scales that it does not take."""
    pairs = _pairs(a, b, out, subtract=subtract)
    return None if pairs is None else _saturated(pairs.result, out).reshape(256, 256) + out.zero_point


def rounded_sums(a: Byte, b: Byte, out: Byte, *, subtract: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """What ONNX Runtime gives for all pairs of bytes, [256, 256]: as one kernel, and as three operators."""
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
    """How many pairs differ, in either way of ONNX Runtime."""
    wanted = _saturated(pairs.result, out).reshape(256, 256) + out.zero_point
    first, second = Byte(scales[0], a.zero_point), Byte(scales[1], b.zero_point)
    made = rounded_sums(first, second, out, subtract=subtract)
    return sum(int(np.count_nonzero(each != wanted)) for each in made)


def _candidates(pairs: _Pairs, out: Byte) -> list[tuple[float, float]]:
    """Scales around XNNPACK's multipliers, in the order of how far all sums stay from where the result changes."""
    first, second = pairs.multipliers
    sums = first * pairs.x + second * pairs.y
    edge = np.floor(sums) + 0.5
    near = (np.abs(sums - edge) < _NEAR) & (edge > -out.zero_point) & (edge < 255 - out.zero_point)
    x, y, edge = pairs.x[near], pairs.y[near], edge[near]
    side = np.where(pairs.result[near] > edge, 1.0, -1.0)
    row = (first * (1 + _STEPS))[:, None] * x - edge
    margins = np.asarray([((row + second * (1 + step) * y) * side).min(1, initial=1.0) for step in _STEPS])
    order = np.argsort(-margins, axis=None, kind="stable")[:_TRIED]
    places = zip(*np.unravel_index(order, margins.shape), strict=True)
    scale = np.float64(out.scale)
    found = [(first * (1 + _STEPS[j]) * scale, abs(second) * (1 + _STEPS[i]) * scale) for i, j in places]
    return [(float(np.float32(p)), float(np.float32(q))) for p, q in found]


_TIE: Final = 2.0**-17
"""How much more than a whole the scale of a mean is: enough for float32 to round a tie up."""
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
