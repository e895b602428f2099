"""The polynomials of erf: evaluated in float32, within three units in the last place."""

from __future__ import annotations

from math import erf

import numpy as np

from tflq.numerics.unary import LIMIT, inner, outer


def horner(x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def test_erf_in_float32() -> None:
    x = np.concatenate([np.linspace(0, 6, 60001), np.logspace(-30, 0, 2001)]).astype(np.float32)
    near, far = np.minimum(x, np.float32(1)), np.clip(x, np.float32(1), np.float32(LIMIT))
    below = near + near * horner(near * near, inner())
    got = np.where(x < 1, below, np.float32(1) - np.exp(horner(far, outer())))
    want = np.asarray([erf(v) for v in x.astype(np.float64)])
    error = np.abs(got - want) / np.spacing(want.astype(np.float32))
    assert error.max() < 3


def test_it_is_one_from_the_limit_on() -> None:
    assert np.float32(erf(LIMIT)) == 1
