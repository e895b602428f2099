"""Ranges and scales by their formulas, histograms, weights rounded for their products, fake quantization."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.harness import argument, interpret, one_op

from tflq.ir.types import f32
from tflq.numerics.ranges import (
    DAMPING,
    FINITE,
    PER_OCTAVE,
    WEIGHT_RANGES,
    block_scales,
    bounds,
    clips,
    compensated_weights,
    edges,
    error_of_products,
    fake_quant,
    finite_bins,
    histogram,
    least_squared_error,
    moving_average,
    nudged,
    percentile,
    range_before_softmax,
    reached,
    simulated,
    stored_weights,
)

FLOATS = st.lists(st.floats(width=32), min_size=1, max_size=60)


def bin_of(value: float) -> int:
    ((number, count),) = finite_bins(histogram(np.array([value]))).items()
    assert count == 1
    return number


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_value_is_between_the_edges_of_its_bin(value: float) -> None:
    (low,), (high,) = edges(np.array([bin_of(value)]))
    assert low <= value <= high


def test_bins_follow_one_another_and_are_a_thirty_second_of_an_octave() -> None:
    for bins in (np.arange(-FINITE, 0), np.arange(FINITE)):  # between these are -0 and +0
        low, high = (side.astype(np.float32) for side in edges(bins))
        assert np.array_equal(np.nextafter(high[:-1], np.float32(np.inf)), low[1:])
    octave = np.arange(bin_of(1.0), bin_of(2.0))
    assert len(octave) == PER_OCTAVE
    starts = edges(octave)[0]
    assert np.array_equal(starts, 1 + np.arange(PER_OCTAVE) / PER_OCTAVE)


@given(FLOATS, FLOATS)
def test_every_finite_value_is_counted_once_in_any_order(left: list[float], right: list[float]) -> None:
    first, second = (np.array(side, np.float32) for side in (left, right))
    whole = finite_bins(histogram(np.concatenate([second, first])))
    assert whole == finite_bins(histogram(first) + histogram(second))
    assert list(whole) == sorted(whole)
    assert sum(whole.values()) == np.isfinite(first).sum() + np.isfinite(second).sum()


# Ranges from samples: each method against its formula on the values themselves.


VALUES = st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=300).map(lambda v: np.array(v, np.float32))


def quantized_error(values: np.ndarray, low: float, high: float, levels: int = 256) -> float:
    scale = (high - low) / (levels - 1)
    steps = np.clip(np.rint(values / scale), np.rint(low / scale), np.rint(low / scale) + levels - 1)
    return float(((steps * scale - values) ** 2).sum())


def test_a_margin_is_where_ends_differ() -> None:
    """An end that several samples have is a bound, and none crosses 0."""
    assert reached([4.0, 6.0]) == 5 + 4
    assert reached([6.0, 5.0, 6.0]) == 6
    assert reached([-0.5, -1.5]) == 0
    assert reached([-3.0]) == -3


def test_what_is_below_the_range_before_softmax_counts_for_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 100)) * 10
    low, high = range_before_softmax(list(rows.min(axis=1)), list(rows.max(axis=1)), 100, 256, 2.0)
    assert high > rows.max()
    assert low > rows.min()
    exact, clipped = (np.exp(2 * (x - rows.max(axis=1, keepdims=True))) for x in (rows, np.maximum(rows, low)))
    apart = exact / exact.sum(axis=1, keepdims=True) - clipped / clipped.sum(axis=1, keepdims=True)
    assert np.abs(apart).max() < 0.5 / 256
    assert range_before_softmax([-1.0], [1.0], 100, 256)[0] == -1.0


@given(VALUES)
def test_the_moving_average_weighs_what_came_last(values: np.ndarray) -> None:
    samples = values.astype(np.float64).tolist()
    weights = [0.05 * 0.95**back for back in range(len(samples) - 1)] + [0.95 ** (len(samples) - 1)]
    wanted = sum(weight * value for weight, value in zip(weights, reversed(samples), strict=True))
    low, high = moving_average(samples, [value + 1 for value in samples])
    assert low == pytest.approx(wanted, abs=1e-9)
    assert high == pytest.approx(wanted + 1, abs=1e-9)


@given(VALUES, st.floats(50, 100))
def test_so_many_elements_are_between_percentiles(values: np.ndarray, percent: float) -> None:
    bins = finite_bins(histogram(values))
    low, high = percentile(bins, percent, float(values.min()), float(values.max()))
    assert values.min() <= low <= high + 1e-30 or percent == 50
    for end, share in ((low, 1 - percent / 100), (high, percent / 100)):
        same = finite_bins(histogram(np.array([end])))  # elements of the same bin may be on either side
        (number,) = same
        below, within = ((sum(c for b, c in bins.items() if test(b))) for test in (number.__gt__, number.__eq__))
        assert below - 1e-6 <= share * values.size <= below + within + 1e-6 or end in (values.min(), values.max())


def test_a_percentile_of_many_values_is_that_of_the_values() -> None:
    values = np.random.default_rng(0).normal(size=200_000).astype(np.float32)
    low, high = percentile(finite_bins(histogram(values)), 99.9, float(values.min()), float(values.max()))
    assert low == pytest.approx(np.quantile(values, 0.001), rel=1 / PER_OCTAVE)
    assert high == pytest.approx(np.quantile(values, 0.999), rel=1 / PER_OCTAVE)


@pytest.mark.parametrize("outlier", [0.0, 30.0, 300.0])
def test_the_least_squared_error_is_near_that_of_all_fractions(outlier: float) -> None:
    values = np.random.default_rng(0).normal(size=50_000).astype(np.float32)
    values[0] = outlier
    low, high = float(values.min()), float(values.max())
    found = quantized_error(values, *least_squared_error(finite_bins(histogram(values)), 256, low, high))
    errors = [quantized_error(values, low * part / 100, high * part / 100) for part in range(1, 101)]
    assert found <= 1.02 * min(errors)
    assert found < 0.95 * errors[-1] or outlier == 0


@given(VALUES)
def test_the_least_squared_error_is_of_a_range_around_zero(values: np.ndarray) -> None:
    ends = float(values.min()), float(values.max())
    low, high = least_squared_error(finite_bins(histogram(values)), 256, *ends)
    assert min(ends[0], 0) <= low <= 0 <= high <= max(ends[1], 0)


# Scales of constant weights: against plain formulas, one channel at a time.


BITS = [4, 8]
AXES = (1,)


def weights(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_t(4, (16, 200)).astype(np.float32)


def error(row: np.ndarray, clip: float, bits: int) -> float:
    low, high = bounds(bits)
    scale = clip / high
    return float(((np.clip(np.rint(row / scale), low, high) * scale - row) ** 2).sum())


@pytest.mark.parametrize("bits", BITS)
def test_min_max_reaches_the_largest_magnitude(bits: int) -> None:
    w = weights()
    found = clips(w, AXES, bits, "minmax")
    np.testing.assert_array_equal(found[:, 0], np.abs(w).max(axis=1).astype(np.float64))
    stored = stored_weights(w, found / bounds(bits)[1], bits)
    assert (np.abs(stored.astype(int)).max(axis=1) == bounds(bits)[1]).all()


@pytest.mark.parametrize("bits", BITS)
def test_the_least_squared_error_is_that_of_all_fractions(bits: int) -> None:
    w = weights(1).astype(np.float64)
    for row, clip in zip(w, clips(w, AXES, bits, "mse")[:, 0], strict=True):
        tried = [error(row, np.abs(row).max() * k / 100, bits) for k in range(1, 101)]
        assert error(row, clip, bits) == pytest.approx(min(tried))
        assert error(row, clip, bits) <= error(row, np.abs(row).max(), bits)


@pytest.mark.parametrize("bits", BITS)
def test_octav_is_the_fixed_point_of_its_equation(bits: int) -> None:
    w = weights(2).astype(np.float64)
    for row, clip in zip(np.abs(w), clips(w, AXES, bits, "octav")[:, 0], strict=True):
        beyond = row > clip
        right = row[beyond].sum() / (4.0**-bits / 3 * (~beyond).sum() + beyond.sum()) if beyond.any() else row.max()
        assert clip == pytest.approx(right, rel=1e-6)


def test_octav_has_a_smaller_error_on_long_tails() -> None:
    w = weights(3).astype(np.float64)
    sums = {m: sum(error(r, c, 4) for r, c in zip(w, clips(w, AXES, 4, m)[:, 0], strict=True)) for m in WEIGHT_RANGES}
    assert sums["mse"] <= sums["octav"] < 0.8 * sums["minmax"]


@pytest.mark.parametrize("method", WEIGHT_RANGES)
def test_weights_that_are_all_zero_have_a_scale(method: str) -> None:
    found = clips(np.zeros((2, 3), np.float32), AXES, 4, method)
    assert (found > 0).all()
    assert not stored_weights(np.zeros((2, 3), np.float32), found / 7, 4).any()


def test_scales_of_blocks_have_eight_bits_of_precision() -> None:
    scales = np.exp(np.random.default_rng(0).uniform(-8, 8, 1000))
    rounded = block_scales(scales).astype(np.float64)
    exponent = np.floor(np.log2(scales))
    np.testing.assert_array_equal(rounded, np.rint(scales / 2.0 ** (exponent - 7)) * 2.0 ** (exponent - 7))
    assert block_scales(np.array([0.0]))[0] > 0
    assert np.isfinite(block_scales(np.array([1e9]))[0])


# Weights rounded by second moments of what they are multiplied with.


def case(columns: int, factors: int, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, their scales, and inputs that are made of some factors."""
    rng = np.random.default_rng(columns + bits)
    weights = rng.normal(size=(7, columns)).astype(np.float32)
    scales = (clips(weights, (1,), bits, "minmax") / bounds(bits)[1]).astype(np.float32)
    return weights, scales, rng.normal(size=(400, factors)) @ rng.normal(size=(factors, columns))


def by_one_column_at_a_time(weights: np.ndarray, scales: np.ndarray, moments: np.ndarray, bits: int) -> np.ndarray:
    """The algorithm as published before it is blocked: after each column the inverse without it."""
    left, stored = weights.astype(np.float64), np.empty(weights.shape, np.int8)
    inverse = np.linalg.inv(moments + DAMPING * np.trace(moments) / len(moments) * np.eye(len(moments)))
    for column in range(weights.shape[1]):
        stored[:, column] = stored_weights(left[:, column], scales[:, 0], bits)
        error = (left[:, column] - scales[:, 0].astype(np.float64) * stored[:, column]) / inverse[column, column]
        left -= error[:, None] * inverse[column]
        inverse = inverse - np.outer(inverse[:, column], inverse[column]) / inverse[column, column]
    return stored


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("columns", [1, 5, 40, 130])
def test_columns_make_up_for_those_before_them(columns: int, bits: int) -> None:
    weights, scales, inputs = case(columns, 8, bits)
    moments = inputs.T @ inputs
    made = compensated_weights(weights, scales, moments, bits)
    wanted = by_one_column_at_a_time(weights, scales, moments, bits)
    assert (made != wanted).mean() < 0.01  # where a number lies next to a tie
    low, high = bounds(bits)
    assert made.min() >= low
    assert made.max() <= high


@pytest.mark.parametrize("bits", [4, 8])
def test_products_are_nearer(bits: int) -> None:
    weights, scales, inputs = case(40, 8, bits)
    moments = inputs.T @ inputs
    nearest = stored_weights(weights, scales, bits)
    plain, made = (
        error_of_products(weights - scales * stored, moments)
        for stored in (nearest, compensated_weights(weights, scales, moments, bits))
    )
    assert made < plain / 2
    assert plain == pytest.approx(float((((weights - scales * nearest) @ inputs.T) ** 2).sum()), rel=1e-6)


@pytest.mark.parametrize("moments", [np.eye(40), np.zeros((40, 40))])
def test_of_inputs_that_say_nothing_of_each_other_weights_are_rounded_to_nearest(moments: np.ndarray) -> None:
    weights, scales, _ = case(40, 8, 4)
    np.testing.assert_array_equal(compensated_weights(weights, scales, moments, 4), stored_weights(weights, scales, 4))


# Fake quantization as TensorFlow's ops and TensorFlow Lite's kernel compute it, and its parameters.


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
