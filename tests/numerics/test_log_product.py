"""Products by logarithms."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tflq.numerics.float_product import FRACTION_BITS, MANTISSA_BITS, ZERO, log_table, powers_of_two


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
