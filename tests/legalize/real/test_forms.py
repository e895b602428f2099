"""Comparisons, functions of one tensor and reductions that no kernel computes, without floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, interpret, one_op, real_of

import tflq
from tflq.ir.ops import Value
from tflq.ir.types import (
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i1,
    i8,
    i16,
    i32,
    parameters,
    ui8,
)

Quantized = UniformQuantizedType
Element = UniformQuantizedType | UniformQuantizedPerAxisType
AXIS = UniformQuantizedPerAxisType.of(i8, 1, [0.02, 0.05, 0.11, 0.06], [3, 0, -7, 0])


def stored(value: Value, counts: np.ndarray) -> np.ndarray:
    storage = value.type.storage
    scale, zero = parameters(value.type)
    scaled = counts / scale.astype(np.float64)
    rounded = np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)
    return np.clip(rounded + zero, storage.minimum, storage.maximum).astype(np.int64)


def assert_near(
    name: str,
    operands: Sequence[Value],
    result: Value,
    function: Callable[..., np.ndarray],
    attributes: dict[str, Any] | None = None,
    *,
    tolerance: int = 1,
    semantics: str = "interpreter",
) -> None:
    """The conversion, without floats, is near a function of real values."""
    inputs = [v for v in operands if v.buffer is None]
    model = one_op(f"tfl.{name}", operands, [result], attributes or {})
    arrays = edge_inputs(inputs)[0]
    conversion = tflq.convert(model, fallback="error", semantics=semantics)  # type: ignore[arg-type]
    (got,) = interpret(conversion.data, [arrays])[0]
    wanted = function(*(real_of(v, a) for v, a in zip(inputs, arrays, strict=True)))
    if result.type.storage is i1:
        np.testing.assert_array_equal(got, wanted)
    else:
        assert np.abs(got - stored(result, wanted)).max() <= tolerance


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
@pytest.mark.parametrize("other", [Quantized.of(i8, 0.04, 3), Quantized.of(i16, 0.000625), Quantized.of(ui8, 0.02, 9)])
def test_comparison(name: str, other: Quantized) -> None:
    """Of every pair of one channel, ties among them."""
    function: dict[str, Callable[..., np.ndarray]] = {"not_equal": np.not_equal, "equal": np.equal}
    operands = [argument((60, 4), AXIS), argument((40, 1, 1), other, "y")]
    function |= {"less": np.less, "less_equal": np.less_equal}
    function |= {"greater": np.greater, "greater_equal": np.greater_equal}
    assert_near(name, operands, argument((40, 60, 4), i1, "z"), function[name])


@pytest.mark.parametrize(
    "output", [Quantized.of(i8, 0.1, 9), Quantized.of(i16, 0.0003), AXIS], ids=["i8", "i16", "axis"]
)
@pytest.mark.parametrize(
    "source", [Quantized.of(ui8, 0.03, 90), Quantized.of(i16, 0.0002), AXIS], ids=["ui8", "i16", "axis"]
)
@pytest.mark.parametrize("name", ["tanh", "abs", "square", "relu6"])
def test_function_of_one(name: str, source: Element, output: Element) -> None:
    if source.storage is output.storage and source is not AXIS:
        pytest.skip("a kernel has it")
    functions: dict[str, Callable[..., np.ndarray]] = {"tanh": np.tanh, "abs": np.abs, "square": np.square}
    functions["relu6"] = lambda x: np.clip(x, 0, 6)
    if name == "tanh" and output is not AXIS:
        output = Quantized.of(output.storage, 2.0 ** (1 - output.storage.bits))
    assert_near(name, [argument((300, 4), source)], argument((300, 4), output, "y"), functions[name])


@pytest.mark.parametrize("name", ["sum", "mean", "reduce_max", "reduce_min", "reduce_prod"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reduction_along_and_across_the_quantized_axis(name: str, axis: int) -> None:
    function = getattr(np, {"reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod"}.get(name, name))
    y = argument((4,) if axis == 0 else (3,), Quantized.of(i16, 0.004), "y")
    operands = [argument((3, 4), AXIS), const(np.asarray([axis]), i32)]
    assert_near(name, operands, y, lambda x: function(x, axis=axis), {"keep_dims": False})


@pytest.mark.parametrize("zeros", [[3, 0, -7, 0], [1, 4, 9, -2]])
def test_an_extreme_of_the_same_scales(zeros: list[int]) -> None:
    """Only a result with the zero points of the operand, too, takes its stored integers."""
    y = argument((4,), UniformQuantizedPerAxisType.of(i8, 0, AXIS.scales, zeros), "y")
    operands = [argument((3, 4), AXIS), const(np.asarray([0]), i32)]
    assert_near("reduce_max", operands, y, lambda x: x.max(0), {"keep_dims": False}, tolerance=0)


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("narrow", [False, True])
def test_fake_quant(storage: ScalarType, narrow: bool) -> None:
    zero = 128 if storage is ui8 else 0
    x, y = Quantized.of(storage, 8 / 2**storage.bits, zero), Quantized.of(storage, 6 / 2**storage.bits, zero)
    options = {"min": -2.1, "max": 1.93, "num_bits": 4, "narrow_range": narrow}
    least, step = (1 if narrow else 0), 4.03 / (14 if narrow else 15)
    low = (least - np.floor(least + 2.1 / step + 0.5)) * step

    def function(v: np.ndarray) -> np.ndarray:
        inside = np.clip(v, low, low + (15 - least) * step) - low
        return np.floor(inside / step + 0.5) * step + low

    assert_near("fake_quant", [argument((900,), x)], argument((900,), y, "y"), function, options, tolerance=1)


@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_16_bits_and_a_number(name: str) -> None:
    number = const(np.asarray(40, np.int8), Quantized.of(i8, 0.05))
    operands = [argument((500,), Quantized.of(i16, 0.0001)), number]
    two = float(np.float32(0.05) * np.float32(40))
    function = (lambda x: np.power(x, two)) if name == "pow" else (lambda x: np.arctan2(x, two))
    assert_near(name, operands, argument((500,), Quantized.of(i16, 0.0003), "y"), function)


def test_divisors_of_zero_stop_nothing() -> None:
    element = Quantized.of(i16, 0.01)
    operands = [argument((3,), element), argument((3,), element, "y")]
    for name, wanted in (("floor_div", [32767, 0, -32768]), ("floor_mod", [0, 0, 0])):
        model = one_op(f"tfl.{name}", operands, [argument((3,), element, "z")], {})
        data = tflq.convert(model, semantics="real").data
        (got,) = interpret(data, [[np.asarray([500, 0, -7], np.int16), np.zeros(3, np.int16)]])[0]
        np.testing.assert_array_equal(got, wanted)
