"""A division that is proven equals a requantization on every accumulator, in int32."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.fixed_point import multiply, quantize_multipliers, rescale
from tflq.numerics.requantize.division import Division, drifting, nearest
from tflq.numerics.requantize.numpy_ops import NumpyOps
from tflq.numerics.requantize.scaling import FixedPoint, Float64, Staircase

# A division that passes for a requantization equals it on every accumulator it may meet.


class Int32Ops(NumpyOps):
    """Operations on int64 whose results must be int32."""

    def add(self, a: np.ndarray, b: np.ndarray, *, relu: bool = False) -> np.ndarray:
        return within(super().add(a, b, relu=relu))

    def mul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return within(super().mul(a, b))


def within(x: np.ndarray) -> np.ndarray:
    assert np.abs(x).max() <= 2**31 - 1
    return x


def samples(stairs: Staircase, reach: int, seed: int) -> np.ndarray:
    """Random accumulators, and both sides of every threshold of every channel."""
    rng = np.random.default_rng(seed)
    thresholds = stairs.thresholds(stairs.levels).ravel()
    edges = np.concatenate([thresholds, thresholds - 1, [0, 1, -1, reach, -reach]])
    return np.unique(np.concatenate([rng.integers(-reach, reach + 1, 5000), np.clip(edges, -reach, reach)]))[:, None]


@given(
    seed=st.integers(0, 2**32 - 1),
    zero_point=st.integers(-128, 127),
    bits=st.floats(8, 24),
    powers=st.booleans(),
    double_round=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_division_equals_rescale(seed: int, zero_point: int, bits: float, powers: bool, double_round: bool) -> None:
    rng, reach = np.random.default_rng(seed), int(2**bits)
    scales = 2.0 ** (rng.integers(-14, -1, 32) if powers else rng.uniform(-16, -0.01, 32))
    mantissa, left = quantize_multipliers(scales)
    shift = 31 - left.astype(np.int64)
    levels = np.arange(-128 - zero_point + 1, 127 - zero_point + 1)
    stairs = Staircase.of(FixedPoint(mantissa.astype(np.int64), shift, double_round), levels[0], levels.size)
    bound = np.full(scales.shape, reach)
    fit = Division.fit(stairs, -bound, bound)
    if fit is None:
        return  # no proof, another form is used
    x = samples(stairs, reach, seed)
    want = np.clip(rescale(x, mantissa, shift, double_round=double_round), levels[0] - 1, levels[-1])
    np.testing.assert_array_equal(np.clip(fit.apply(x, Int32Ops()), levels[0] - 1, levels[-1]), want)


@pytest.mark.parametrize("bits", [12, 16, 18])
def test_most_layers_have_a_division(bits: int) -> None:
    scales = 2.0 ** np.random.default_rng(bits).uniform(-bits, 2 - bits, 500)
    mantissa, left = quantize_multipliers(scales)
    stairs = Staircase.of(FixedPoint(mantissa.astype(np.int64), 31 - left.astype(np.int64)), -127, 255)
    bound = np.full(scales.shape, 1 << bits)
    assert Division.fit(stairs, -bound, bound) is not None


@given(seed=st.integers(0, 2**32 - 1), zero_point=st.integers(-128, 127), bits=st.floats(8, 20))
@settings(max_examples=40, deadline=None)
def test_division_equals_float64(seed: int, zero_point: int, bits: float) -> None:
    rng, reach = np.random.default_rng(seed), int(2**bits)
    scales = 2.0 ** rng.uniform(-14, -0.01, 16)
    levels = np.arange(-128 - zero_point + 1, 127 - zero_point + 1)
    stairs = Staircase.of(Float64(scales), levels[0], levels.size)
    bound = np.full(scales.shape, reach)
    fit = Division.fit(stairs, -bound, bound)
    if fit is None:
        return
    x = samples(stairs, reach, seed)
    product = x.astype(np.float64) * scales
    want = np.clip(np.sign(product) * np.floor(np.abs(product) + 0.5), levels[0] - 1, levels[-1])
    np.testing.assert_array_equal(np.clip(fit.apply(x, Int32Ops()), levels[0] - 1, levels[-1]), want)


# What is known without a list of all levels is what the list says.


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["any", "few places", "short steps"])
def test_corners_are_what_all_levels_say(kind: str) -> None:
    rng, channels = np.random.default_rng(len(kind)), 20_000
    first = rng.integers(0, 1 << 32, channels).astype(np.uint32)
    step = {
        "any": rng.integers(0, 1 << 32, channels),
        "few places": rng.integers(0, 64, channels) << 26,
        "short steps": rng.integers(-(1 << 20), 1 << 20, channels),
    }[kind].astype(np.uint32)
    last, drift = rng.integers(1, 256, channels), rng.normal(0, 10.0 ** rng.uniform(-12, 0, channels))
    order = np.arange(255, dtype=np.uint32)[:, None]
    places = np.where(order < last, first + order * step, first)
    below, above = nearest(first, step, last)
    np.testing.assert_array_equal(below, places.min(axis=0) * 2.0**-32)
    np.testing.assert_array_equal(above, 1.0 - places.max(axis=0) * 2.0**-32)
    sums = drift * np.where(order < last, order + 1.0, 1.0) + places * 2.0**-32
    least, most = drifting(first, step, last.astype(np.float64), drift)
    np.testing.assert_array_equal(least, sums.min(axis=0))
    np.testing.assert_array_equal(most, sums.max(axis=0))


def test_a_division_is_the_kernels_multiplication() -> None:
    """On every accumulator of a range: the kernel's own arithmetic, and that of the factor."""
    mantissa, left = quantize_multipliers(np.asarray([0.00271, 0.0043, 0.00617]))
    factor = FixedPoint(mantissa.astype(np.int64), 31 - left.astype(np.int64))
    bound = np.full(3, 60_000)
    fit = Division.fit(Staircase.of(factor, -127, 255), -bound, bound)
    assert fit is not None
    x = np.arange(-60_000, 60_001, dtype=np.int32)[:, None]
    want = np.clip(multiply(x, mantissa, left), -128, 127)
    np.testing.assert_array_equal(np.clip(factor.apply(x), -128, 127), want)
    np.testing.assert_array_equal(np.clip(fit.apply(x.astype(np.int64), Int32Ops()), -128, 127), want)


def test_levels_above_zero_need_no_sign() -> None:
    factor = FixedPoint(np.asarray([(1 << 30) + 12345]), np.asarray([40]))
    stairs, bound = Staircase.of(factor, 1, 255), np.asarray([1 << 17])
    fit = Division.fit(stairs, -bound, bound)
    assert fit is not None
    assert fit.from_zero
    x = np.arange(-(1 << 17), (1 << 17) + 1)[:, None]
    np.testing.assert_array_equal(np.clip(fit.apply(x, Int32Ops()), 0, 255), np.clip(factor.apply(x), 0, 255))
