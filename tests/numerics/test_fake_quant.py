"""Fake quantization as TensorFlow's ops compute it."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.fake_quant import simulated

X = np.array([-3.3, -1.29, -0.004, 0.0, 0.1, 0.3333, 1.0, 2.0999, 7.7], np.float32)
RECORDED = [
    ((-1.3, 2.1), 8, False, "da40a7bff28ba5bf00000000000000000d74da3daaaaaa3effff7f3f2cf905402cf90540"),
    ((-1.3, 2.1), 8, True, "cb32a6bf2b7ca4bf000000000000000032e6bf3dad56ab3e0181803f3380064033800640"),
    ((0.0, 3.7), 5, False, "000000000000000000000000000000004f70f43d3b54b73e4f70743f2c7f0940cdcc6c40"),
    ((-0.1, 12.5), 16, True, "9ac1ccbd9ac1ccbdd64d84bb000000009ac1cc3d22b2aa3e9afe7f3f5a6506401a67f640"),
    ((0.5, 1.25), 8, False, "00000000000000000000000000000000cdcccc3d2a2aaa3e0000403f0000403f0000403f"),
]


@pytest.mark.parametrize("bits", [2, 4, 8, 16])
@pytest.mark.parametrize("narrow_range", [False, True])
@pytest.mark.parametrize("bounds", [(-6.0, 6.0), (0.0, 3.7), (-1.3, 0.0), (-0.1, 12.5), (0.5, 1.25), (-2.5, -1.0)])
def test_equals_tensorflow(bounds: tuple[float, float], bits: int, narrow_range: bool) -> None:
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")
    x = np.random.default_rng(1).normal(0, 5, 4000).astype(np.float32)
    want = tf.quantization.fake_quant_with_min_max_args(x, *bounds, bits, narrow_range).numpy()
    np.testing.assert_array_equal(simulated(x, *bounds, bits, narrow_range=narrow_range), want)


@pytest.mark.parametrize(("bounds", "bits", "narrow_range", "want"), RECORDED)
def test_equals_what_tensorflow_gave(bounds: tuple[float, float], bits: int, narrow_range: bool, want: str) -> None:
    """Bits of float32, recorded with tensorflow-cpu 2.21."""
    expected = np.frombuffer(bytes.fromhex(want), "<f4")
    np.testing.assert_array_equal(simulated(X, *bounds, bits, narrow_range=narrow_range), expected)


def test_bounds_of_channels_broadcast() -> None:
    x = np.random.default_rng(1).normal(0, 5, (40, 3)).astype(np.float32)
    low, high = np.array([-1.0, -0.3, 0.0], np.float32), np.array([1.0, 2.5, 4.0], np.float32)
    columns = [simulated(x[:, i], low[i], high[i], 8) for i in range(3)]
    np.testing.assert_array_equal(simulated(x, low, high, 8), np.stack(columns, 1))
