"""Scales of sums and means of bytes: all pairs of bytes, and all ties."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.float_product import Byte, fitted_scales, mean_scale, rounded_sums, xnnpack_sums


def drawn(seed: int) -> tuple[Byte, Byte, Byte]:
    """Scales within a factor of ten, and any zero points."""
    rng = np.random.default_rng(seed)
    scales, zeros = rng.uniform(0.01, 0.1, 3).astype(np.float32).tolist(), rng.integers(0, 256, 3).tolist()
    a, b, out = (Byte(*pair) for pair in zip(scales, zeros, strict=True))
    return a, b, out


def differing(a: Byte, b: Byte, out: Byte, wanted: np.ndarray, *, subtract: bool) -> int:
    return sum(int((made != wanted).sum()) for made in rounded_sums(a, b, out, subtract=subtract))


@pytest.mark.parametrize("subtract", [False, True], ids=["add", "sub"])
@pytest.mark.parametrize("seed", range(12))
def test_no_scales_are_worse_than_their_own(seed: int, *, subtract: bool) -> None:
    a, b, out = drawn(seed)
    wanted = xnnpack_sums(a, b, out, subtract=subtract)
    assert wanted is not None
    first, second = fitted_scales(a, b, out, subtract=subtract)
    np.testing.assert_allclose((first, second), (a.scale, b.scale), rtol=1e-5)
    before = differing(a, b, out, wanted, subtract=subtract)
    after = differing(Byte(first, a.zero_point), Byte(second, b.zero_point), out, wanted, subtract=subtract)
    assert after <= before
    assert after == 0 or before > 0
    if not before:
        assert (first, second) == (a.scale, b.scale)


def test_scales_are_found_that_differ_for_no_pair() -> None:
    """Of seeds whose own scales differ for some."""
    found = [0, 0]
    for seed in range(40):
        a, b, out = drawn(seed)
        wanted = xnnpack_sums(a, b, out)
        assert wanted is not None
        first, second = fitted_scales(a, b, out)
        found[0] += differing(a, b, out, wanted, subtract=False) > 0
        found[1] += differing(Byte(first, a.zero_point), Byte(second, b.zero_point), out, wanted, subtract=False) > 0
    assert found[0] > 10
    assert found[1] <= found[0] // 10


def test_scales_that_xnnpack_does_not_take_stay() -> None:
    a, b, out = Byte(1.0, 3), Byte(1e-4, 5), Byte(1e-3, 7)
    assert xnnpack_sums(a, b, out) is None
    assert fitted_scales(a, b, out) == (1.0, 1e-4)


@pytest.mark.parametrize("count", [1, 3, 4, 16, 49, 64, 128, 130])
@pytest.mark.parametrize(("zero_point", "signed"), [(0, False), (-128, True), (0, True), (17, True)])
def test_means_round_as_the_kernel_next_to_the_zero_point(count: int, zero_point: int, *, signed: bool) -> None:
    """Every sum of a window: the kernel's mean of stored integers, and that of real numbers in float32."""
    scale = mean_scale(0.05, zero_point, count, signed=signed)
    low, high = (-128, 127) if signed else (0, 255)
    sums = np.arange(low * count, high * count + 1)
    half = count // 2
    kernel = np.where(sums > 0, (sums + half) // count, -((half - sums) // count)) if signed else (sums + half) // count
    real = (sums - zero_point * count).astype(np.float32) * np.float32(scale) / np.float32(count)
    made = np.clip(np.rint(real / np.float32(0.05)) + zero_point, low, high)
    tie = (2 * sums) % (2 * count) == count
    np.testing.assert_array_equal(made[~tie], kernel[~tie])
    near = np.abs(sums - zero_point * count) < count
    if zero_point in (low, 0) and count <= 128:
        above = tie & near & (sums > zero_point * count)
        np.testing.assert_array_equal(made[above], kernel[above])
    assert np.abs(made - kernel).max() <= 1
