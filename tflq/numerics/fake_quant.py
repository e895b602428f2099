"""Fake quantization: reals, rounded to the steps that quantization to a few bits would leave."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflq.light import NamedTuple
from tflq.numerics.tables import FloatFunction

BITS = range(2, 17)
"""The numbers of bits that it is done with."""


class Nudged(NamedTuple):
    """Steps, one of which is 0: real = scale · (step - zero), for steps from `least` to `greatest`."""

    scale: np.ndarray
    zero: np.ndarray
    least: int
    greatest: int

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The reals of the least and the greatest step."""
        of = self.scale.dtype.type
        return (self.least - self.zero).astype(of) * self.scale, (self.greatest - self.zero).astype(of) * self.scale


def nudged(
    minimum: npt.ArrayLike,
    maximum: npt.ArrayLike,
    bits: int,
    *,
    narrow_range: bool = False,
    dtype: npt.DTypeLike = np.float64,
) -> Nudged:
    """The steps between two bounds, or between those of each channel, moved so that 0 is one of them.

        scale = (max - min) / (greatest - least)          least = 1 with narrow_range, else 0; greatest = 2^bits - 1
        zero  = round half away(least - min / scale), clamped to the steps

    `dtype` is what this is computed in: float64 by the converter of TensorFlow Lite, which makes parameters of it
    (rounded to float32 in the file), float32 by kernels. Bounds that are equal, which stand for zeros only, have scale
    1. ValueError unless minimum <= maximum, both are finite, and there are 2 to 16 bits.

    Sources: kernels/internal/quantization_util.cc (NudgeQuantizationRange), FakeQuantSupport.cc
    (getNudgedScaleAndZeroPoint) of TensorFlow's quantization, which has 4 bits for 2 and 3, and 8 for 5 to 7.
    """
    low, high = np.asarray(minimum, dtype), np.asarray(maximum, dtype)
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all() or bits not in BITS:
        raise ValueError(f"min {low.tolist()}, max {high.tolist()} and {bits} bits are not ranges in 2 to 16 bits")
    least, greatest = int(narrow_range), (1 << bits) - 1
    span = np.where(high > low, high - low, low.dtype.type(greatest - least))
    scale = (span / low.dtype.type(greatest - least)).astype(low.dtype)
    place = low.dtype.type(least) - low / scale
    whole = np.trunc(place)
    zero = whole + np.where(np.abs(place - whole) >= 0.5, np.sign(place), low.dtype.type(0))
    return Nudged(scale, np.clip(zero, least, greatest).astype(np.int64), least, greatest)


def fake_quant(minimum: float, maximum: float, bits: int, *, narrow_range: bool = False) -> FloatFunction:
    """FAKE_QUANT of an array, in float32: the nearest of the `nudged` steps. ValueError unless
    minimum <= 0 <= maximum, minimum < maximum and there are 2 to 16 bits.

        low, high = (least - zero) scale, (greatest - zero) scale
        result = round((clamp(x, low, high) - low) (1 / scale)) scale + low

    Sources: kernels/fake_quant.cc, kernels/internal/quantization_util.cc (FakeQuantizeArray). The kernel does not take
    narrow_range: there it is TensorFlow's.
    """
    if not minimum <= 0 <= maximum or minimum == maximum or bits not in BITS:
        raise ValueError(f"min {minimum:g}, max {maximum:g} and {bits} bits are not a range around 0 in 2 to 16 bits")
    f = np.float32
    steps = nudged(minimum, maximum, bits, narrow_range=narrow_range, dtype=f)
    scale, (low, high) = steps.scale, steps.bounds()
    inverse = f(1) / scale

    def function(x: np.ndarray) -> np.ndarray:
        place = (np.minimum(high, np.maximum(low, x.astype(f))) - low) * inverse
        whole = np.trunc(place)
        return np.where(place - whole >= 0.5, whole + f(1), whole) * scale + low

    return function


def simulated(
    x: np.ndarray, minimum: npt.ArrayLike, maximum: npt.ArrayLike, bits: int, *, narrow_range: bool = False
) -> np.ndarray:
    """What TensorFlow's fake_quant ops make of float32: the nearest of the `nudged` steps between bounds, which
    broadcast to x.

        low, high = (least - zero) scale, (greatest - zero) scale
        result = floor((clamp(x, low, high) - low) inverse - floor(1/2 - low inverse) + 1/2) scale
        where inverse = (greatest - least) / (max - min)

    Each step is rounded to float32. TFLite's kernel (`fake_quant`) takes other steps from the bounds on: its
    results differ by the last bits. Source: tensorflow/core/kernels/fake_quant_ops_functor.h.
    """
    f = np.float32
    steps = nudged(minimum, maximum, bits, narrow_range=narrow_range, dtype=f)
    low, high = steps.bounds()
    inverse = f(steps.greatest - steps.least) / (np.asarray(maximum, f) - np.asarray(minimum, f))
    shifted = np.minimum(high, np.maximum(low, np.asarray(x, f))) - low
    return np.asarray(np.floor(shifted * inverse - np.floor(f(0.5) - low * inverse) + f(0.5)) * steps.scale, f)
