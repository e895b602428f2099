"""Evaluators of elementwise ops of TOSA and of TFLite on plain numbers: arithmetic, functions, comparisons, casts.

Integers wrap in the result's type, as TOSA's and TFLite's do; float32 is IEEE's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from tflq.analysis.evaluate.registry import evaluator, float_array, floats, of_arrays
from tflq.dialects.quant import (
    Dcast,
    Qcast,
    RescaleF32,
    RescaleF64,
    RescaleI64,
    RescaleMean,
    RoundingDivideByPot,
    Scast,
    Table2D,
    Table16Bit,
    Truncate,
)
from tflq.dialects.tfl import arithmetic, casts, comparison
from tflq.dialects.tfl.activation import HardSwish
from tflq.dialects.tosa import elementwise as tosa
from tflq.dialects.tosa.movement import Cast, Rescale
from tflq.ir.ops import Op
from tflq.ir.types import ScalarType, TensorType, bf16, f16, f32, f64, parameters
from tflq.numerics.activation import BOUNDS
from tflq.numerics.convolution import divided_multiplier
from tflq.numerics.fixed_point import (
    Multiplier,
    multiply,
    rescale_i64,
    rescale_rounded,
    round_float,
    rounding_divide_by_pot,
    saturated,
    truncated_quotient,
)
from tflq.numerics.signless import rounded_to_odd, unsigned, wrapped
from tflq.numerics.unary import erf


def _of_numbers(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A function of integers and real numbers. NotImplementedError for truth values and complex numbers: numpy has no
    differences of truth values, say, and no complex remainders."""

    def compute(*arrays: np.ndarray) -> np.ndarray:
        if any(array.dtype.kind in "bc" for array in arrays):
            raise NotImplementedError("it is evaluated on integers and real numbers")
        return function(*arrays)

    return compute


evaluator(tosa.Add)(of_arrays(np.add))
evaluator(tosa.Sub)(of_arrays(np.subtract))
evaluator(tosa.Maximum, arithmetic.Maximum)(of_arrays(np.maximum))
evaluator(tosa.Minimum, arithmetic.Minimum)(of_arrays(np.minimum))
evaluator(tosa.Abs)(of_arrays(np.abs))
evaluator(tosa.IntDiv)(of_arrays(truncated_quotient))


@evaluator(tosa.Mul)
def _mul(op: tosa.Mul, a: np.ndarray, b: np.ndarray, operand: np.ndarray | None = None) -> np.ndarray:
    """`operand`: the shift as an operand, as text of `tosa` has it."""
    shift = op.shift if operand is None else int(operand.item())
    if not shift:
        dtype = op.result.type.storage.dtype
        return a.astype(dtype) * b.astype(dtype)
    return (a.astype(np.int64) * b.astype(np.int64) + (1 << (shift - 1))) >> shift


@evaluator(tosa.Negate)
def _negate(op: tosa.Negate, x: np.ndarray) -> np.ndarray:
    """output_zp - (x - input1_zp), saturated."""
    if x.dtype.kind == "f":
        return -x
    storage = op.result.type.storage
    value = op.output_zp + op.input1_zp - x.astype(np.int64)
    return np.clip(value, storage.minimum, storage.maximum)


@evaluator(tosa.Pow)
def _pow(op: tosa.Pow, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.power(a.astype(np.float64), b).astype(a.dtype)


def _divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integers are rounded toward zero."""
    return np.divide(a, b) if a.dtype.kind == "f" else truncated_quotient(a, _divisor(b))


_ARITHMETIC: Final[dict[type[Op], Callable[..., np.ndarray]]] = {
    arithmetic.Add: np.add,
    arithmetic.Sub: _of_numbers(np.subtract),
    arithmetic.Mul: np.multiply,
    arithmetic.Div: _of_numbers(_divided),
}


@evaluator(*_ARITHMETIC)
def _arithmetic(
    op: arithmetic.Add | arithmetic.Sub | arithmetic.Mul | arithmetic.Div, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Clamped by the fused activation. NotImplementedError for one that does not clamp."""
    x, name = _ARITHMETIC[type(op)](a, b), op.fused_activation_function
    if name == "NONE":
        return x
    if name not in BOUNDS:
        raise NotImplementedError(f"{op.name} with {name}")
    return np.clip(x, *(None if bound is None else x.dtype.type(bound) for bound in BOUNDS[name]))


evaluator(arithmetic.FloorDiv)(of_arrays(_of_numbers(lambda a, b: np.floor_divide(a, _divisor(b)))))
evaluator(arithmetic.FloorMod)(of_arrays(_of_numbers(lambda a, b: np.mod(a, _divisor(b)))))


def _divisor(b: np.ndarray) -> np.ndarray:
    """ZeroDivisionError if one is 0: kernels refuse it."""
    if not b.all():
        raise ZeroDivisionError("a divisor is 0")
    return b


# TOSA's functions of one number: computed in float64, rounded to the type of the operand.


_UNARY: Final[dict[type[Op], Callable[[np.ndarray], np.ndarray]]] = {
    tosa.Ceil: np.ceil,
    tosa.Cos: np.cos,
    tosa.Erf: erf,
    tosa.Exp: np.exp,
    tosa.Floor: np.floor,
    tosa.Log: np.log,
    tosa.Reciprocal: lambda x: 1 / x,
    tosa.Rsqrt: lambda x: 1 / np.sqrt(x),
    tosa.Sigmoid: lambda x: 1 / (1 + np.exp(-x)),
    tosa.Sin: np.sin,
    tosa.Tanh: np.tanh,
}


@evaluator(*_UNARY)
def _unary(op: Op, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _UNARY[type(op)](x.astype(np.float64)).astype(x.dtype)


@evaluator(tosa.Clamp)
def _clamp(op: tosa.Clamp, x: np.ndarray) -> np.ndarray:
    return np.clip(x, op.min_val, op.max_val)


# Bits and truth values. Shifts are by fewer bits than the type has.


evaluator(tosa.BitwiseAnd)(of_arrays(np.bitwise_and))
evaluator(tosa.BitwiseOr)(of_arrays(np.bitwise_or))
evaluator(tosa.BitwiseXor)(of_arrays(np.bitwise_xor))
evaluator(tosa.BitwiseNot, tosa.LogicalNot)(of_arrays(np.invert))
evaluator(tosa.LogicalAnd)(of_arrays(np.logical_and))
evaluator(tosa.LogicalOr)(of_arrays(np.logical_or))
evaluator(tosa.LogicalXor)(of_arrays(np.logical_xor))


@evaluator(tosa.Clz)
def _clz(op: tosa.Clz, x: np.ndarray) -> np.ndarray:
    """The exponent of an integer below 2^53 is its number of bits."""
    return np.where(x < 0, 0, 32 - np.frexp(np.maximum(x, 0).astype(np.float64))[1])


@evaluator(tosa.LogicalLeftShift)
def _logical_left_shift(op: tosa.LogicalLeftShift, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.int64) << b


@evaluator(tosa.LogicalRightShift)
def _logical_right_shift(op: tosa.LogicalRightShift, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    return (a.astype(unsigned) >> b.astype(unsigned)).astype(a.dtype)


@evaluator(tosa.ArithmeticRightShift)
def _arithmetic_right_shift(op: tosa.ArithmeticRightShift, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if not op.round:
        return a >> b
    wide = a.astype(np.int64)
    return (wide >> b) + np.where(b > 0, (wide >> np.maximum(b.astype(np.int64) - 1, 0)) & 1, 0)


@evaluator(casts.Bitcast)
def _bitcast(op: casts.Bitcast, x: np.ndarray) -> np.ndarray:
    """Between widths the last dim appears or goes, low part first."""
    dtype = op.result.type.storage.dtype
    x = np.ascontiguousarray(x).reshape(x.shape)
    if dtype.itemsize < x.dtype.itemsize:
        return x[..., None].view(dtype)
    return x.view(dtype)[..., 0] if dtype.itemsize > x.dtype.itemsize else x.view(dtype)


# Comparisons, and choice by them.


evaluator(tosa.Equal, comparison.Equal)(of_arrays(np.equal))
evaluator(comparison.NotEqual)(of_arrays(np.not_equal))
evaluator(tosa.Greater, comparison.Greater)(of_arrays(np.greater))
evaluator(tosa.GreaterEqual, comparison.GreaterEqual)(of_arrays(np.greater_equal))
evaluator(comparison.Less)(of_arrays(np.less))
evaluator(comparison.LessEqual)(of_arrays(np.less_equal))
evaluator(comparison.LogicalAnd)(of_arrays(np.logical_and))
evaluator(comparison.LogicalOr)(of_arrays(np.logical_or))
evaluator(comparison.LogicalNot)(of_arrays(np.logical_not))
evaluator(tosa.Select, comparison.SelectV2)(of_arrays(np.where))


@evaluator(comparison.Select)
def _select_rows(op: comparison.Select, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A condition of rank 1 chooses whole rows."""
    return np.where(condition.reshape((*condition.shape, *(1,) * (a.ndim - condition.ndim))), a, b)


# TFLite's functions of one plain number.


@evaluator(HardSwish)
def _hard_swish(op: HardSwish, x: np.ndarray) -> np.ndarray:
    """Of floats, each operation rounded."""
    gate = np.minimum(np.maximum(x + x.dtype.type(3), x.dtype.type(0)), x.dtype.type(6))
    return np.asarray(x * gate / x.dtype.type(6))


evaluator(arithmetic.Abs)(of_arrays(np.abs))
evaluator(arithmetic.Ceil)(of_arrays(_of_numbers(np.ceil)))
evaluator(arithmetic.Floor)(of_arrays(_of_numbers(np.floor)))
evaluator(arithmetic.Neg)(of_arrays(_of_numbers(np.negative)))
evaluator(arithmetic.Square)(of_arrays(np.square))
evaluator(arithmetic.ZerosLike)(of_arrays(np.zeros_like))


# Tables of `ext`: an entry for every int16, or for every pair of two 8-bit integers.


@evaluator(Table16Bit)
def _table_16bit(op: Table16Bit, x: np.ndarray, table: np.ndarray) -> np.ndarray:
    return table[x.astype(np.int32) + (1 << 15)]


@evaluator(Table2D)
def _table_2d(op: Table2D, x: np.ndarray, y: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Entry 256 (x - minimum of x's type) + (y - minimum of y's type)."""
    rows, columns = (
        v.astype(np.int32) - operand.type.storage.minimum for v, operand in ((x, op.input1), (y, op.input2))
    )
    return entries[rows * 256 + columns]


# Casts between element types, and between numbers and stored integers.


@evaluator(Scast)
def _scast(op: Scast, x: np.ndarray) -> np.ndarray:
    """The bits of the storage width under another sign. Arrays of a width that numpy lacks hold integers by value."""
    storage = op.result.type.storage
    if storage.bits >= 8 * x.dtype.itemsize:
        return x
    signed = wrapped(x, storage.bits)
    return signed if storage.signed else unsigned(signed, storage.bits)


@evaluator(Rescale)
def _rescale(op: Rescale, x: np.ndarray) -> np.ndarray:
    storage = op.output.type.storage
    values = x.astype(np.int64)
    if op.input_zp:
        values -= op.input_zp
    if op.rounding is not None:
        scaled = rescale_rounded(values, op.multiplier, op.shift, op.rounding)
    else:
        scaled = op.factor.apply(values)
    if x.dtype.itemsize <= 4 and storage.bits < 32 and np.min(op.shift) > 31:
        scaled = scaled.astype(np.int32)  # which holds it: numpy clips these several times faster
    if op.output_zp:
        scaled += op.output_zp
    return np.clip(scaled, storage.minimum, storage.maximum, out=scaled).reshape(x.shape)


@evaluator(Cast)
def _cast(op: Cast, x: np.ndarray) -> np.ndarray:
    storage = op.result.type.storage
    if x.dtype.kind == "f" and storage.is_integer:
        return saturate(np.rint(x), storage)
    return x.astype(storage.dtype)


@evaluator(Truncate)
def _truncate(op: Truncate, x: np.ndarray) -> np.ndarray:
    return saturate(np.trunc(x), op.result.type.storage)


def saturate(x: np.ndarray, storage: ScalarType) -> np.ndarray:
    """Whole floats as integers of a type: beyond it its nearest end, NaN as 0."""
    return saturated(x, storage.minimum, storage.maximum).astype(storage.dtype)


@evaluator(casts.Cast)
def _tfl_cast(op: casts.Cast, x: np.ndarray) -> np.ndarray:
    """Floats saturate in int32, and NaN is the largest."""
    dtype = op.result.type.storage.dtype
    if x.dtype.kind != "f" or dtype != np.int32:
        return x.astype(dtype)
    fits = x < 2.0**31
    return np.where(fits, np.maximum(np.where(fits, x, 0), -(2.0**31)).astype(np.int64), (1 << 31) - 1).astype(dtype)


# Casts of f16 and bf16 compute in float32 and round each step, half to even. Their quotients and products are then what
# they are in the type itself: float32 has more than twice its digits.


def _parameters(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point of a type that expresses f16, bf16, f32 or f64."""
    if getattr(type.element, "expressed", None) not in (f16, bf16, f32, f64):
        raise NotImplementedError(f"{type} expresses none of f16, bf16, f32 and f64")
    return parameters(type)


def _rounded_to(type: TensorType, x: np.ndarray) -> np.ndarray:
    """Numbers, rounded to a type; those of f16 and bf16 stay in float32."""
    if type.element in (f32, f64):
        return x.astype(type.storage.dtype, copy=False)
    return floats(type, float_array(type, x)).astype(np.float32)


@evaluator(Dcast)
def _dcast(op: Dcast, x: np.ndarray) -> np.ndarray:
    scale, zero_point = _parameters(op.input.type)
    target = op.result.type
    if target.element in (f16, bf16):  # as lower-quant-ops: each number, and each step, rounded
        widest = (n.astype(np.int64 if n.dtype.kind == "i" else np.uint64) for n in (x, zero_point))
        number, zero = (_rounded_to(target, rounded_to_odd(n)) for n in widest)
        return float_array(target, _rounded_to(target, number - zero) * scale)
    if x.dtype.itemsize > 4 or zero_point.dtype.itemsize > 4:  # in doubles: the difference may be more than int64 holds
        return float_array(target, (x.astype(np.float64) - zero_point) * scale)
    wide = np.int64 if x.dtype.itemsize == 4 else np.int32
    return float_array(target, (x.astype(wide) - zero_point).astype(scale.dtype) * scale)


@evaluator(Qcast)
def _qcast(op: Qcast, x: np.ndarray) -> np.ndarray:
    element = op.result.type.element
    scale, zero_point = _parameters(op.result.type)
    with np.errstate(over="ignore", invalid="ignore"):
        y = _rounded_to(op.input.type, np.asarray(floats(op.input.type, x), scale.dtype) / scale)
    low, high = element.storage_min, element.storage_max  # type: ignore[union-attr]
    no_kernel = op.input.type.element in (f16, bf16) or op.result.type.storage.bits >= 32
    if op.rounding is None or no_kernel:  # saturating
        total = _rounded_sum(op, y, zero_point)
        return np.clip(saturate(np.where(np.isnan(total), zero_point, total), op.result.type.storage), low, high)
    # beyond that the kernels' conversion gives the smallest int32; their sum wraps
    fits = np.abs(y) < 2.0**31
    whole = round_float(np.where(fits, y, scale.dtype.type(-(2.0**31))), op.rounding)
    return np.clip((whole.astype(np.int64) + zero_point).astype(np.int32), low, high)


def _rounded_sum(op: Qcast, y: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """The quotient plus the zero point, in float64; rounded before that, or after it as the op says."""
    if op.sum_rounding is None:
        return round_float(y, op.rounding or "half_even").astype(np.float64) + zero_point
    total = _rounded_to(op.input.type, y + _rounded_to(op.input.type, zero_point.astype(y.dtype)))
    return round_float(total, op.sum_rounding).astype(np.float64)


# The rescalings that TOSA lacks.


@evaluator(RescaleF64, RescaleF32)
def _rescale_float(op: RescaleF64 | RescaleF32, x: np.ndarray) -> np.ndarray:
    """saturate(factor(x) + output_zp)"""
    storage, scaled = op.result.type.storage, op.factor.apply(x).reshape(x.shape)
    return np.clip(scaled + op.output_zp, storage.minimum, storage.maximum).astype(storage.dtype)


@evaluator(RescaleI64)
def _rescale_i64(op: RescaleI64, x: np.ndarray) -> np.ndarray:
    return rescale_i64(x, op.multiplier, op.shift).reshape(x.shape)


@evaluator(RescaleMean)
def _rescale_mean(op: RescaleMean, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    to = op.output.type.storage
    count = math.prod(values.shape[axis] for axis in op.axes)
    scaled = multiply(x, *divided_multiplier(Multiplier(op.multiplier, op.shift), count)).astype(np.int64)
    return np.clip(scaled + op.output_zp, to.minimum, to.maximum).astype(to.dtype)


@evaluator(RoundingDivideByPot)
def _rounding_divide(op: RoundingDivideByPot, x: np.ndarray) -> np.ndarray:
    return rounding_divide_by_pot(x, op.exponent)
