"""LOGISTIC and TANH: every stored value against the reference kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.harness import argument, one_op
from support.reference import assert_equals_kernel, every_value, refusal

from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, ui8

Quantized = UniformQuantizedType


def model(name: str, source: Quantized, output: Quantized) -> bytes:
    count = 1 << source.storage.bits
    return one_op(name, [argument((1, count), source)], [argument((1, count), output, "y")], {}, 2)


@pytest.mark.parametrize("storage", [i8, ui8], ids=str)
@pytest.mark.parametrize("name", ["tfl.logistic", "tfl.tanh"])
def test_eight_bits(name: str, storage: ScalarType) -> None:
    rng = np.random.default_rng(storage.bits)
    for _ in range(12):
        source = Quantized.of(
            storage, 10 ** rng.uniform(-4, 0.5), int(rng.integers(storage.minimum, storage.maximum + 1))
        )
        scale = 1 / 256 if name == "tfl.logistic" else 10 ** rng.uniform(-2.5, -1)
        output = Quantized.of(storage, scale, int(rng.integers(storage.minimum, storage.maximum + 1)))
        assert_equals_kernel(model(name, source, output), [[every_value(storage.dtype)]])


@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-11, 2.0**-10, 1e-5, 3.1e-4, 0.0177, 1.3])
@pytest.mark.parametrize("name", ["tfl.logistic", "tfl.tanh"])
def test_int16(name: str, scale: float) -> None:
    """A scale of 2^-12 is exact, for TANH 2^-11, too; any other has a multiplier."""
    assert_equals_kernel(model(name, Quantized.of(i16, scale), Quantized.of(i16, 2.0**-15)), [[every_value("int16")]])


@pytest.mark.parametrize(
    ("name", "source", "output", "reason"),
    [
        (
            "tfl.logistic",
            Quantized.of(i8, 1.0),
            Quantized.of(i8, 0.01),
            r"LOGISTIC on i8 demands a result of scale 2\^-8, here 0.01",
        ),
        (
            "tfl.tanh",
            Quantized.of(i16, 1.0),
            Quantized.of(i16, 0.01),
            r"TANH on i16 demands a result of scale 2\^-15, here 0.01",
        ),
        ("tfl.tanh", Quantized.of(i16, 1.0, 1), Quantized.of(i16, 2.0**-15), "TANH on int16 has no zero point, here 1"),
        ("tfl.tanh", Quantized.of(i8, 1.0), Quantized.of(ui8, 1.0), "TANH has no form for i8 → ui8"),
    ],
)
def test_refused(name: str, source: Quantized, output: Quantized, reason: str) -> None:
    assert re.search(reason, refusal(name, [source, output]))
