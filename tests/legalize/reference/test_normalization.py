"""L2_NORMALIZATION: sums of squares of every size against the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, convert_and_compare, one_op
from support.on_tosa import assert_near_kernel
from support.reference import assert_equals_kernel, refusal

from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, ui8

Quantized = UniformQuantizedType
RESULTS = {i8: Quantized.of(i8, 1 / 128), ui8: Quantized.of(ui8, 1 / 128, 128)}


def model(shape: tuple[int, ...], source: Quantized) -> bytes:
    result = argument(shape, RESULTS[source.storage], "y")
    return one_op("tfl.l2_normalization", [argument(shape, source)], [result], {"fused_activation_function": "NONE"}, 2)


@pytest.mark.parametrize("depth", [1, 2, 3, 17, 300, 9000])
@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_rows(storage: ScalarType, depth: int) -> None:
    """Rows of all magnitudes, of few values that are not zero, and of the ends of the range."""
    rng = np.random.default_rng(depth)
    for zero in (storage.minimum, (storage.minimum + storage.maximum + 1) // 2, storage.maximum, storage.minimum + 40):
        rows = [np.full((1, depth), end) for end in (storage.minimum, storage.maximum, zero)]
        for reach in (1, 2, 5, 30, 300):
            some = zero + rng.integers(-reach, reach + 1, (12, depth)) * (rng.random((12, depth)) < rng.random((12, 1)))
            rows.append(np.clip(some, storage.minimum, storage.maximum))
        x = np.concatenate(rows).astype(storage.dtype)
        assert_equals_kernel(model(x.shape, Quantized.of(storage, 0.1, zero)), [[x]])


def test_every_small_sum() -> None:
    """Ones, as many as the row's number."""
    x = (np.arange(400)[None] < np.arange(400)[:, None]).astype(np.int8)
    for sign in (1, -1):
        assert_equals_kernel(model(x.shape, Quantized.of(i8, 1.0)), [[x * np.int8(sign)]])


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (2, 1, 3, 5), (2, 1, 2, 3, 5)])
@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_ranks_and_targets(storage: ScalarType, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(storage.minimum, storage.maximum + 1, shape).astype(storage.dtype)
    made = model(shape, Quantized.of(storage, 0.1, 7))
    convert_and_compare(made, [[x]], fallback="error")
    assert_near_kernel(made, [x])


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ([Quantized.of(i16, 0.1), Quantized.of(i16, 1 / 128)], "L2_NORMALIZATION has no kernel for i16 → i16"),
        ([Quantized.of(i8, 0.1), Quantized.of(i8, 0.1)], "demands a result of scale 2^-7 and zero point 0, here 0.1"),
    ],
)
def test_what_the_kernel_refuses(elements: list[Quantized], reason: str) -> None:
    assert reason in refusal("tfl.l2_normalization", elements)
