"""Real numbers at the edges of targets that restrict plain builtins: QUANTIZE as the reference kernel rounds, in
builtins that no runtime rounds otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, interpret, one_op
from support.lowered import RESOLVERS

import tflq
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f16, f32, i8, i32, ui8
from tflq.numerics.float_basics import quantize_thresholds

NONE = {"fused_activation_function": "NONE"}
SHAPE = (1, 1, 521, 2)


def between_floats(element: UniformQuantizedType) -> bytes:
    """QUANTIZE, an operator on integers, DEQUANTIZE."""
    x, y = Value(TensorType(SHAPE, f32), "x"), Value(TensorType(SHAPE, f32), "y")
    stored, limited = Value(TensorType(SHAPE, element), "stored"), Value(TensorType(SHAPE, element), "limited")
    ops = [
        Op("tfl.quantize", [x], [stored], {}),
        Op("tfl.maximum", [stored, stored], [limited], {}, info={"version": 2}),
        Op("tfl.dequantize", [limited], [y], {}, info={"version": 2}),
    ]
    return bytes(write(Module([Function("main", [x], [y], ops)])))


def hardest(element: UniformQuantizedType) -> np.ndarray:
    """The threshold of each level with its neighbours, what is beyond the levels, and beyond int32."""
    levels = np.arange(element.storage_min - 1, element.storage_max + 2) - element.zero_point
    edges = quantize_thresholds(np.float32(element.scale), levels)
    down, up = (np.nextafter(edges, np.float32(end)) for end in (-np.inf, np.inf))
    beyond = np.asarray([0, 1e-40, np.inf, 1e30, *(v * element.scale for v in (2**31 - 256, 2**31, 2**31 + 256, 3e9))])
    numbers = np.concatenate([edges, down, up, beyond, -beyond]).astype(np.float32)
    return np.resize(numbers, SHAPE)


@pytest.mark.parametrize(
    ("storage", "scale", "zero"),
    [(i8, 0.0235, 3), (i8, 0.5, -9), (i8, 1 / 255, -128), (i8, 3.7, 127), (ui8, 0.5, 128), (ui8, 0.017, 0)],
    ids=str,
)
def test_quantize_rounds_as_the_reference_kernel(storage: ScalarType, scale: float, zero: int) -> None:
    """On halves, which runtimes round to even, and where the kernel's conversion to int32 leaves the type."""
    element = UniformQuantizedType.of(storage, scale, zero)
    model, x = between_floats(element), hardest(element)
    result = tflq.convert(model, target="portable").data
    assert not any(isinstance(op, (Quantize, Dequantize)) for op in read(result).ops())
    want = interpret(model, [[x]])[0][0]
    for resolver in RESOLVERS:
        np.testing.assert_array_equal(interpret(result, [[x]], resolver)[0][0], want, err_msg=resolver)


def test_a_quantized_result_of_floats() -> None:
    """It goes by QUANTIZE of whole numbers times the scale, which all runtimes round alike."""
    element = UniformQuantizedType.of(i8, 0.0235, 3)
    x, turned, y = argument(SHAPE, f32), Value(TensorType(SHAPE, f32), "t"), Value(TensorType(SHAPE, element), "y")
    ops = [Op("tfl.neg", [x], [turned], {}), Op("tfl.quantize", [turned], [y], {})]
    model = bytes(write(Module([Function("main", [x], [y], ops)])))
    convert_and_compare(model, [[hardest(element)]], target="portable")


def test_a_quantized_input_as_floats() -> None:
    element = UniformQuantizedType.of(ui8, 0.0235, 131)
    model = one_op("tfl.dequantize", [argument((1, 256), element)], [argument((1, 256), f32, "y")], {}, version=2)
    convert_and_compare(model, [[np.arange(256, dtype=np.uint8)[None]]], target="portable")


@pytest.mark.parametrize("target", ["portable", "tflm"])
def test_float16_constants_become_float32(target: str) -> None:
    """Also where an operator of integers stands beside them, and the constant is shared."""
    half = Value(
        TensorType((4, 3), f16), "half", buffer=Buffer.of(np.linspace(-1, 1, 12, dtype=np.float16).reshape(4, 3))
    )
    x, wide = argument((2, 3), f32), Value(TensorType((4, 3), f32), "wide")
    y, z = Value(TensorType((2, 4), f32), "y"), Value(TensorType((4, 3), f32), "z")
    ops = [
        Op("tfl.dequantize", [half], [wide], {}, info={"version": 3}),
        Op("tfl.fully_connected", [x, wide, const(np.zeros(4), f32, "b")], [y], {**NONE, "weights_format": "DEFAULT"}),
        Op("tfl.mul", [wide, wide], [z], {**NONE}),
    ]
    model = bytes(write(Module([Function("main", [x], [y, z], ops)])))
    conversion = convert_and_compare(model, [[np.ones((2, 3), np.float32)]], target=target)
    assert not any(isinstance(op, Dequantize) for op in read(conversion.data).ops())


def reshaped(x: Value, y: Value, **option: Any) -> bytes:
    op = Op("tfl.reshape", [x], [y], {"new_shape": None, **option})
    return bytes(write(Module([Function("main", [x], [y], [op])])))


@pytest.mark.parametrize(
    "element", [UniformQuantizedType.of(i8, 0.5, 3), UniformQuantizedType.of(ui8, 0.5, 3), f32, i32], ids=str
)
@pytest.mark.parametrize(("shape", "option"), [((2, 6), [2, 6]), ((2, 2, 3), [-1, 2, 3])])
def test_reshape_by_its_option(element: Any, shape: tuple[int, ...], option: list[int]) -> None:
    """The shape becomes an operand, which other tools look for."""
    x, y = argument((3, 4), element), argument(shape, element, "y")
    numbers = np.random.default_rng(0).integers(0, 99, (3, 4)).astype(x.type.storage.dtype)
    conversion = convert_and_compare(reshaped(x, y, new_shape=option), [[numbers]], target="portable")
    assert all(len(op.operands) == 2 for op in read(conversion.data).ops() if op.name == "tfl.reshape")


def test_reshape_to_a_scalar_by_the_old_option() -> None:
    """A shape of [0] stands for no dims."""
    element = UniformQuantizedType.of(i8, 0.5, 3)
    model = reshaped(argument((1, 1), element), argument((), element, "y"), new_shape=[0])
    convert_and_compare(model, [[np.asarray([[7]], np.int8)]], target="portable")
