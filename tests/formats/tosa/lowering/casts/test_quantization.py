"""QUANTIZE and DEQUANTIZE on TOSA's operators: the kernels' numbers for every float."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, interpret, one_op
from support.running import reference, validate

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import UnsupportedError
from tflq.conversion.convert import lower as lower_module
from tflq.formats.backend import backend
from tflq.formats.options import Options
from tflq.formats.tflite.reader import read
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.formats.tosa.text import mlir_text
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import (
    QuantizedType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f32,
    i4,
    i8,
    i16,
    i32,
    ui8,
)
from tflq.numerics.float_basics import float_steps, from_steps, quantize_thresholds

INFINITY = 0x7F800000
ENDS = np.asarray([np.inf, -np.inf, np.nan, 0, -0.0, 3.4e38, -3.4e38, 1e-45], np.float32)


def conversion(name: str, operand: TensorType, result: TensorType) -> Module:
    x, y = Value(operand, "x"), Value(result, "y")
    attributes = {"rounding": "half_away"} if name == "quant.qcast" else {}
    return Module([Function("main", [x], [y], [Op(name, [x], [y], attributes)])])


def both(module: Module, array: np.ndarray) -> tuple[np.ndarray, Module, np.ndarray]:
    """What the integer form computes, the lowered module, and what that computes."""
    lowered, _ = lower(module, Target())
    results = []
    for function in (module.main, lowered.main):
        with np.errstate(all="ignore"):
            results.append(evaluate_function(function, {function.inputs[0]: array})[function.outputs[0]])
    return results[0], lowered, results[1]


def quantize(x: np.ndarray, element: QuantizedType) -> tuple[np.ndarray, Module, np.ndarray]:
    return both(conversion("quant.qcast", TensorType(x.shape, f32), TensorType(x.shape, element)), x)


def hard_floats(storage: ScalarType, scale: float, zero_point: int, seed: int) -> np.ndarray:
    """All thresholds and those of wrapping, two numbers around each, and random ones of all sizes."""
    rng = np.random.default_rng(seed)
    levels = np.arange(storage.minimum - zero_point - 2, storage.maximum - zero_point + 3)
    wraps = np.asarray([2**31 - zero_point, -(2**31) - zero_point, 2**31, -(2**31)])
    steps = float_steps(quantize_thresholds(np.float32(scale), np.concatenate([levels, wraps])))
    near = (steps[:, None] + np.arange(-2, 3)).reshape(-1)
    random = rng.integers(-INFINITY, INFINITY, 20_000, endpoint=True)
    with np.errstate(over="ignore"):
        usual = (rng.normal(0, storage.maximum, 20_000) * scale).astype(np.float32)
    return np.concatenate([from_steps(np.clip(np.concatenate([near, random]), -INFINITY, INFINITY)), usual, ENDS])


@pytest.mark.parametrize("storage", [i8, ui8, i16])
@pytest.mark.parametrize("seed", range(12))
def test_quantize_is_the_kernel(storage: ScalarType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = float([np.exp(rng.uniform(-12, 6)), 10.0 ** rng.uniform(-44, 38), 2.0 ** rng.integers(-20, 20)][seed % 3])
    zero_point = 0 if seed % 4 == 0 else int(rng.integers(storage.minimum, storage.maximum, endpoint=True))
    element = UniformQuantizedType.of(storage, scale, zero_point)
    want, _, got = quantize(hard_floats(storage, element.scale, zero_point, seed), element)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("storage", [i8, ui8, i16])
@pytest.mark.parametrize("scale", [0.0123, 0.25, 3e-41, 2.4e37])
def test_quantize_on_the_reference_model(storage: ScalarType, scale: float) -> None:
    zero_point = {i8: -5, ui8: 131, i16: 0}[storage]
    element = UniformQuantizedType.of(storage, scale, zero_point)
    x = hard_floats(storage, element.scale, zero_point, 1)
    want, lowered, _ = quantize(x, element)
    np.testing.assert_array_equal(reference(lowered, [x])[0], want)


@pytest.mark.parametrize("storage", [i8, ui8, i16])
def test_quantize_agrees_with_the_interpreter(storage: ScalarType) -> None:
    element = UniformQuantizedType.of(storage, 0.0371, {i8: -17, ui8: 140, i16: 0}[storage])
    x = hard_floats(storage, element.scale, element.zero_point, 2)
    model = one_op("tfl.quantize", [argument(x.shape, f32)], [argument(x.shape, element, "y")], {})
    lowered, _ = lower_module(read(model), Options(backend("mlir"), target=Target()))
    got = reference(lowered, [x])[0]
    np.testing.assert_array_equal(got, interpret(model, [[x]])[0][0])


@pytest.mark.parametrize("storage", [i8, ui8, i16])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("powers", [False, True])
def test_quantize_per_axis(storage: ScalarType, axis: int, powers: bool) -> None:
    rng = np.random.default_rng(axis)
    shape = tuple(6 if i == axis else 20 for i in range(3))
    scales = 2.0 ** rng.integers(-6, 3, 6) if powers else np.exp(rng.uniform(-6, 3, 6))
    zero_points = rng.integers(storage.minimum, storage.maximum, 6, endpoint=True)
    element = UniformQuantizedPerAxisType.of(storage, axis, scales, zero_points)
    x = (rng.normal(0, 1, shape) * storage.maximum * scales.max() / 4).astype(np.float32)
    x.reshape(-1)[: ENDS.size] = ENDS
    want, lowered, got = quantize(x, element)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(reference(lowered, [x])[0], want)


def test_quantize_in_blocks() -> None:
    rng = np.random.default_rng(0)
    scales = rng.uniform(0.01, 0.3, (2, 3))
    element = UniformQuantizedSubChannelType.of(i8, (0, 1), (4, 5), scales, rng.integers(-20, 20, (2, 3)))
    x = rng.normal(0, 9, (8, 15)).astype(np.float32)
    want, _, got = quantize(x, element)
    np.testing.assert_array_equal(got, want)


def test_many_channels_of_int16_need_no_table() -> None:
    rng = np.random.default_rng(0)
    element = UniformQuantizedPerAxisType.of(i16, 1, rng.uniform(1e-4, 1e-2, 64))
    x = rng.normal(0, 30, (500, 64)).astype(np.float32)
    want, lowered, got = quantize(x, element)
    np.testing.assert_array_equal(got, want)
    assert all(op.name != "tosa.gather" for op in lowered.ops())


@pytest.mark.parametrize("zero_point", [0, 100_000])
def test_quantize_to_int32(zero_point: int) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1e3, 50_000), rng.normal(0, 4e6, 50_000)]).astype(np.float32)
    want, _, got = quantize(x, UniformQuantizedType.of(i32, 0.0123, zero_point))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("storage", [i8, ui8, i16])
@pytest.mark.parametrize("per_axis", [False, True])
def test_dequantize(storage: ScalarType, per_axis: bool) -> None:
    x = np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype).reshape(-1, 4)
    element: QuantizedType = UniformQuantizedType.of(storage, 0.0371, 7)
    if per_axis:
        element = UniformQuantizedPerAxisType.of(storage, 1, [0.1, 0.2, 3e-5, 17], [0, 3, 9, 5])
    want, lowered, got = both(conversion("quant.dcast", TensorType(x.shape, element), TensorType(x.shape, f32)), x)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(reference(lowered, [x])[0], want)


def test_dequantized_constants_are_constants() -> None:
    element = UniformQuantizedSubChannelType.of(i4, (1,), (2,), [[0.5, 0.25]], 1)
    stored = Value(TensorType((1, 4), element), "w")
    stored.buffer = Buffer.of(np.asarray([0x21, 0x8F], np.uint8))
    y = Value(TensorType((1, 4), f32), "y")
    lowered, _ = lower(Module([Function("main", [], [y], [Op("quant.dcast", [stored], [y])])]), Target())
    (op,) = lowered.main.ops
    assert op.name == "tosa.identity"
    np.testing.assert_array_equal(op.operand(0).array, np.asarray([[0, 0.5, -0.5, -2.25]], np.float32))


def test_an_integer_target_refuses_by_name() -> None:
    element = UniformQuantizedType.of(i8, 0.5)
    module = conversion("quant.qcast", TensorType((3,), f32), TensorType((3,), element))
    with pytest.raises(UnsupportedError, match="QUANTIZE in float needs the profile pro_fp"):
        lower(module, Target(profiles=frozenset({"pro_int"})))


def test_no_tensor_of_int4_is_computed() -> None:
    module = conversion("quant.qcast", TensorType((3,), f32), TensorType((3,), UniformQuantizedType.of(i4, 0.5)))
    with pytest.raises(UnsupportedError, match="i4"):
        lower(module, Target())


@pytest.mark.parametrize("storage", [i8, ui8, i16, i32])
@pytest.mark.parametrize("scale", [0.0123, 0.25])
def test_valid_without_extensions(storage: ScalarType, scale: float, tmp_path: Path) -> None:
    element = UniformQuantizedType.of(storage, scale, 0 if storage is i16 else 3)
    target = Target(extensions=frozenset())
    for name, types in (("quant.qcast", (f32, element)), ("quant.dcast", (element, f32))):
        operand, result = (TensorType((2, 5), t) for t in types)
        lowered, _ = lower(conversion(name, operand, result), target)
        validate(mlir_text(lowered, target), tmp_path)
