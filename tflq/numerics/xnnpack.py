"""The kernels of the XNNPACK delegate, as ai-edge-litert 2.3 has them, and TFLite's optimized kernels beside it.

Products of scales are in float32 (fl), and so is the factor of a sum, which rounds halves to even:

    CONV_2D and its kin, BATCH_MATMUL    rint(fl(acc) S), S = fl(fl(sx sw) / so)
    MUL                                  the same, S = fl(fl(s1 s2) / so)
    ADD, SUB      (2^(k - 1) + a (x - z1) + b (y - z2)) >> k, a = rint(2^k fl(s1 / so)), k = 20 - exponent of the larger
    LEAKY_RELU    (d m + 128) >> 8, m = rint(256 fl(s / so)), below zero rint(256 fl(fl(s / so) alpha))
    QUANTIZE      of the same type as LEAKY_RELU above zero; of floats rint(x fl(1 / so))
    MEAN, SUM     rint(fl(fl(sum) S) + Z), of stored integers, S = fl(s / so) or fl(fl(s / so) fl(1 / n)),
                  Z = fl(zo - fl(fl(n zi) S))
    LOGISTIC, TANH, ELU    a table, rint(fl(f fl(1 / so)) + zo)
    RESIZE_BILINEAR        two interpolations with weights rint(2048 fraction), (v + 2^21) >> 22
    activations            rint(clamp(fl(fl(bound / so) + zo)))
    ADD of int16           optimized: in groups of 16 elements, operands (((x << 15) m >> e) 2 + 2^31) >> 32; others as
                           the reference kernel

On arm64, MUL and convolutions of uint8 have a multiplier of 24 bits and round once, half up; on Cortex-A53, those but
depthwise ones, and FULLY_CONNECTED of uint8, have one of 15 bits and round twice. Sources: XNNPACK,
src/operators and src/microparams-init.c; tflite/delegates/xnnpack/xnnpack_delegate.cc. Measured: 5,264 models, 43
million elements.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tflq.numerics.activation import BOUNDS, Leaky
from tflq.numerics.elementwise import Addition
from tflq.numerics.fixed_point import Multiplier
from tflq.numerics.reference import FixedTaps, KernelSet, Parameters, Reference24, Slopes, WeightedSum
from tflq.numerics.requantize.scaling import Factor, FixedPoint, Float32, Shortened
from tflq.numerics.unary import FloatFunction, logistic

f = np.float32
LARGEST_FACTOR: Final = 256
"""The factor of a convolution is below it: a network with a larger one is refused."""


class Delegated(KernelSet):
    """The kernels that the delegate has for the nodes that it takes."""

    name = "xnnpack-2.3"

    def activation(self, name: str, y: Parameters) -> tuple[int, int]:
        low, high = y.storage.minimum, y.storage.maximum
        with np.errstate(all="ignore"):
            ends = [
                end if bound is None else int(np.rint(np.clip(f(bound) / f(y.scale) + f(y.zero_point), low, high)))
                for bound, end in zip(BOUNDS.get(name, (None, None)), (low, high), strict=True)
            ]
        return ends[0], ends[1]

    def convolution(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        return Float32((f(x.scale) * weights) / f(y.scale))

    def fully_connected_bytes(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        return Float32((f(x.scale) * weights) / f(y.scale))

    def batch_matmul(self, x: Parameters, y: Parameters, result: Parameters) -> Factor:
        return Float32(np.asarray([f(x.scale) * f(y.scale) / f(result.scale)]))

    def multiplication(self, x: Parameters, y: Parameters, result: Parameters) -> Multiplier | Factor:
        return Float32(np.asarray([f(x.scale) * f(y.scale) / f(result.scale)]))

    def addition(
        self, x: Parameters, y: Parameters, result: Parameters, *, subtract: bool = False
    ) -> Addition | WeightedSum:
        first, second = (f(p.scale) / f(result.scale) for p in (x, y))
        shift = 20 - (math.frexp(float(max(first, second)))[1] - 1)
        weights = [int(np.rint(np.ldexp(float(r), shift))) for r in (first, second)]
        return WeightedSum(weights[0], -weights[1] if subtract else weights[1], shift)

    def leaky_relu(self, x: Parameters, y: Parameters, alpha: float) -> Leaky | Slopes:
        above = f(x.scale) / f(y.scale)
        slopes = [int(np.rint(f(256) * slope)) for slope in (above, above * f(alpha))]
        return Slopes(slopes[0], slopes[1], 8)

    def requantization(self, x: Parameters, y: Parameters) -> Multiplier | Slopes:
        slope = int(np.rint(f(256) * (f(x.scale) / f(y.scale))))
        return Slopes(slope, slope, 8)

    def reciprocal(self, y: Parameters) -> np.float32 | None:
        return f(1) / f(y.scale)

    def average(self, x: Parameters, y: Parameters, count: int, *, divided: bool) -> Factor | None:
        scale = f(x.scale) / f(y.scale)
        if divided:
            scale = scale * (f(1) / f(count))
        after = f(y.zero_point) - f(f(count) * f(x.zero_point)) * scale
        return Float32(np.asarray([scale]), count * x.zero_point, after, y.zero_point)

    def table(self, function: FloatFunction, x: Parameters, y: Parameters) -> np.ndarray:
        storage = x.storage
        stored = np.arange(storage.minimum, storage.maximum + 1)
        with np.errstate(all="ignore"):
            real = (stored.astype(f) - f(x.zero_point)) * f(x.scale)
            value = _logistic(real) if function is logistic else function(real)
            counts = value.astype(f) * (f(1) / f(y.scale)) + f(y.zero_point)
        return np.clip(np.rint(counts), storage.minimum, storage.maximum).astype(storage.dtype)

    def bilinear(self, size: int, out: int, *, align_corners: bool, half_pixel: bool) -> FixedTaps | None:
        less = 1 if align_corners and out != 1 else 0
        scale, index = f(size - less) / f(out - less), np.arange(out, dtype=f)
        position = index * scale
        if half_pixel and not align_corners:
            position = position + (f(0.5) * scale - f(0.5))
        position = np.clip(position, f(0), f(size - 1))
        lower = position.astype(np.int64)
        weight = np.rint((position - lower.astype(f)) * f(2048)).astype(np.int64)
        return FixedTaps(lower, np.minimum(lower + 1, size - 1), weight)


def _logistic(x: np.ndarray) -> np.ndarray:
    """e^x / (1 + e^x) in double; 0 and 1 beyond 100."""
    power = np.exp(np.clip(x.astype(np.float64), -101, 101))
    return np.where(x > 100, 1, np.where(x < -100, 0, power / (1 + power)))


class DelegatedArm64(Delegated):
    """The delegate's kernels on arm64 with NEON, but for Cortex-A53."""

    name = "xnnpack-2.3-arm64"
    inexact = frozenset({"MEAN of i8", "MEAN of ui8", "SUM of i8", "SUM of ui8"})

    def convolution(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        factor = super().convolution(x, weights, y)
        return factor if x.storage.signed else _rounded_up(factor)

    def multiplication(self, x: Parameters, y: Parameters, result: Parameters) -> Multiplier | Factor:
        factor = super().multiplication(x, y, result)
        return _rounded_up(factor) if isinstance(factor, Factor) else factor


def _rounded_up(factor: Factor) -> Factor:
    """A float32 scale as its 24 bits and a shift, rounded once, half up."""
    assert isinstance(factor, Float32)
    bits = np.ascontiguousarray(factor.scale, f).view(np.uint32).astype(np.int64)
    return FixedPoint(((bits & 0x7FFFFF) | 0x800000) << 7, 157 - (bits >> 23), double_round=False)


class DelegatedA53(DelegatedArm64):
    """The delegate's kernels on Cortex-A53, A55 and Kryo."""

    name = "xnnpack-2.3-arm64-a53"

    def convolution(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        return self._factor(x, Delegated.convolution(self, x, weights, y))

    def depthwise(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        return super().convolution(x, weights, y)

    def fully_connected_bytes(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        return self._factor(x, super().fully_connected_bytes(x, weights, y))

    def _factor(self, x: Parameters, factor: Factor) -> Factor:
        """A float32 scale of uint8 in 15 bits and a shift."""
        assert isinstance(factor, Float32)
        if x.storage.signed or not factor.rises:
            return factor
        fraction, exponent = math.frexp(float(factor.scale[0]))
        multiplier = int(fraction * 2**15 + 0.5)
        return Shortened(1 << 14, -exponent - 1) if multiplier == 1 << 15 else Shortened(multiplier, -exponent)


_UNLIKE: Final = frozenset(
    {
        "ADD of i16 without a known size",
        "QUANTIZE of i8 to ui8",
        "QUANTIZE of ui8 to i8",
        "QUANTIZE of f32 to i16",
        "CONV_2D of i8 without groups",
        "CONV_2D of ui8 without groups",
        "CONV_2D of i16 with sums of i32",
        "DEPTHWISE_CONV_2D of i8 with 8 channels or more",
        "TRANSPOSE_CONV of ui8",
        "TRANSPOSE_CONV of i8 with 8 channels or more",
        "TRANSPOSE_CONV of i16 with sums of i32",
        "FULLY_CONNECTED of i8",
        "FULLY_CONNECTED of ui8",
        "FULLY_CONNECTED of i16 with sums of i32",
        "LOGISTIC of i16 with a scale of a power of two",
        "TANH of i16 with a scale of a power of two",
        "SOFTMAX of i8 to i16",
    }
)
"""Optimized kernels that round otherwise than the reference (twice, both half up), or by an element's place."""


_DELEGATED: Final = Delegated()


class Optimized(KernelSet):
    """TFLite's optimized kernels. Source: kernels/internal/optimized/integer_ops/add.h."""

    def vector_part(self, count: int) -> int:
        return count - count % 16


class Xnnpack(Optimized):
    """The default interpreter on x86-64: nodes that the delegate does not take run optimized kernels."""

    name = "xnnpack-2.3"
    delegated = _DELEGATED
    inexact = _UNLIKE


class XnnpackArm64(Optimized):
    """The default interpreter on arm64."""

    name = "xnnpack-2.3-arm64"
    delegated = DelegatedArm64()
    inexact = _UNLIKE | {
        *("SOFTMAX of i8 to i8", "SOFTMAX of ui8 to ui8", "HARD_SWISH of i8", "HARD_SWISH of ui8"),
        *("DEPTHWISE_CONV_2D of ui8", "RESIZE_BILINEAR of ui8", "GELU of i16", "LOG of i16"),
    }


class XnnpackA53(XnnpackArm64):
    """The default interpreter on Cortex-A53, A55 and Kryo."""

    name = "xnnpack-2.3-arm64-a53"
    delegated = DelegatedA53()


class Xnnpack24(Optimized, Reference24):
    """The default interpreter of the nightly on x86-64: undelegated kernels changed as the reference's."""

    name = "xnnpack-2.4-dev"
    delegated = _DELEGATED
    inexact = _UNLIKE | Reference24.inexact


KERNEL_SETS: Final = {s.name: s for s in (Xnnpack(), XnnpackArm64(), XnnpackA53(), Xnnpack24())}
