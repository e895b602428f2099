"""LOG_SOFTMAX: random rows of many depths and scales against the reference kernel."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, convert_and_compare, one_op
from support.on_tosa import assert_near_kernel
from support.reference import assert_equals_kernel, refusal

from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, ui8

Quantized = UniformQuantizedType
RESULTS = {i8: Quantized.of(i8, 1 / 16, 127), ui8: Quantized.of(ui8, 1 / 16, 255)}


def model(shape: tuple[int, ...], source: Quantized) -> bytes:
    return one_op("tfl.log_softmax", [argument(shape, source)], [argument(shape, RESULTS[source.storage], "y")], {}, 2)


def rows(rng: np.random.Generator, storage: ScalarType, depth: int) -> np.ndarray:
    """Rows of all values, of few neighbouring ones, of one value, and of one maximum among minima."""
    low, high = storage.minimum, storage.maximum
    middle = int(rng.integers(low // 2, high // 2))
    some = np.clip(rng.integers(middle - 6, middle + 6, (60, depth)), low, high)
    peak = np.full((1, depth), low)
    peak[0, depth // 2] = high
    most = [rng.integers(low, high + 1, (60, depth)), some, np.full((1, depth), middle), peak]
    return np.concatenate(most).astype(storage.dtype)


@pytest.mark.parametrize("depth", [1, 2, 3, 10, 300, 4095])
@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_rows(storage: ScalarType, depth: int) -> None:
    rng = np.random.default_rng(depth)
    for exponent in (-4, -2, -1, 0, 1):
        x = rows(rng, storage, depth)
        assert_equals_kernel(model(x.shape, Quantized.of(storage, 10 ** rng.uniform(exponent, exponent + 1), 3)), [[x]])


def test_every_number_of_equal_values() -> None:
    """Sums of every size: the row's number of zeros among values that vanish, or that count for a little."""
    within = np.arange(700)[None] <= np.arange(700)[:, None]
    for below, scale in ((-128, 0.2), (-100, 0.05), (-3, 0.7)):
        x = np.where(within, 0, below).astype(np.int8)
        assert_equals_kernel(model(x.shape, Quantized.of(i8, scale)), [[x]])


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.12, 0.13, 1.9, 7.7, 15.9, 16.1, 20.0, 40.0, 1e4])
def test_every_difference(scale: float) -> None:
    """Pairs of every distance, alone and among as many equal values as make the largest logarithm."""
    x = np.stack([np.full(256, 127), np.arange(-128, 128)], 1).astype(np.int8)
    assert_equals_kernel(model(x.shape, Quantized.of(i8, scale)), [[x]])
    x = np.concatenate([np.repeat(x[:, :1], 4000, 1), x], 1)
    assert_equals_kernel(model(x.shape, Quantized.of(i8, scale)), [[x]])


@pytest.mark.parametrize("shape", [(7,), (2, 7), (1, 2, 3, 7), (1, 2, 2, 3, 7)])
@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_ranks_and_targets(storage: ScalarType, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(storage.minimum, storage.maximum + 1, shape).astype(storage.dtype)
    made = model(shape, Quantized.of(storage, 0.05, 4))
    convert_and_compare(made, [[x]], fallback="error")
    assert_near_kernel(made, [x])


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ([Quantized.of(i16, 0.1), Quantized.of(i16, 1 / 16)], "LOG_SOFTMAX has no kernel for i16 → i16"),
        ([Quantized.of(i8, 0.1), Quantized.of(i8, 1 / 16)], "demands a result of scale 1/16 and zero point 127"),
        ([Quantized.of(i8, 1e-9), Quantized.of(i8, 1 / 16, 127)], "beta * input scale is 1e-09"),
    ],
)
def test_what_the_kernel_refuses(elements: list[Quantized], reason: str) -> None:
    assert reason in refusal("tfl.log_softmax", elements)
