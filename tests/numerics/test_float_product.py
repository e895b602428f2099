"""Tables as products and planes in float32; products as sums of logarithms; sums as XNNPACK rounds them."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.numerics.fixed_point import multiply, quantize_multiplier
from tflq.numerics.float_product import (
    FRACTION_BITS,
    MANTISSA_BITS,
    ZERO,
    Byte,
    fit_float_plane,
    fit_float_product,
    fitted_scales,
    log_table,
    mean_scale,
    powers_of_two,
    product_of,
    rounded_sums,
    xnnpack_sums,
)
from tflq.numerics.requantize.numpy_ops import NUMPY, NUMPY_FUSED

# A product in float32 that passes its proof has every entry of the table.

PLACES = np.arange(256)
ROUNDINGS: tuple[Literal["", "x", "y"], ...] = ("", "x", "y")


def multiplied(scale: float, a: int, b: int, zero_point: int, low: int = 0, high: int = 255) -> np.ndarray:
    """MUL of 8 bits as its kernel rounds, levels of its result."""
    mantissa, left = quantize_multiplier(scale)
    products = np.multiply.outer(PLACES - a, PLACES - b)
    return np.clip(multiply(products, mantissa, left) + zero_point, low, high).astype(np.int64) - low


@given(
    scale=st.floats(2.0**-10, 0.2),
    a=st.integers(0, 255),
    b=st.integers(0, 255),
    zero_point=st.integers(0, 255),
)
@settings(max_examples=40, deadline=None)
def test_every_pair(scale: float, a: int, b: int, zero_point: int) -> None:
    table = multiplied(scale, a, b, zero_point)
    table -= table.min()
    product = product_of(table)
    if product is None:
        return  # no climb is left
    fit = fit_float_product(table, product)
    if fit is None:
        return  # a table of its own is used
    x, y = (PLACES - fit.a).astype(np.float32)[:, None], (PLACES - fit.b).astype(np.float32)
    got = fit.g((x * y)[..., None])[..., 0]
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, table)


@pytest.mark.parametrize("seed", range(4))
def test_most_products_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(5):
        a, b, zero_point = (int(v) for v in rng.integers(0, 256, 3))
        table = multiplied(float(2 ** rng.uniform(-8, -3)), a, b, zero_point)
        table -= table.min()
        product = product_of(table)
        found += product is not None and fit_float_product(table, product) is not None
    assert found >= 4


def test_zero_points_are_found() -> None:
    product = product_of(multiplied(0.01, 3, 250, 100))
    assert product is not None
    assert (product.a, product.b) == (3, 250)


def test_fused_activation() -> None:
    table = multiplied(0.013, 100, 0, 7, 7, 90)
    product = product_of(table)
    assert product is not None
    assert fit_float_product(table, product) is not None


def test_one_count_off_is_found() -> None:
    table = multiplied(0.013, 100, 30, 7)
    table[200, 40] += 1 if table[200, 40] < 255 else -1
    product = product_of(table)
    assert product is None or fit_float_product(table, product) is None


def test_sums_and_constants_are_no_products() -> None:
    assert product_of(np.clip(np.add.outer(PLACES, PLACES) // 2, 0, 255)) is None
    assert product_of(np.zeros((256, 256), np.int64)) is None


# A plane in float32 that passes its proof has every entry of the table.

NUMBERS = np.arange(-128, 128)


def summed(m: float, n: float, offset: float, low: int = 0, high: int = 255) -> np.ndarray:
    """The levels of x m + y n + offset, rounded half away from zero, as ADD does."""
    total = NUMBERS[:, None] * m + NUMBERS[None, :] * n
    rounded = np.sign(total) * np.floor(np.abs(total) + 0.5)
    return np.clip(rounded + offset, low, high).astype(np.int64) - low


@given(
    m=st.floats(0.02, 3),
    n=st.floats(-3, 3),
    zero_point=st.integers(0, 255),
    start=st.sampled_from([-255, -128, 0]),
)
@settings(max_examples=30, deadline=None)
def test_every_pair_of_a_sum(m: float, n: float, zero_point: int, start: int) -> None:
    """If one is found: by the very operations of the kernels, for any offset of the numbers."""
    table = summed(m, n, zero_point)
    table -= table.min()
    numbers = start + np.arange(256)
    fit = fit_float_plane(table, numbers, numbers)
    if fit is None:
        return  # a table of its own is used
    x, y = numbers.astype(np.float32)[:, None], numbers.astype(np.float32)
    total = np.float32(np.float32(x * fit.m) + np.float32(y * fit.n)) + fit.c
    got = np.floor(np.minimum(np.maximum(total, np.float32(0)), np.float32(6)) * fit.gain)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, table)


@pytest.mark.parametrize("seed", range(3))
def test_either_rounding(seed: int) -> None:
    """Sums and products that hold with it are the table in each rounding; most are found."""
    rng = np.random.default_rng(seed)
    found = 0
    for m, n in rng.uniform(0.3, 1.2, (6, 2)):
        table = summed(m, -n, 120)
        table -= table.min()
        plane = fit_float_plane(table, NUMBERS, NUMBERS, "either")
        found += plane is not None
        if plane is not None:
            for fused in ROUNDINGS:
                np.testing.assert_array_equal(plane(NUMBERS[:, None], NUMBERS, fused), table)
    for scale in 2.0 ** rng.uniform(-8, -3, 6):
        table = multiplied(scale, *(int(v) for v in rng.integers(0, 256, 3)))
        table -= table.min()
        product = product_of(table)
        fit = None if product is None else fit_float_product(table, product, "either")
        found += fit is not None
        if fit is not None:
            x, y = (PLACES - fit.a)[:, None], PLACES - fit.b
            for ops in (NUMPY, NUMPY_FUSED):
                np.testing.assert_array_equal(fit.g((x * y)[..., None], ops)[..., 0] + fit.offset, table)
    assert found >= 9


def test_most_sums_are_planes() -> None:
    rng = np.random.default_rng(0)
    tables = [
        summed(m, n, z) for m, n, z in zip(*rng.uniform(0.3, 1.2, (2, 10)), rng.integers(100, 150, 10), strict=True)
    ]
    found = [fit_float_plane(table, NUMBERS, NUMBERS) is not None for table in tables if np.ptp(table) == 255]
    assert sum(found) >= 8


def test_difference_with_a_fused_activation() -> None:
    table = summed(0.7071, -0.4142, 3, 3, 100)
    fit = fit_float_plane(table, NUMBERS, NUMBERS)
    assert fit is not None
    np.testing.assert_array_equal(fit(NUMBERS[:, None], NUMBERS), table)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_equal_scales(scale: float) -> None:
    """A plane that is far from every bound, and one with sums in the middle of two levels, a little steeper."""
    table = summed(scale, scale, 128)
    fit = fit_float_plane(table, NUMBERS, NUMBERS)
    assert fit is not None
    np.testing.assert_array_equal(fit(NUMBERS[:, None], NUMBERS), table)


def test_the_plane_in_the_middle() -> None:
    """Sums on a grid of half levels are a quarter of a level from their bounds, and no plane is farther."""
    table = np.clip(np.add.outer(2 * NUMBERS, NUMBERS) // 2 + 120, 0, 255)
    fit = fit_float_plane(table, NUMBERS, NUMBERS)
    assert fit is not None
    levels = (np.add.outer(NUMBERS * fit.m, NUMBERS * fit.n) + fit.c) * fit.gain
    assert np.abs(levels % 0.5 - 0.25).max() < 1e-4


def test_products_and_constants_are_no_planes() -> None:
    product = np.clip(NUMBERS[:, None] * NUMBERS // 64, -128, 127) + 128
    assert fit_float_plane(product, NUMBERS, NUMBERS) is None
    assert fit_float_plane(np.zeros((256, 256), np.int64), NUMBERS, NUMBERS) is None


def test_one_count_off_a_plane_is_found() -> None:
    table = summed(0.71, 0.4, 120)
    table[200, 17] += 1 if table[200, 17] < 255 else -1
    assert fit_float_plane(table, NUMBERS, NUMBERS) is None


# Products by logarithms.


@given(st.integers(1, 40), st.integers(0, 1 << 30), st.floats(2.0**-8, 2.0**-6))
def test_products_within_what_is_said(count: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.arange(-128, 128)
    table = log_table(values, np.asarray([scale]), count)
    chosen = rng.integers(0, 256, count)
    total, signs = int(table.logs[chosen].sum(dtype=np.int64)), int(table.signs[chosen].sum())
    assert abs(total) < 1 << 31
    real = np.prod(values[chosen] * scale)
    assert (signs >= ZERO) == (real == 0)
    if real:
        assert (signs % 2 == 1) == (real < 0)
        assert abs(total / 2.0**table.bits - np.log2(abs(real))) <= table.off + 1e-9


def test_powers_of_two() -> None:
    entries = powers_of_two()
    assert entries.dtype == np.int32
    assert entries.size == 1 << FRACTION_BITS
    fractions = (np.arange(entries.size) + 0.5) / entries.size
    assert np.abs(entries / 2.0**MANTISSA_BITS / 2.0**fractions - 1).max() < 2.0**-28


# Scales of sums and means of bytes: all pairs of bytes, and all ties.


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
