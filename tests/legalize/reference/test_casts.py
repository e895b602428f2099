"""QUANTIZE and DEQUANTIZE against the reference kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.harness import argument, convert_and_compare, edge_inputs, interpret, one_op
from support.reference import assert_equals_kernel, every_value, refusal

import tflq
from tflq.ir.ops import Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i8,
    i16,
    i32,
    i64,
    ui8,
)

Quantized = UniformQuantizedType
INTEGERS = [
    (i8, i8),
    (i8, ui8),
    (i8, i16),
    (ui8, i8),
    (ui8, ui8),
    (ui8, i16),
    (i16, i8),
    (i16, i16),
    (i16, i32),
    (i32, i8),
    (i32, i16),
]


def model(name: str, shape: tuple[int, ...], source: ElementType, result: ElementType) -> bytes:
    return one_op(name, [argument(shape, source)], [argument(shape, result, "y")], {}, 2)


def values(rng: np.random.Generator, storage: ScalarType) -> np.ndarray:
    if storage is not i32:
        return every_value(storage.dtype)
    ends = np.array([-(2**31), 2**31 - 1, 0, 1, -1])
    drawn = [rng.integers(-(2**31), 2**31, 2000), rng.integers(-3000, 3000, 2000)]
    return np.concatenate([ends, *drawn]).astype(np.int32)[None]


@pytest.mark.parametrize(("source", "result"), INTEGERS, ids=str)
def test_integer_to_integer(source: ScalarType, result: ScalarType) -> None:
    rng = np.random.default_rng(source.bits + result.bits)
    symmetric = source is i16 and result is i16

    def zero_point(storage: ScalarType) -> int:
        return 0 if symmetric else int(rng.integers(max(storage.minimum, -200), min(storage.maximum, 200) + 1))

    for _ in range(8):
        first = Quantized.of(source, 10 ** rng.uniform(-4, 1), zero_point(source))
        second = Quantized.of(result, first.scale * 10 ** rng.uniform(-3, 3), zero_point(result))
        x = values(rng, source)
        assert_equals_kernel(model("tfl.quantize", x.shape, first, second), [[x]])


@pytest.mark.parametrize(("source", "result", "zero_points"), [(i8, ui8, (-5, 123)), (ui8, i8, (123, -5))], ids=str)
def test_same_scale_flips_the_sign_bit(source: ScalarType, result: ScalarType, zero_points: tuple[int, int]) -> None:
    first, second = (Quantized.of(s, 0.5, z) for s, z in zip((source, result), zero_points, strict=True))
    x = every_value(source.dtype)
    assert_equals_kernel(model("tfl.quantize", x.shape, first, second), [[x]])


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_float_to_integer(storage: ScalarType) -> None:
    """Random values, halves between two counts, and values beyond the type's range."""
    rng = np.random.default_rng(storage.bits)
    for scale in (0.001, 0.25, 3.7):
        element = Quantized.of(storage, scale, int(rng.integers(max(storage.minimum, -200), 100)))
        halves = (np.arange(-300, 300) + 0.5) * scale
        x = np.concatenate([rng.normal(0, 200 * scale, 1000), halves, [0.0, -0.0, 1e6 * scale, -1e6 * scale]]).astype(
            np.float32
        )[None]
        assert_equals_kernel(model("tfl.quantize", x.shape, f32, element), [[x]])


@pytest.mark.parametrize("zero_point", [0, 3, -3])
def test_float_beyond_int32(zero_point: int) -> None:
    """The kernel's conversion gives the smallest int32 for it, and adding the zero point wraps."""
    x = np.asarray([[3e9, -3e9, 1e30, -1e30, np.inf, -np.inf, np.nan, 2147483520.0, -2147483648.0]], np.float32)
    assert_equals_kernel(model("tfl.quantize", x.shape, f32, Quantized.of(i8, 1.0, zero_point)), [[x]])


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_float_to_integer_per_axis(storage: ScalarType) -> None:
    element = UniformQuantizedPerAxisType.of(storage, 1, [0.1, 0.5, 2.0], 0 if storage is i16 else [3, 0, 9])
    x = np.random.default_rng(0).normal(0, 40, (5, 3, 4)).astype(np.float32)
    assert_equals_kernel(model("tfl.quantize", x.shape, f32, element), [[x]])


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_integer_to_float(storage: ScalarType) -> None:
    x = every_value(storage.dtype)
    for scale in (0.1, 0.0033):
        element = Quantized.of(storage, scale, 0 if storage is i16 else 17)
        assert_equals_kernel(model("tfl.dequantize", x.shape, element, f32), [[x]])


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
def test_integer_to_float_per_axis(storage: ScalarType) -> None:
    element = UniformQuantizedPerAxisType.of(storage, 1, [0.1, 0.5, 2.3], [3, 0, 9])
    x = np.random.default_rng(0).integers(0, 100, (5, 3, 4)).astype(storage.dtype)
    assert_equals_kernel(model("tfl.dequantize", x.shape, element, f32), [[x]])


def test_without_a_kernel_it_is_that_of_the_others() -> None:
    """int16 to uint8 is int16 to int8, plus 128."""
    x = every_value("int16")
    got = []
    for second in (Quantized.of(ui8, 0.09375, 130), Quantized.of(i8, 0.09375, 2)):
        conversion = tflq.convert(model("tfl.quantize", x.shape, Quantized.of(i16, 0.0625), second), fallback="error")
        got.append(interpret(conversion.data, [[x]])[0][0].astype(int))
    np.testing.assert_array_equal(got[0], got[1] + 128)


@pytest.mark.parametrize(
    ("source", "result", "reason"),
    [
        (Quantized.of(i64, 1.0), Quantized.of(ui8, 1.0), "QUANTIZE has no form for i64 → ui8"),
    ],
)
def test_refused(source: ElementType, result: ElementType, reason: str) -> None:
    assert re.search(reason, refusal("tfl.quantize", [source, result]))


@pytest.mark.parametrize("storage", [i8, i16])
def test_a_scalar_whose_shape_is_not_stated(storage: ScalarType) -> None:
    """As converters write a scalar input before a QUANTIZE of theirs."""
    x = Value(TensorType(None, f32), "x")
    model = one_op("tfl.quantize", [x], [argument((), Quantized.of(storage, 0.1), "y")], {})
    convert_and_compare(model, edge_inputs([argument((), f32)]))
