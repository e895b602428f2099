"""ext.rescale_mean as kernels and in TOSA: the multiplier for any number of elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lowered import assert_lowered
from support.on_tosa import assert_exact

from tflq.dialects.builder import Builder
from tflq.dialects.quant import RescaleMean
from tflq.ir.ops import Value
from tflq.ir.types import i8, i16, i32

COUNTS = (1, 2, 3, 7, 8, 36, 255, 256, 1000, 65537)


def mean_of(multiplier: int, shift: int, output_zp: int = 0, to: object = i8):  # type: ignore[no-untyped-def]
    def emit(b: Builder, sums: Value, values: Value) -> Value:
        numbers = {"multiplier": multiplier, "shift": shift, "output_zp": output_zp}
        return b.emit(RescaleMean, [sums, values], sums.type.with_element(to), axes=(0, 2), **numbers)  # type: ignore[arg-type]

    return emit


def arrays_of(count: int, shift: int, seed: int = 0) -> list[np.ndarray]:
    """Sums around every rounding, and an array that has the count along its axes 0 and 2."""
    rng = np.random.default_rng(seed)
    reach = min(2**31 - 1, 2**15 * count) >> max(shift, 0)
    near = (np.arange(-40, 40) * count) >> max(shift + 1, 0)
    sums = np.concatenate([near - 1, near, near + 1, rng.integers(-reach, reach, 60), [reach, -reach]])
    return [sums.astype(np.int32).reshape(2, -1), np.zeros((count, 2, 1), np.int8)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("shift", [5, 0, -1, -9, -31])
def test_equals_the_kernel_for_any_count(count: int, shift: int) -> None:
    assert_lowered(mean_of(0x5A5A5A5B, shift, -7), arrays_of(count, shift), [i32, i8])


@settings(max_examples=15, deadline=None)
@given(st.integers(1 << 30, (1 << 31) - 1), st.integers(-31, 0), st.integers(1, 5000), st.integers(0, 99))
def test_any_multiplier(multiplier: int, shift: int, count: int, seed: int) -> None:
    assert_lowered(mean_of(multiplier, shift, 100, i16), arrays_of(count, shift, seed), [i32, i8])


@pytest.mark.parametrize("count", COUNTS[:-1])
def test_is_one_rescale_in_tosa(count: int) -> None:
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    assert "rescale" in assert_exact(mean_of(0x5A5A5A5B, -3, -7), [i32, i8], arrays_of(count, -3))
