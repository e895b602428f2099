"""SOFTMAX: random rows of many depths, scales and betas against the reference kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.harness import argument, one_op
from support.reference import assert_equals_kernel, integer_form, refusal

from tflq.analysis.evaluate.registry import array_of, evaluate_function
from tflq.dialects.tosa.elementwise import ArithmeticRightShift
from tflq.ir.types import ScalarType, Shape, UniformQuantizedType, i8, i16, ui8

Quantized = UniformQuantizedType
FORMS = [(i8, i8), (ui8, ui8), (i8, i16), (ui8, i16), (i16, i16)]


def result(storage: ScalarType) -> Quantized:
    """The parameters the kernel demands, or would if it checked them."""
    return Quantized.of(storage, 2.0**-15 if storage is i16 else 2.0**-8, 0 if storage is i16 else storage.minimum)


def model(shape: Shape, source: Quantized, output: Quantized, beta: float = 1.0) -> bytes:
    version = 3 if output.storage is i16 else 2
    return one_op(
        "tfl.softmax", [argument(shape or (), source)], [argument(shape or (), output, "y")], {"beta": beta}, version
    )


def rows(rng: np.random.Generator, storage: ScalarType, depth: int) -> np.ndarray:
    """Rows of all values, of few neighbouring ones, of one value, and of one maximum among minima."""
    low, high = storage.minimum, storage.maximum
    middle = int(rng.integers(low // 2, high // 2))
    some = np.clip(rng.integers(middle - 6, middle + 6, (40, depth)), low, high)
    peak = np.full((1, depth), low)
    peak[0, depth // 2] = high
    return np.concatenate([rng.integers(low, high + 1, (40, depth)), some, np.full((1, depth), middle), peak]).astype(
        storage.dtype
    )


@pytest.mark.parametrize("depth", [1, 2, 3, 10, 300])
@pytest.mark.parametrize(("source", "output"), FORMS, ids=str)
def test_rows(source: ScalarType, output: ScalarType, depth: int) -> None:
    rng = np.random.default_rng(depth)
    for beta in (1.0, 0.1, 7.5):
        low = -6.0 if source is i16 else -4.0
        x = rows(rng, source, depth)
        element = Quantized.of(source, 10 ** rng.uniform(low, low + 4), 0 if source is i16 else 3)
        assert_equals_kernel(model(x.shape, element, result(output), beta), [[x]])


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
@pytest.mark.parametrize("depth", [511, 512, 1001, 3000])
def test_rows_of_many_equal_elements(storage: ScalarType, depth: int) -> None:
    """By the sum of more than 511 the kernel would shift by 32 and more, where it aborts; no form does."""
    module = integer_form(model((1, depth), Quantized.of(storage, 0.01), result(storage)))
    x = np.full((1, depth), storage.maximum, storage.dtype)
    env = evaluate_function(module.main, {module.main.inputs[0]: x})
    shifts = [op for op in module.main.ops if isinstance(op, ArithmeticRightShift)]
    amounts = [array_of(op.input2) if op.input2.is_constant else env[op.input2] for op in shifts]
    assert shifts
    assert all(0 <= amount.min() <= amount.max() <= 31 for amount in amounts)
    np.testing.assert_array_equal(env[module.main.outputs[0]], storage.minimum + (depth < 512))


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.3, 40.0, 1e4])
def test_every_difference(scale: float) -> None:
    """Pairs of every distance, from where exp is one to where it vanishes."""
    x = np.stack([np.full(256, 127), np.arange(-128, 128)], 1).astype(np.int8)
    assert_equals_kernel(model(x.shape, Quantized.of(i8, scale), result(i8)), [[x]])
    assert_equals_kernel(model(x.shape, Quantized.of(i8, scale), result(i16)), [[x]])


@pytest.mark.parametrize("shape", [(7,), (2, 7), (1, 2, 3, 7), (1, 2, 2, 3, 7)])
@pytest.mark.parametrize("storage", [i8, i16], ids=str)
def test_ranks(shape: tuple[int, ...], storage: ScalarType) -> None:
    x = np.random.default_rng(0).integers(-100, 100, shape).astype(storage.dtype)
    assert_equals_kernel(model(shape, Quantized.of(storage, 0.05), result(storage)), [[x]])


@pytest.mark.parametrize(
    ("source", "output", "reason"),
    [
        (
            Quantized.of(i8, 1.0),
            Quantized.of(i8, 0.01, -128),
            "SOFTMAX on i8 demands a result of scale 0.00390625 and zero point -128",
        ),
        (Quantized.of(i16, 1.0), Quantized.of(i16, 2.0**-15, 1), "SOFTMAX on i16 demands"),
        (Quantized.of(i16, 1.0, 3), result(i16), "SOFTMAX on int16 has no zero point, here 3"),
        (Quantized.of(i8, 1.0), result(ui8), "SOFTMAX has no form for i8 → ui8"),
        (Quantized.of(i8, 1e-9), result(i8), r"beta \* input scale is 1e-09, at most 2\^-26"),
    ],
)
def test_refused(source: Quantized, output: Quantized, reason: str) -> None:
    assert re.search(reason, refusal("tfl.softmax", [source, output], beta=1.0))
