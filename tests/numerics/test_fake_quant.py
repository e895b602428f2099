"""Fake quantization as TensorFlow's ops and TensorFlow Lite's kernel compute it, and its parameters."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, interpret, one_op

from tflq.ir.types import f32
from tflq.numerics.ranges import fake_quant, nudged, simulated

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


# FAKE_QUANT against the kernel on floats.


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


# The parameters that TensorFlow Lite's converter makes of fake quantization, recorded with tensorflow-cpu 2.21.


PARAMETERS = [
    ((-3.6923106, 2.3020654), 4, False, 0.3996250629425049, 9),
    ((-5.9832597, 5.885012), 4, False, 0.791218101978302, 8),
    ((-2.9150121, 5.336927), 4, True, 0.589424192905426, 6),
    ((-5.604261, 2.1467712), 4, True, 0.553645133972168, 11),
    ((-0.8925841, 5.835773), 8, False, 0.02638571336865425, 34),
    ((-5.3396134, 4.934243), 8, False, 0.040289632976055145, 133),
    ((-2.8799276, 1.3942375), 8, False, 0.016761431470513344, 172),
    ((-4.8112836, 5.541181), 8, False, 0.04059790074825287, 119),
    ((-0.24306427, 4.3920374), 8, True, 0.018248431384563446, 14),
    ((-3.6862395, 0.1701922), 8, True, 0.015182801522314548, 244),
    ((-4.3153186, 0.09595038), 8, True, 0.017367200925946236, 249),
    ((-4.547706, 3.0765524), 8, True, 0.030016764998435974, 153),
    ((-2.1738477, 2.5046887), 16, False, 7.138989167287946e-05, 30450),
    ((-3.2484598, 0.675682), 16, False, 5.9878566389670596e-05, 54251),
    ((-5.062743, 2.5446389), 16, True, 0.00011608297791099176, 43614),
    ((-5.8781323, 5.8439064), 16, True, 0.00017886958085000515, 32864),
    ((-1.0, 1.0), 8, False, 0.007843137718737125, 128),
    ((0.0, 1.0), 8, False, 0.003921568859368563, 0),
    ((1.0, 2.0), 8, False, 0.003921568859368563, 0),
    ((-3.0, -1.0), 8, False, 0.007843137718737125, 255),
]
"""Bounds, bits, narrow range; scale and zero point, in integers without sign."""


@pytest.mark.parametrize(("bounds", "bits", "narrow_range", "scale", "zero"), PARAMETERS)
def test_steps_are_the_converters(
    bounds: tuple[float, float], bits: int, narrow_range: bool, scale: float, zero: int
) -> None:
    low, high = (float(np.float32(bound)) for bound in bounds)
    steps = nudged(low, high, bits, narrow_range=narrow_range)
    assert (float(np.float32(steps.scale)), int(steps.zero)) == (scale, zero)
    assert (steps.least, steps.greatest) == (int(narrow_range), 2**bits - 1)


def test_a_zero_point_is_rounded_half_away() -> None:
    assert nudged(-127.5, 127.5, 8).zero == 128
    assert nudged(-0.49999997, 255 - 0.49999997, 8, dtype=np.float32).zero == 0


def test_steps_of_channels() -> None:
    steps = nudged([-1.0, 0.0], [1.0, 2.55], 8)
    np.testing.assert_array_equal(steps.scale, [2 / 255, 2.55 / 255])
    np.testing.assert_array_equal(steps.zero, [128, 0])


@pytest.mark.parametrize(("low", "high", "bits"), [(2.0, 1.0, 8), (0.0, np.inf, 8), (np.nan, 1.0, 8), (0.0, 1.0, 17)])
def test_no_range(low: float, high: float, bits: int) -> None:
    with pytest.raises(ValueError, match="not ranges"):
        nudged(low, high, bits)
