"""Operators without a kernel for quantized tensors: the integer form against the real function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, interpret, one_op
from support.on_tosa import lowered_names
from support.reference import every_value, integer_form, refusal

import tflq
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, i32, ui8

Quantized = UniformQuantizedType
TYPES = [i8, ui8, i16]


def dequantized(x: np.ndarray, element: Quantized) -> np.ndarray:
    """As DEQUANTIZE gives it: rounded to float32."""
    whole = (x.astype(np.int64) - element.zero_point).astype(np.float32)
    return (np.float32(element.scale) * whole).astype(np.float64)


def quantized(y: np.ndarray, element: Quantized) -> np.ndarray:
    """The nearest stored value; the zero point where the real result is not a number."""
    storage = element.storage
    with np.errstate(all="ignore"):
        steps = np.nan_to_num(y / np.float64(np.float32(element.scale)), nan=0.0, posinf=1e9, neginf=-1e9)
    rounded = np.sign(steps) * np.floor(np.abs(steps) + 0.5)
    return np.clip(rounded + element.zero_point, storage.minimum, storage.maximum).astype(np.int64)


def draw(rng: np.random.Generator, element: Quantized, shape: tuple[int, ...]) -> np.ndarray:
    storage = element.storage
    return rng.integers(storage.minimum, storage.maximum, shape, endpoint=True).astype(storage.dtype)


def assert_near(model: bytes, arrays: list[np.ndarray], want: np.ndarray, tolerance: int) -> None:
    """The converted model, without floats, is within `tolerance` of the real result."""
    (got,) = interpret(tflq.convert(model, fallback="error").data, [arrays])[0]
    assert np.abs(got.astype(np.int64) - want).max() <= tolerance


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
@pytest.mark.parametrize("name", ["pow", "atan2", "squared_difference"])
def test_every_pair(name: str, storage: ScalarType) -> None:
    if (name, storage) == ("squared_difference", i8):
        pytest.skip("the kernel has it")
    functions: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "pow": np.power,
        "atan2": np.arctan2,
        "squared_difference": lambda x, y: (x - y) ** 2,
    }
    x, y = (g.reshape(1, -1) for g in np.meshgrid(every_value(storage.dtype)[0], every_value(storage.dtype)[0]))
    first, second = Quantized.of(storage, 0.03, 40), Quantized.of(storage, 0.0625, 100)
    output = Quantized.of(storage, 0.02, 20)
    operands = [argument(x.shape, first), argument(y.shape, second, "y")]
    model = one_op(f"tfl.{name}", operands, [argument(x.shape, output, "z")], {})
    with np.errstate(all="ignore"):
        want = quantized(functions[name](dequantized(x, first), dequantized(y, second)), output)
    assert_near(model, [x, y], want, 0)


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
def test_cumulative_sums(storage: ScalarType, exclusive: bool, reverse: bool) -> None:
    rng = np.random.default_rng(1)
    zero = 0 if storage is i16 else 17
    source, output = Quantized.of(storage, 0.1, zero), Quantized.of(storage, 0.35, zero)
    x = draw(rng, source, (3, 9, 4))
    operands = [argument(x.shape, source), const(np.asarray(1), i32)]
    options = {"exclusive": exclusive, "reverse": reverse}
    model = one_op("tfl.cumsum", operands, [argument(x.shape, output, "y")], options)
    steps = dequantized(x[:, ::-1] if reverse else x, source)
    sums = np.cumsum(steps, 1) - (steps if exclusive else 0)
    want = quantized(sums[:, ::-1] if reverse else sums, output)
    assert_near(model, [x], want, 1)


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("factors", [(1, 1), (1, 1, 1, 1), (1, 3.7, 0.01), (1, 1e-4), (40, 1, 1, 1, 1)], ids=str)
def test_sums_of_many(storage: ScalarType, factors: tuple[float, ...]) -> None:
    rng = np.random.default_rng(2)
    sources = [Quantized.of(storage, 0.1 * f, 0 if storage is i16 else 9 + i) for i, f in enumerate(factors)]
    output = Quantized.of(storage, 0.06 * sum(factors), 0 if storage is i16 else 5)
    arrays = [draw(rng, e, (2, 300)) for e in sources]
    operands = [argument((2, 300), e, f"x{i}") for i, e in enumerate(sources)]
    model = one_op("tfl.add_n", operands, [argument((2, 300), output, "y")], {})
    want = quantized(np.sum([dequantized(x, e) for x, e in zip(arrays, sources, strict=True)], axis=0), output)
    assert_near(model, arrays, want, 1)


def test_stored_int32_is_added() -> None:
    element = Quantized.of(i32, 0.1)
    x = np.arange(-12, 12, dtype=np.int32).reshape(2, 12)
    operands = [argument(x.shape, element, f"x{i}") for i in range(3)]
    model = one_op("tfl.add_n", operands, [argument(x.shape, element, "y")], {})
    conversion = convert_and_compare(model, [[x, x * 3, x - 7]], fallback="error")
    assert "adds the stored integers" in conversion.report.rows[0].warning


def test_sums_are_integers_on_tosa() -> None:
    operands = [argument((2, 9), Quantized.of(i8, s), f"x{i}") for i, s in enumerate((0.1, 0.2))]
    model = one_op("tfl.add_n", operands, [argument((2, 9), Quantized.of(i8, 0.2), "y")], {})
    assert "rescale" in lowered_names(integer_form(model))


def test_scales_too_far_above_the_result() -> None:
    elements = [Quantized.of(i16, 1e4), Quantized.of(i16, 1.0), Quantized.of(i16, 1e-3)]
    assert "too far above" in refusal("tfl.add_n", elements)
