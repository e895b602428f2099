"""Sums of scaled integers are as near to the real sum as is stated."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tflq.numerics.requantize.terms import fit_terms

RATIOS = st.floats(2.0**-12, 2.0**8)


@given(st.lists(RATIOS, min_size=2, max_size=2), st.sampled_from([255, 32768]), st.integers(0, 1 << 30))
def test_within_what_is_said(ratios: list[float], reach: int, seed: int) -> None:
    terms, bits, off = fit_terms([np.asarray([r]) for r in ratios], [reach, reach])
    assume(bits >= 0)
    rng = np.random.default_rng(seed)
    xs = [np.append(rng.integers(-reach, reach, 200, endpoint=True), [-reach, reach]) for _ in ratios]
    total = np.zeros(202, np.int64)
    for x, term in zip(xs, terms, strict=True):
        assert int(term.multiplier.max()) < 1 << 31
        half = 1 << term.shift >> 1
        total += (x * term.multiplier + half) >> term.shift
    assert np.abs(total).max() < 1 << 31
    real = sum(x * r for x, r in zip(xs, ratios, strict=True))
    assert np.abs(total / 2.0**bits - real).max() <= off * (1 + 1e-9)


def test_8_bits_need_no_shifts() -> None:
    terms, _, off = fit_terms([np.asarray([0.5]), np.asarray([0.7])], [255, 255])
    assert [t.shift for t in terms] == [0, 0]
    assert off < 1e-2
