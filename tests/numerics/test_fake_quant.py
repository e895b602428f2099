"""FAKE_QUANT against the kernel on floats."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, interpret, one_op

from tflq.ir.types import f32
from tflq.numerics.tables import fake_quant


@pytest.mark.parametrize("bits", [2, 4, 8, 16])
@pytest.mark.parametrize("bounds", [(-6.0, 6.0), (0.0, 3.7), (-1.3, 0.0), (-0.1, 12.5)])
def test_equals_the_kernel(bounds: tuple[float, float], bits: int) -> None:
    low, high = (float(np.float32(v)) for v in bounds)
    x = np.random.default_rng(1).normal(0, 5, 4000).astype(np.float32)
    options = {"min": low, "max": high, "num_bits": bits, "narrow_range": False}
    model = one_op("tfl.fake_quant", [argument(x.shape, f32)], [argument(x.shape, f32, "y")], options)
    (want,) = interpret(model, [[x]])[0]
    np.testing.assert_array_equal(fake_quant(low, high, bits)(x), want)


def test_narrow_range_leaves_out_the_least_step() -> None:
    x = np.linspace(-2, 2, 1001).astype(np.float32)
    assert len(np.unique(fake_quant(-1.0, 1.0, 2)(x))) == 4
    assert len(np.unique(fake_quant(-1.0, 1.0, 2, narrow_range=True)(x))) == 3


@pytest.mark.parametrize(("low", "high", "bits"), [(1.0, 2.0, 8), (-1.0, -0.5, 8), (0.0, 0.0, 8), (-1.0, 1.0, 1)])
def test_no_range_around_zero(low: float, high: float, bits: int) -> None:
    with pytest.raises(ValueError, match="not a range around 0"):
        fake_quant(low, high, bits)
