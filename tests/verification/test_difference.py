"""How results are compared."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tflq.verification.difference import Difference, difference


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
