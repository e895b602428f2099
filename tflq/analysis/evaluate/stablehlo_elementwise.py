"""Evaluators of what only text has: StableHLO's elementwise ops and data movement, the numbers that quantized values
stand for, and fake quantization.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.analysis.evaluate.registry import evaluator, of_arrays
from tflq.dialects.constraints import integers
from tflq.dialects.regions import (
    ConstFakeQuant,
    ConstFakeQuantPerAxis,
    FakeQuantWithMinMaxArgs,
    FakeQuantWithMinMaxVars,
    FakeQuantWithMinMaxVarsPerChannel,
)
from tflq.dialects.stablehlo import elementwise as hlo
from tflq.ir.ops import Op
from tflq.ir.types import TensorType, bf16, f32, i1, is_quantized, parameters
from tflq.numerics.elementwise import COMPARISONS
from tflq.numerics.fixed_point import half_away, saturated, truncated_quotient
from tflq.numerics.ranges import simulated
from tflq.numerics.signless import bfloat16_bits, bfloat16_values

# Quantized values as the specification computes them, every step in the expressed type.
#
# Source: `dequantize`, `quantize` and `dequantize_op_quantize` of the StableHLO specification. Between types of the
# same scale numbers stay integers: the same wherever floating point is exact enough, and right beyond that (an i32 of
# more than 24 bits).


def _grid(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scales in the expressed type and zero points, shaped to broadcast."""
    element = type.element
    assert is_quantized(element)
    if not element.expressed.numpy:
        raise NotImplementedError(f"numbers expressed in {element.expressed} are not evaluated")
    scale, zero_point = parameters(type)
    return scale.astype(element.expressed.dtype), zero_point.astype(np.int64)


def dequantized(type: TensorType, array: np.ndarray) -> np.ndarray:
    """The numbers that stored integers of a type stand for, in the expressed type."""
    scale, zero_point = _grid(type)
    return np.asarray((array.astype(np.int64) - zero_point).astype(scale.dtype) * scale)


def quantized(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The stored integers (int64) that stand for numbers of the expressed type: quotient plus zero point, rounded half
    to even, within the bounds of the type."""
    scale, zero_point = _grid(type)
    element: Any = type.element
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        near = np.rint(np.asarray(numbers, scale.dtype) / scale + zero_point.astype(scale.dtype))
    return saturated(np.nan_to_num(near.astype(np.float64), nan=0.0), element.storage_min, element.storage_max)


def real(type: TensorType, array: np.ndarray) -> np.ndarray:
    """The numbers that an array of a type stands for; bf16 as float32."""
    if type.quantized:
        return dequantized(type, array)
    return bfloat16_values(array) if type.storage is bf16 else array


def stored(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The array of a type that stands for numbers."""
    if type.quantized:
        return quantized(type, numbers)
    return bfloat16_bits(numbers) if type.storage is bf16 else numbers


def rounded_to(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """Numbers rounded to a type, as after each step of a computation in it; those of bf16 are kept as float32."""
    return bfloat16_values(bfloat16_bits(numbers)) if type.storage is bf16 else numbers


def same_scale(*types: TensorType) -> bool:
    """Whether all are quantized, with equal scales."""
    if not all(type.quantized for type in types):
        return False
    first = _grid(types[0])[0]
    return all(np.array_equal(first, _grid(type)[0]) for type in types[1:])


def in_units(type: TensorType, array: np.ndarray) -> np.ndarray:
    """Stored integers less their zero point: numbers in units of the scale."""
    return np.asarray(array.astype(np.int64) - _grid(type)[1])


def from_units(type: TensorType, units: np.ndarray) -> np.ndarray:
    """The counterpart of `in_units`, within the bounds of the type."""
    element: Any = type.element
    return np.clip(units + _grid(type)[1], element.storage_min, element.storage_max)


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integers are rounded toward zero, and x / 0 is -1."""
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    return np.where(b == 0, np.asarray(-1).astype(a.dtype), truncated_quotient(a, b))


def _remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """With the sign of the dividend; x % 0 is x."""
    if a.dtype.kind == "f":
        return np.asarray(np.fmod(a, b))
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integers with a negative exponent: 1 / a ** -b, rounded toward zero."""
    if a.dtype.kind != "i":
        return np.asarray(np.power(a, b))
    whole = np.power(a, np.maximum(b, 0))
    odd = np.where(b % 2, -1, 1)
    inverse = np.where(a == 1, 1, np.where(a == -1, odd, np.where(a == 0, -1, 0)))
    return np.where(b < 0, inverse, whole).astype(a.dtype)


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.asarray(x.dtype.type(1) / (x.dtype.type(1) + np.exp(-x)))


_FUNCTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    hlo.Add: np.add,
    hlo.Subtract: np.subtract,
    hlo.Multiply: np.multiply,
    hlo.Divide: _divide,
    hlo.Remainder: _remainder,
    hlo.Maximum: np.maximum,
    hlo.Minimum: np.minimum,
    hlo.Power: _power,
    hlo.And: np.bitwise_and,
    hlo.Or: np.bitwise_or,
    hlo.Xor: np.bitwise_xor,
    hlo.Abs: np.abs,
    hlo.Negate: np.negative,
    hlo.Not: np.invert,
    hlo.Sign: np.sign,
    hlo.Ceil: np.ceil,
    hlo.Floor: np.floor,
    hlo.RoundNearestEven: np.rint,
    hlo.RoundNearestAfz: half_away,
    hlo.Exponential: np.exp,
    hlo.Log: np.log,
    hlo.Logistic: _logistic,
    hlo.Sqrt: np.sqrt,
    hlo.Rsqrt: lambda x: x.dtype.type(1) / np.sqrt(x),
    hlo.Tanh: np.tanh,
    hlo.Cosine: np.cos,
    hlo.Sine: np.sin,
}
_OF_ONE_SCALE: Final = frozenset({hlo.Add, hlo.Subtract, hlo.Maximum, hlo.Minimum, hlo.Negate, hlo.Abs})
"""Ops that can be computed in units of a scale."""

_BOOLEAN: Final[dict[type[Op], Callable[..., Any]]] = {
    hlo.Add: np.logical_or,
    hlo.Multiply: np.logical_and,
    hlo.Maximum: np.logical_or,
    hlo.Minimum: np.logical_and,
}

ELEMENTWISE: Final = frozenset(
    {*_FUNCTIONS, hlo.UniformQuantize, hlo.UniformDequantize, hlo.Convert, hlo.Compare, hlo.Select, hlo.Clamp}
)
"""Ops whose result at a place depends only on the operands there: they take arrays of any shape, all of the same."""


@evaluator(*_FUNCTIONS)
def _mapped(op: Op, *arrays: np.ndarray) -> np.ndarray:
    types, target = [v.type for v in op.present_operands], op.result.type
    function = _FUNCTIONS[type(op)]
    if target.element == i1 and type(op) in _BOOLEAN:
        function = _BOOLEAN[type(op)]
    if type(op) in _OF_ONE_SCALE and same_scale(*types, target):
        return from_units(target, function(*(in_units(t, a) for t, a in zip(types, arrays, strict=True))))
    with np.errstate(all="ignore"):
        return stored(target, function(*(real(t, a) for t, a in zip(types, arrays, strict=True))))


@evaluator(hlo.UniformQuantize)
def _uniform_quantize(op: hlo.UniformQuantize, x: np.ndarray) -> np.ndarray:
    source, target = op.input.type, op.result.type
    if same_scale(source, target):
        return from_units(target, in_units(source, x))
    return quantized(target, real(source, x))


@evaluator(hlo.UniformDequantize)
def _uniform_dequantize(op: hlo.UniformDequantize, x: np.ndarray) -> np.ndarray:
    return dequantized(op.input.type, x)


@evaluator(hlo.Convert)
def _convert(op: hlo.Convert, x: np.ndarray) -> np.ndarray:
    target: TensorType = op.result.type
    numbers = real(op.input.type, x)
    if target.element == i1:
        return np.asarray(numbers != 0)
    if numbers.dtype.kind != "f" or target.storage.is_float:
        return stored(target, numbers)
    return saturated(numbers, target.storage.minimum, target.storage.maximum)


@evaluator(hlo.Compare)
def _compare(op: hlo.Compare, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind = op.lhs.type
    if not kind.quantized:
        a, b = real(kind, a), real(kind, b)
    return np.asarray(COMPARISONS[op.direction](a, b))


evaluator(hlo.Select)(of_arrays(np.where))


@evaluator(hlo.Clamp)
def _clamp(op: hlo.Clamp, low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
    kind = op.input.type
    if kind.quantized:
        return np.minimum(np.maximum(x, low), high)
    return stored(kind, np.minimum(np.maximum(real(kind, x), real(kind, low)), real(kind, high)))


evaluator(hlo.OptimizationBarrier)(of_arrays(lambda *arrays: list(arrays)))


# Data movement: elements keep their stored values.


@evaluator(hlo.Reshape)
def _reshape(op: hlo.Reshape, x: np.ndarray) -> np.ndarray:
    return x.reshape(op.result.type.sizes)


@evaluator(hlo.Transpose)
def _transpose(op: hlo.Transpose, x: np.ndarray) -> np.ndarray:
    return x.transpose(integers(op, "permutation") or ())


@evaluator(hlo.BroadcastInDim)
def _broadcast_in_dim(op: hlo.BroadcastInDim, x: np.ndarray) -> np.ndarray:
    shape = op.result.type.sizes
    dims = integers(op, "broadcast_dimensions") or ()
    order = sorted(range(len(dims)), key=dims.__getitem__)
    view = [1] * len(shape)
    for axis in order:
        view[dims[axis]] = x.shape[axis]
    return np.broadcast_to(x.transpose(order).reshape(view), shape)


@evaluator(hlo.Slice)
def _slice(op: hlo.Slice, x: np.ndarray) -> np.ndarray:
    bounds = [integers(op, key) or () for key in ("start_indices", "limit_indices", "strides")]
    return x[tuple(slice(*row) for row in zip(*bounds, strict=True))]


@evaluator(hlo.Concatenate)
def _concatenate(op: hlo.Concatenate, *arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, op.attributes["dimension"])


@evaluator(hlo.Reverse)
def _reverse(op: hlo.Reverse, x: np.ndarray) -> np.ndarray:
    return np.flip(x, integers(op, "dimensions") or ())


# Fake quantization, by which training simulates quantization.


@evaluator(ConstFakeQuant, ConstFakeQuantPerAxis)
def _const_fake_quant(op: ConstFakeQuant | ConstFakeQuantPerAxis, x: np.ndarray) -> np.ndarray:
    """Rounds float32 like TensorFlow's ops. `is_signed` makes no difference to the steps."""
    if op.inputs.type.element != f32:
        raise NotImplementedError(f"{op.name} of {op.inputs.type} has no evaluator")
    low, high = np.asarray(op.min, np.float32), np.asarray(op.max, np.float32)
    if isinstance(op, ConstFakeQuantPerAxis):
        shape = [-1 if axis == op.axis else 1 for axis in range(x.ndim)]
        low, high = low.reshape(shape), high.reshape(shape)
    return simulated(x, low, high, op.num_bits, narrow_range=op.narrow_range)


@evaluator(FakeQuantWithMinMaxArgs)
def _args(op: FakeQuantWithMinMaxArgs, x: np.ndarray) -> np.ndarray:
    return simulated(x, op.min, op.max, op.num_bits, narrow_range=op.narrow_range)


@evaluator(FakeQuantWithMinMaxVars, FakeQuantWithMinMaxVarsPerChannel)
def _vars(op: FakeQuantWithMinMaxVars, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A range for each index of the last dim broadcasts."""
    return simulated(x, low, high, op.num_bits, narrow_range=op.narrow_range)
