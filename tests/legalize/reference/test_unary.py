"""EXP, LOG, ELU, GELU, SQRT, RSQRT, ABS, NEG: every stored value against the kernels; others: the real function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, one_op
from support.reference import assert_equals_kernel, evaluated, every_value, integer_form

from tflq.ir.ops import op_class
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, ui8
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize
from tflq.legalize.rule import rules_of

Quantized = UniformQuantizedType

KERNELS: list[tuple[str, ScalarType, int, dict[str, Any]]] = [
    ("exp", i8, 2, {}),
    ("exp", i16, 2, {}),
    ("log", i8, 2, {}),
    ("log", i16, 2, {}),
    ("gelu", i8, 2, {"approximate": False}),
    ("gelu", ui8, 2, {"approximate": False}),
    ("gelu", i16, 2, {"approximate": False}),
    ("gelu", i8, 2, {"approximate": True}),
    ("gelu", i16, 2, {"approximate": True}),
    ("rsqrt", i8, 2, {}),
    ("rsqrt", i16, 3, {}),
    ("sqrt", i8, 2, {}),
    ("sqrt", i16, 2, {}),
    ("abs", i8, 2, {}),
    ("abs", i16, 3, {}),
    ("neg", i8, 1, {}),
    ("neg", i16, 1, {}),
]


def drawn(rng: np.random.Generator, storage: ScalarType, low: float, high: float) -> Quantized:
    zero = 0 if storage is i16 else int(rng.integers(storage.minimum, storage.maximum + 1))
    return Quantized.of(storage, 10 ** rng.uniform(low, high), zero)


def model(
    name: str, x: np.ndarray, source: Quantized, output: Quantized, version: int, attributes: dict[str, Any]
) -> bytes:
    return one_op(f"tfl.{name}", [argument(x.shape, source)], [argument(x.shape, output, "y")], attributes, version)


@pytest.mark.parametrize(("name", "storage", "version", "attributes"), KERNELS)
def test_kernel(name: str, storage: ScalarType, version: int, attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(storage.bits)
    for _ in range(6):
        source = drawn(rng, storage, -5 if storage is i16 else -3, 0.3)
        output = drawn(rng, storage, -5, 0) if name != "abs" else drawn(rng, storage, -1, 0.5)
        x = every_value(storage.dtype)
        if name in ("sqrt", "rsqrt"):  # the kernels stop at negative values
            x = x[:, x[0] >= source.zero_point]
        assert_equals_kernel(model(name, x, source, output, version, attributes), [[x]])


def test_elu() -> None:
    """The reference resolver has no ELU; the others fill the same table."""
    x = every_value("int8")
    for scale in (0.01, 0.2):
        data = model("elu", x, Quantized.of(i8, scale, 5), Quantized.of(i8, scale * 0.7, -60), 1, {})
        assert_equals_kernel(data, [[x]], "BUILTIN_WITHOUT_DEFAULT_DELEGATES")


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("sin", np.sin),
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("round", np.rint),
        ("sign", np.sign),
        ("square", np.square),
    ],
)
def test_without_a_kernel(name: str, function: Any, storage: ScalarType) -> None:
    """Within half a step of the real value."""
    x = every_value(storage.dtype)
    source = Quantized.of(storage, 0.1 if storage is not i16 else 0.001, 0 if storage is i16 else 3)
    output = Quantized.of(storage, 0.05 if storage is not i16 else 0.002, 0 if storage is i16 else 7)
    (got,) = evaluated(integer_form(model(name, x, source, output, 1, {})), [[x]])[0]
    real = function(np.float32(source.scale) * (x.astype(np.float32) - source.zero_point))
    wanted = np.clip(real, *((np.asarray([storage.minimum, storage.maximum]) - output.zero_point) * output.scale))
    assert np.abs((got.astype(np.float64) - output.zero_point) * output.scale - wanted).max() <= output.scale * (
        0.5 + 1e-3
    )


def test_values_without_a_real_result() -> None:
    """log and 1 / sqrt of a negative value: the zero point; of 0: the least and the greatest value."""
    x = np.asarray([[0, 10, 11]], np.uint8)
    element = Quantized.of(ui8, 0.1, 10)
    assert evaluated(integer_form(model("log", x, element, element, 1, {})), [[x]])[0][0][0, :2].tolist() == [10, 0]
    assert evaluated(integer_form(model("rsqrt", x, element, element, 1, {})), [[x]])[0][0][0, :2].tolist() == [10, 255]


def test_the_report_says_that_no_kernel_computes_it() -> None:
    from tflq.formats.tflite.reader import read

    element = Quantized.of(i8, 0.1)
    (decision,) = legalize(read(model("sin", every_value("int8"), element, element, 1, {})), Policy())[1]
    assert decision.reason == "no kernel computes it; the real function, rounded"


def test_kernels_come_before_real_functions() -> None:
    assert [rule.__name__ for rule in rules_of(op_class("tfl.logistic"))] == ["logistic_tanh", "real_function"]
    assert [rule.__name__ for rule in rules_of(op_class("tfl.exp"))] == ["lookup", "real_function"]
