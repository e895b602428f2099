"""How results are compared."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tflq.tools.verify.difference import Difference, Tolerance, difference


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u4", "i8", "f4", "?", "S3", "c8"])
def test_equal_arrays(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    assert difference(array.copy(), array) == Difference(6, 0, 0.0, "absolute" if dtype[0] in "fc" else "LSB")


def test_counts_are_not_wrapped() -> None:
    found = difference(np.array([-128, 0, 5], np.int8), np.array([127, 0, 4], np.int8))
    assert (found.largest, found.differing, found.unit) == (255, 2, "LSB")
    assert str(found) == "up to 255 LSB, 2 of 3 elements (66.67%)"


def test_64_bit_counts() -> None:
    assert difference(np.array([np.iinfo("i8").max]), np.array([np.iinfo("i8").min])).largest == pytest.approx(2**64)


def test_nan_equals_nan_and_nothing_else() -> None:
    nan, inf = math.nan, math.inf
    assert difference(np.array([nan, inf]), np.array([nan, inf])).equal
    found = difference(np.array([nan, 1.0, inf]), np.array([1.0, 1.5, -inf]))
    assert (found.differing, found.largest) == (3, inf)


@pytest.mark.parametrize(
    ("got", "problem"),
    [
        (np.zeros((2, 3), np.int8), "shape (2, 3) instead of (3, 2)"),
        (np.zeros((3, 2), np.uint8), "uint8 instead of int8"),
    ],
)
def test_what_does_not_compare(got: np.ndarray, problem: str) -> None:
    found = difference(got, np.zeros((3, 2), np.int8))
    assert not found.equal
    assert found.problem == str(found) == problem
    json.dumps(found.to_json(), allow_nan=False)


def test_no_elements() -> None:
    found = difference(np.zeros((0, 3)), np.zeros((0, 3)))
    assert (found.equal, found.share) == (True, 0.0)


def test_differences_add_up() -> None:
    total = Difference(10, 1, 3.0, "LSB") + Difference(10, 2, 1.0, "LSB")
    assert total == Difference(20, 3, 3.0, "LSB")
    assert (total + Difference(1, 1, math.nan, "LSB", "shape")).problem == "shape"


def test_measures_of_stored_integers_are_of_their_real_values() -> None:
    want, got = np.array([3, 13, 3, -7], np.int8), np.array([3, 15, 3, -7], np.int8)
    found = difference(got, want, quantization={"scales": [0.5], "zero_points": [3], "axis": 0})
    assert (found.mean, found.largest) == (0.5, 2.0)
    assert found.snr == pytest.approx(10 * math.log10((5**2 + 5**2) / 1**2))
    assert found.cosine == pytest.approx((5 * 6 + 5 * 5) / math.sqrt((25 + 25) * (36 + 25)))


def test_measures_per_axis() -> None:
    want, got = np.array([[2, 2], [4, 4]], np.int8), np.array([[2, 2], [4, 6]], np.int8)
    found = difference(got, want, quantization={"scales": [1.0, 0.5], "zero_points": [0, 0], "axis": 1})
    assert found.snr == pytest.approx(10 * math.log10((2**2 + 1**2 + 4**2 + 2**2) / 1**2))


def test_measures_over_runs_are_those_of_all_elements() -> None:
    rng = np.random.default_rng(0)
    want, got = rng.normal(size=3_000_000), rng.normal(size=3_000_000)
    whole = difference(got, want)
    halves = difference(got[:1_000_001], want[:1_000_001]) + difference(got[1_000_001:], want[1_000_001:])
    for name in ("mean", "cosine", "snr", "largest"):
        assert getattr(halves, name) == pytest.approx(getattr(whole, name))
    assert whole.cosine == pytest.approx(float(got @ want / np.linalg.norm(got) / np.linalg.norm(want)))


def test_the_histogram_has_powers_of_two() -> None:
    want = np.zeros(8, np.int16)
    found = difference(np.array([0, 1, -1, 2, 3, -4, 7, 300], np.int16), want)
    assert found.histogram == {0: 2, 1: 2, 2: 2, 8: 1}
    assert (found + found).to_json()["histogram"] == {"0": 4, "1": 4, "2": 4, "8": 2}
    floats = difference(np.array([0.25, 0.3, 1.0, math.inf]), np.zeros(4))
    assert floats.histogram == {-2: 2, 0: 1}
    assert not difference(want, want, quantization={}).histogram


def test_equal_and_incomparable() -> None:
    array = np.arange(4, dtype=np.int8)
    equal, other = difference(array, array, quantization={}), difference(array[:2], array)
    assert (equal.mean, equal.cosine, equal.snr) == (0.0, 1.0, math.inf)
    assert all(math.isnan(x) for x in (other.mean, other.cosine, other.snr))
    assert equal.to_json()["snr_db"] is None


@pytest.mark.parametrize(
    ("tolerance", "beyond"),
    [(Tolerance(), 2), (Tolerance(lsb=1), 1), (Tolerance(lsb=4), 0), (Tolerance(atol=9, rtol=9), 2)],
)
def test_counts_that_are_accepted(tolerance: Tolerance, beyond: int) -> None:
    found = difference(np.array([0, 1, 4], np.int8), np.zeros(3, np.int8), tolerance)
    assert (found.beyond, found.accepted, found.equal) == (beyond, beyond == 0, False)


@pytest.mark.parametrize(
    ("tolerance", "beyond"),
    [(Tolerance(lsb=99), 3), (Tolerance(atol=0.1), 2), (Tolerance(rtol=0.1), 2), (Tolerance(atol=0.1, rtol=0.1), 1)],
)
def test_floats_that_are_accepted(tolerance: Tolerance, beyond: int) -> None:
    want, got = np.array([0.0, 10.0, 1.0, 5.0]), np.array([0.05, 10.5, math.nan, 5.0])
    assert difference(got, want, tolerance).beyond == beyond


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_an_original_that_is_not_finite_accepts_nothing_else(value: float) -> None:
    want, got = np.asarray([value, 1], np.float32), np.ones(2, np.float32)
    for tolerance in (Tolerance(), Tolerance(rtol=0.1), Tolerance(atol=9, ulps=9)):
        assert not difference(got, want, tolerance).accepted
        assert not difference(want, got, tolerance).accepted
        assert difference(want, want, tolerance).equal


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_largest_number_of_its_type_accepts_no_difference_of_others(dtype: type[np.floating]) -> None:
    want = np.array([np.finfo(dtype).max, 1], dtype)
    assert difference(want / 2, want, Tolerance(ulps=4)).beyond == 1
