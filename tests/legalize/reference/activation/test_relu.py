"""RELU and its kin, LEAKY_RELU, PRELU, HARD_SWISH: every stored value against the reference kernels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, one_op
from support.reference import assert_equals_kernel, every_value, integer_form, refusal

from tflq.base.errors import UnsupportedError
from tflq.ir.types import ScalarType, UniformQuantizedType, f32, i8, i16, i32, ui8

Quantized = UniformQuantizedType


def drawn(rng: np.random.Generator, storage: ScalarType, scale: float | None = None) -> Quantized:
    """Any zero point (none on int16); a scale within 30 times the given one, or any."""
    zero = 0 if storage is i16 else int(rng.integers(storage.minimum, storage.maximum + 1))
    exponent = rng.uniform(-3, 0.3) if scale is None else np.log10(scale) + rng.uniform(-1.5, 1.5)
    return Quantized.of(storage, 10**exponent, zero)


def unary(
    name: str, source: Quantized, output: Quantized, attributes: dict[str, Any] | None = None, version: int = 2
) -> bytes:
    count = 1 << min(source.storage.bits, 16)
    return one_op(name, [argument((1, count), source)], [argument((1, count), output, "y")], attributes or {}, version)


def assert_every_value(
    name: str, storage: ScalarType, attributes: dict[str, Any] | None = None, version: int = 2
) -> None:
    rng = np.random.default_rng(len(name) + storage.bits)
    for _ in range(6):
        source = drawn(rng, storage)
        model = unary(name, source, drawn(rng, storage, source.scale), attributes, version)
        assert_equals_kernel(model, [[every_value(storage.dtype)]])


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("name", ["tfl.relu", "tfl.relu6"])
def test_relu(name: str, storage: ScalarType) -> None:
    assert_every_value(name, storage)


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
@pytest.mark.parametrize("name", ["tfl.relu_n1_to_1", "tfl.relu_0_to_1", "tfl.hard_swish"])
def test_eight_bits_only(name: str, storage: ScalarType) -> None:
    assert_every_value(name, storage, version=1)


@pytest.mark.parametrize("alpha", [0.1, 1.5, -0.3, -2.5, 0.0])
@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_leaky_relu(storage: ScalarType, alpha: float) -> None:
    assert_every_value("tfl.leaky_relu", storage, {"alpha": alpha})


@pytest.mark.parametrize("shape", [(1, 1, 8), (1, 6, 8), (5, 6, 8), (1,)])
@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_prelu(storage: ScalarType, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    weight = ui8 if storage is ui8 else i8
    for _ in range(4):
        source = drawn(rng, storage)
        output, slope = drawn(rng, storage, source.scale), drawn(rng, weight, 0.01)
        x = rng.integers(storage.minimum, storage.maximum + 1, (5, 6, 8)).astype(storage.dtype)
        alpha = rng.integers(weight.minimum, weight.maximum + 1, shape).astype(weight.dtype)
        operands = [argument(x.shape, source), const(alpha, slope, "alpha")]
        assert_equals_kernel(one_op("tfl.prelu", operands, [argument(x.shape, output, "y")], {}), [[x]])


@pytest.mark.parametrize(
    ("name", "source", "output", "reason"),
    [
        ("tfl.relu_n1_to_1", Quantized.of(i16, 1.0), Quantized.of(i16, 1.0), "RELU_N1_TO_1 has no form for i16 → i16"),
        ("tfl.hard_swish", Quantized.of(i16, 1.0), Quantized.of(i16, 1.0), "HARD_SWISH has no form for i16 → i16"),
        ("tfl.hard_swish", Quantized.of(i8, 1.0), Quantized.of(i8, 0.001), "is 7.81, at least one"),
        ("tfl.relu", Quantized.of(i32, 1.0), Quantized.of(i32, 1.0), "RELU has no form for i32 → i32"),
        ("tfl.leaky_relu", Quantized.of(i16, 1.0, 1), Quantized.of(i16, 1.0), "int16 has no zero point, here 1"),
    ],
)
def test_refused(name: str, source: Quantized, output: Quantized, reason: str) -> None:
    assert re.search(reason, refusal(name, [source, output]))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("source", "alpha"), [(i8, ui8), (ui8, i8), (i16, i16), (i16, ui8), (ui8, i16)], ids=str)
def test_prelu_reads_the_bytes_of_an_alpha_of_another_type(
    source: ScalarType, alpha: ScalarType, constant: bool
) -> None:
    x, w = Quantized.of(source, 0.05, 128 if source is ui8 else 0), Quantized.of(alpha, 0.01)
    slopes = np.random.default_rng(4).integers(alpha.minimum, alpha.maximum, (3, 7), endpoint=True)
    operands = [argument((5, 3, 7), x), const(slopes, w) if constant else argument((3, 7), w, "alpha")]
    model = one_op("tfl.prelu", operands, [argument((5, 3, 7), Quantized.of(source, 0.3), "y")], {})
    batches = edge_inputs([v for v in operands if v.buffer is None])
    conversion = convert_and_compare(model, batches, fallback="error")
    assert f"as {alpha}, as" in conversion.report.rows[0].warning


def test_float_alpha_is_refused() -> None:
    operands = [argument((1, 4), Quantized.of(i8, 1.0)), argument((1, 4), f32, "alpha")]
    with pytest.raises(UnsupportedError, match=r"tensor 'alpha' \(f32\) has no per-layer quantization parameters"):
        integer_form(one_op("tfl.prelu", operands, [argument((1, 4), Quantized.of(i8, 1.0), "y")], {}))
