"""Products of limbs equal the double's, on both sides of every tie and of every result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.requantize.numpy_ops import NUMPY
from tflq.numerics.requantize.products import LongProduct, WideProduct
from tflq.numerics.requantize.staircase import float_thresholds


def _reference(x: np.ndarray, scale: np.ndarray, lows: int, highs: int) -> np.ndarray:
    product = x.astype(np.float64) * scale
    whole = np.trunc(product)
    return np.clip(whole + np.where(np.abs(product - whole) >= 0.5, np.sign(product), 0), lows, highs).astype(np.int64)


@given(
    seed=st.integers(0, 2**32 - 1),
    log2=st.lists(st.floats(-36, 16), min_size=1, max_size=3),
    bits=st.sampled_from([8, 16]),
    kind=st.sampled_from(["any", "power of two", "float32"]),
    reach=st.floats(0, 52),
)
@settings(max_examples=60, deadline=None)
def test_equals_the_double(seed: int, log2: list[float], bits: int, kind: str, reach: float) -> None:
    rng = np.random.default_rng(seed)
    scale = 2.0 ** (np.round(log2) if kind == "power of two" else np.asarray(log2))
    scale = scale.astype(np.float32).astype(np.float64) if kind == "float32" else scale
    most, zero = int(2.0**reach), int(rng.integers(-(1 << (bits - 1)), 1 << (bits - 1)))
    lows, highs = -(1 << (bits - 1)) - zero, (1 << (bits - 1)) - 1 - zero
    fit = WideProduct.fit(scale, lows, highs, -most, most)
    assert fit is not None
    ties = np.ceil((rng.integers(lows, highs + 1, (500, scale.size)) - 0.5) / scale).astype(np.int64)
    near = np.concatenate([ties + step for step in range(-2, 3)])
    ends = np.multiply.outer(np.asarray([0, 1, -1, most, -most]), np.ones(scale.size, np.int64))
    x = np.clip(np.concatenate([near, rng.integers(-most, most + 1, (500, scale.size)), ends]), -most, most)
    np.testing.assert_array_equal(np.clip(fit.of(x), lows, highs), _reference(x, scale, lows, highs))


def test_a_product_that_float64_rounds_up_to_a_tie() -> None:
    """Half a last place is not the same for all results: a fixed correction of ties is not enough."""
    scale = np.asarray([2.0**-34 * 1.3])
    fit = WideProduct.fit(scale, -32768, 32767, -(1 << 49), 1 << 49)
    assert fit is not None
    ties = np.ceil((np.arange(-32767, 32768) - 0.5) / scale).astype(np.int64)[:, None]
    x = np.concatenate([ties - 1, ties])
    np.testing.assert_array_equal(fit.of(x), _reference(x, scale, -32768, 32767))


@pytest.mark.parametrize("reach", [1 << 54, 1 << 62])
def test_sums_that_a_double_does_not_hold_are_refused(reach: int) -> None:
    assert WideProduct.fit(np.asarray([2.0**-44]), -32768, 32767, -reach, reach) is None


# The two-limb product equals the double's, on both sides of every result.


@given(seed=st.integers(0, 2**32 - 1), log2=st.floats(-20, -1), bits=st.sampled_from([8, 16]), tie=st.booleans())
@settings(max_examples=20, deadline=None)
def test_long_products_equal_the_double(seed: int, log2: float, bits: int, tie: bool) -> None:
    rng = np.random.default_rng(seed)
    scale = np.full(3, 2.0 ** int(log2)) if tie else 2.0 ** (log2 + rng.random(3) * 0.9)
    lows, highs, reach = -(1 << (bits - 1)), (1 << (bits - 1)) - 1, 1 << 30
    fit = LongProduct.fit(scale, lows, highs, -reach, reach)
    assert fit is not None
    ends = float_thresholds(rng.integers(lows + 1, highs, 500), scale)
    x = np.concatenate([rng.integers(-reach, reach, (2000, 3)), ends, ends - 1, [[0] * 3, [1] * 3, [-1] * 3]])
    x = np.clip(x, -reach, reach)
    np.testing.assert_array_equal(
        np.clip(fit.apply(np.clip(x, fit.first, fit.last), NUMPY), lows, highs), _reference(x, scale, lows, highs)
    )


def test_ties_need_the_sign() -> None:
    fit = LongProduct.fit(np.asarray([2.0**-4]), -128, 127, -(1 << 20), 1 << 20)
    assert fit is not None
    assert fit.correction > 0


@pytest.mark.parametrize("reach", [1 << 40, 1 << 46])
def test_wide_accumulators_without_saturation_are_refused(reach: int) -> None:
    assert LongProduct.fit(np.asarray([2.0**-40]), -32768, 32767, -reach, reach) is None
