"""Small fractions in the place of ratios of scales, and elements as files store them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.numerics.signless import comparing_factors, densified, packed

SCALES = st.floats(2.0**-40, 2.0**40, width=32)


def factors(first: float, second: float, reach: int) -> tuple[int, int]:
    a, b = comparing_factors(np.asarray([first]), np.asarray([second]), reach)
    return int(a[0]), int(b[0])


@given(SCALES, SCALES)
def test_every_pair_of_small_integers(first: float, second: float) -> None:
    reach, x = 24, np.arange(-24, 25, dtype=object)
    ratio = Fraction(first) / Fraction(second)
    wanted = np.sign((x[:, None] * ratio.numerator - x * ratio.denominator).astype(float))
    a, b = factors(first, second, reach)
    np.testing.assert_array_equal(np.sign((x[:, None] * a - x * b).astype(float)), wanted)


@given(SCALES, SCALES, st.integers(-32768, 32767))
def test_nearest_pairs_of_16_bits(first: float, second: float, x: int) -> None:
    """Where a comparison is closest, both products within int32."""
    ratio = Fraction(first) / Fraction(second)
    a, b = factors(first, second, 32768)
    assert 32768 * max(a, b) < 1 << 31
    for y in {min(max(round(x * ratio) + d, -32768), 32767) for d in (-1, 0, 1)}:
        real, small = x * ratio - y, x * a - y * b
        assert (real > 0, real < 0) == (small > 0, small < 0)


@pytest.mark.parametrize(("first", "second", "found"), [(0.25, 0.5, (1, 2)), (0.75, 0.5, (3, 2)), (1.0, 1.0, (1, 1))])
def test_a_small_ratio_is_itself(first: float, second: float, found: tuple[int, int]) -> None:
    assert factors(first, second, 255) == found


def test_arrays_keep_their_shape() -> None:
    first, second = np.full((2, 1, 3), 0.5), np.full((2, 1, 3), 0.125)
    a, b = comparing_factors(first, second, 255)
    assert a.shape == b.shape == (2, 1, 3)
    assert (a == 4).all()
    assert (b == 1).all()


@pytest.mark.parametrize(
    ("first", "second"),
    [(0.0, 0.0), (0.0, 0.5), (0.5, 0.0), (math.inf, 1e38), (1e-45, math.inf), (math.inf, math.inf), (0.0, math.inf)],
)
def test_scales_of_zero_and_infinity(first: float, second: float) -> None:
    x, y = np.meshgrid(np.arange(-9, 10), np.arange(-9, 10))
    a, b = comparing_factors(np.asarray([first]), np.asarray([second]), 9)
    far = {0.0: 0.0, math.inf: 1e300}
    real = np.sign(x * far.get(first, first) - y * far.get(second, second))
    np.testing.assert_array_equal(np.sign(x * a - y * b), real)


# Elements as files store them: several to a byte, or of a sparse tensor.


def test_low_bits_come_first() -> None:
    assert packed(np.asarray([[1, -2, 7]], np.int8), 4).tolist() == [0xE1, 0x07]
    assert packed(np.asarray([1, -2, 0, -1, 1], np.int8), 2).tolist() == [0b11_00_10_01, 0b01]


def _dense(size: int) -> dict[str, Any]:
    return {"format": "DENSE", "dense_size": size}


def _compressed(segments: list[int], indices: list[int]) -> dict[str, Any]:
    words = {"array_segments": segments, "array_indices": indices}
    return {"format": "SPARSE_CSR", **{key: ("Int32Vector", {"values": values}) for key, values in words.items()}}


def test_rows_of_compressed_columns() -> None:
    sparsity = {
        "traversal_order": [0, 1],
        "block_map": None,
        "dim_metadata": [_dense(3), _compressed([0, 2, 2, 3], [0, 3, 1])],
    }
    got = densified(np.asarray([5, 6, 7], np.int8), (3, 4), sparsity)
    np.testing.assert_array_equal(got, [[5, 0, 0, 6], [0, 0, 0, 0], [0, 7, 0, 0]])


def test_columns_first() -> None:
    sparsity = {
        "traversal_order": [1, 0],
        "block_map": None,
        "dim_metadata": [_dense(2), _compressed([0, 1, 3], [2, 0, 1])],
    }
    got = densified(np.asarray([5, 6, 7], np.int16), (3, 2), sparsity)
    np.testing.assert_array_equal(got, [[0, 6], [0, 7], [5, 0]])


def test_blocks() -> None:
    """The matrix of the schema's own example: 2x2 blocks, two of four stored."""
    sparsity = {
        "traversal_order": [0, 1, 2, 3],
        "block_map": [0, 1],
        "dim_metadata": [_dense(2), _compressed([0, 1, 2], [1, 0]), _dense(2), _dense(2)],
    }
    got = densified(np.arange(1, 9, dtype=np.int8), (4, 4), sparsity)
    np.testing.assert_array_equal(got, [[0, 0, 1, 2], [0, 0, 3, 4], [5, 6, 0, 0], [7, 8, 0, 0]])
