"""Evaluators of `arith`, `math` and `fxpmath`.

Arrays hold integers of any width in int64 by their sign; i1 is a boolean, whose 1 counts as -1. Floats have their own
type; bf16 is computed in float32, and each result is rounded to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tflq.analysis.evaluate.registry import array_dtype, evaluator, float_array, floats, of_arrays
from tflq.formats.mlir.dialects import arith, math
from tflq.formats.mlir.dialects.fxpmath import (
    Matmul,
    RealAddEw,
    RealDivEw,
    RealMath,
    RealMatmul,
    RealMatmulBias,
    RealMulEw,
    RealSubEw,
    RealUnary,
    RoundingDivideByPot,
    SaturatingAdd,
    SaturatingRoundingDoublingHighMul,
)
from tflq.ir.ops import Op
from tflq.ir.types import ScalarType, TensorType, f32, f64, is_quantized, parameters
from tflq.numerics import signless
from tflq.numerics.elementwise import COMPARISONS
from tflq.numerics.fixed_point import half_away, rounding_divide_by_pot, saturated
from tflq.numerics.real_math import FUNCTIONS, Steps
from tflq.numerics.signless import rounded_to_odd, unsigned, wrapped
from tflq.numerics.unary import erf, erfc


def width(type: TensorType) -> int:
    """Width of an integer in bits."""
    storage = type.storage
    if storage.bits > 64:
        raise NotImplementedError(f"integers of {storage.bits} bits are not evaluated")
    return 1 if storage.kind == "bool" else storage.bits


def integers(type: TensorType, array: np.ndarray) -> np.ndarray:
    """int64 of what an array of a type holds."""
    width(type)
    wide = np.asarray(array).astype(np.int64)
    return -wide if type.storage.kind == "bool" else wide


def integer_array(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The array of a type for int64 or uint64, modulo its width."""
    inside = wrapped(numbers, width(type))
    return inside != 0 if type.storage.kind == "bool" else inside.astype(type.storage.dtype)


# Conversions. A float that an integer type does not hold (poison: it may be anything) saturates, and NaN is 0, as
# `lower-quant-ops` asks of a cast with a rounding.


@evaluator(arith.ExtSI, arith.TruncI, arith.IndexCast)
def _by_sign(op: arith.ExtSI | arith.TruncI | arith.IndexCast, x: np.ndarray) -> np.ndarray:
    return integer_array(op.output.type, integers(op.input.type, x))


@evaluator(arith.ExtUI, arith.IndexCastUI)
def _by_zeros(op: arith.ExtUI | arith.IndexCastUI, x: np.ndarray) -> np.ndarray:
    source = op.input.type
    return integer_array(op.output.type, unsigned(integers(source, x), width(source)))


@evaluator(arith.ExtF, arith.TruncF)
def _between_floats(op: arith.ExtF | arith.TruncF, x: np.ndarray) -> np.ndarray:
    if isinstance(op, arith.TruncF) and op.rounding not in (None, 0):
        raise NotImplementedError("arith.truncf is evaluated to nearest, ties to even")
    return float_array(op.output.type, floats(op.input.type, x))


@evaluator(arith.SIToFP, arith.UIToFP)
def _to_float(op: arith.SIToFP | arith.UIToFP, x: np.ndarray) -> np.ndarray:
    numbers = integers(op.input.type, x)
    if isinstance(op, arith.UIToFP):
        numbers = unsigned(numbers, width(op.input.type))
    if op.output.type.element in (f32, f64):  # numpy converts to these at once
        return numbers.astype(op.output.type.storage.dtype)
    return float_array(op.output.type, rounded_to_odd(numbers))


@evaluator(arith.FPToSI, arith.FPToUI)
def _to_integer(op: arith.FPToSI | arith.FPToUI, x: np.ndarray) -> np.ndarray:
    kind, bits = op.output.type, width(op.output.type)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if isinstance(op, arith.FPToSI) else (0, (1 << bits) - 1)
    return integer_array(kind, saturated(floats(op.input.type, x), low, high))


@evaluator(arith.Bitcast)
def _bits(op: arith.Bitcast, x: np.ndarray) -> np.ndarray:
    source, target = array_dtype(op.input.type), array_dtype(op.output.type)
    return np.ascontiguousarray(np.asarray(x, source)).view(target).reshape(np.shape(x))


# Comparison and choice.


evaluator(arith.Select)(of_arrays(np.where))


@evaluator(arith.CmpI)
def _compare_integers(op: arith.CmpI, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind, word = op.lhs.type, arith.COMPARE_INTEGER[op.predicate]
    x, y = integers(kind, a), integers(kind, b)
    if word[0] == "u":
        x, y = unsigned(x, width(kind)), unsigned(y, width(kind))
    return np.asarray(COMPARISONS[word[-2:].upper()](x, y))


@evaluator(arith.CmpF)
def _compare_floats(op: arith.CmpF, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind, word = op.lhs.type, arith.COMPARE_FLOAT[op.predicate]
    x, y = floats(kind, a), floats(kind, b)
    if word in ("true", "false"):
        return np.full(np.broadcast_shapes(np.shape(x), np.shape(y)), word == "true")
    unordered = np.isnan(x) | np.isnan(y)
    if word in ("ord", "uno"):
        return np.asarray(unordered == (word == "uno"))
    holds = COMPARISONS[word[1:].upper()](x, y)
    return np.asarray(holds | unordered if word[0] == "u" else holds & ~unordered)


# Arithmetic of floats, roundings to integers, and questions about floats: exact, or rounded once. Sums, products,
# quotients and roots of f16 and bf16 are computed in float32, which has more than twice their digits: the second
# rounding changes nothing.


def _maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """0 is greater than -0."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return -_maximum(-a, -b)


_EXACT: Final[dict[type[Op], Callable[..., Any]]] = {
    arith.AddF: np.add,
    arith.SubF: np.subtract,
    arith.MulF: np.multiply,
    arith.DivF: np.divide,
    arith.RemF: np.fmod,
    arith.MaximumF: _maximum,
    arith.MinimumF: _minimum,
    arith.MaxNumF: np.fmax,
    arith.MinNumF: np.fmin,
    arith.NegF: np.negative,
    math.AbsF: np.abs,
    math.Ceil: np.ceil,
    math.Floor: np.floor,
    math.Round: half_away,
    math.RoundEven: np.rint,
    math.Trunc: np.trunc,
    math.CopySign: np.copysign,
    math.ClampF: lambda x, low, high: _minimum(_maximum(x, low), high),
}


@evaluator(*_EXACT)
def _exact(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(all="ignore"):
        return float_array(kind, _EXACT[type(op)](*(floats(kind, array) for array in arrays)))


@evaluator(math.Fma)
def _fma(op: math.Fma, *arrays: np.ndarray) -> np.ndarray:
    """The product is exact in float64, and so is the error of its sum, by which the sum is rounded to odd. Rounded to
    the type, it is what the exact sum gives."""
    kind = op.result.type
    if kind.element == f64:
        raise NotImplementedError("math.fma of f64 is not evaluated")
    a, b, c = (floats(kind, array).astype(np.float64) for array in arrays)
    with np.errstate(all="ignore"):
        product = a * b
        total = product + c
        part = total - product
        error = (product - (total - part)) + (c - part)
    bits = np.asarray(total).view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where(inexact, bits + toward, bits).view(np.float64)
    return float_array(kind, odd)


def _is_normal(x: np.ndarray) -> np.ndarray:
    tiny = np.finfo(x.dtype).tiny  # bf16 and float32 have the same
    return np.isfinite(x) & (np.abs(x) >= tiny)


_QUESTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    math.IsFinite: np.isfinite,
    math.IsInf: np.isinf,
    math.IsNaN: np.isnan,
    math.IsNormal: _is_normal,
}


@evaluator(*_QUESTIONS)
def _classify(op: math.Question, x: np.ndarray) -> np.ndarray:
    return np.asarray(_QUESTIONS[type(op)](floats(op.input.type, x)))


# Functions of floats: computed in float64, then rounded to the type, so that the last bit is seldom wrong; those of f64
# are numpy's.


_IN_DOUBLE: Final[dict[type[Op], Callable[..., Any]]] = {
    math.Acos: np.arccos,
    math.Acosh: np.arccosh,
    math.Asin: np.arcsin,
    math.Asinh: np.arcsinh,
    math.Atan: np.arctan,
    math.Atanh: np.arctanh,
    math.Cbrt: np.cbrt,
    math.Cos: np.cos,
    math.Cosh: np.cosh,
    math.Erf: erf,
    math.Erfc: erfc,
    math.Exp: np.exp,
    math.Exp2: np.exp2,
    math.ExpM1: np.expm1,
    math.Log: np.log,
    math.Log10: np.log10,
    math.Log1p: np.log1p,
    math.Log2: np.log2,
    math.Rsqrt: lambda x: 1 / np.sqrt(x),
    math.Sin: np.sin,
    math.Sinh: np.sinh,
    math.Sqrt: np.sqrt,
    math.Tan: np.tan,
    math.Tanh: np.tanh,
    math.Atan2: np.arctan2,
    math.PowF: np.power,
}


@evaluator(*_IN_DOUBLE)
def _in_double(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(all="ignore"):
        return float_array(kind, _IN_DOUBLE[type(op)](*(floats(kind, a).astype(np.float64) for a in arrays)))


@evaluator(math.FPowI)
def _power(op: math.FPowI, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        whole = np.power(floats(op.lhs.type, a).astype(np.float64), integers(op.rhs.type, b).astype(np.float64))
    return float_array(op.result.type, whole)


# Integer arithmetic of `arith` and `math`, modulo the width of the type.


def _ceil_signed(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    quotient, rest = signless.divided_signed(a, b, bits)
    return quotient + ((rest != 0) & ((rest < 0) == (b < 0)))


def _floor_signed(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    quotient, rest = signless.divided_signed(a, b, bits)
    return quotient - ((rest != 0) & ((rest < 0) != (b < 0)))


def _ceil_unsigned(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    quotient, rest = signless.divided_unsigned(a, b, bits)
    return quotient + (rest != 0)


def _remainder_signed(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """The least integer by -1 leaves 0, though the quotient overflows."""
    return signless.divided_signed(np.where(b == -1, 0, a), b, bits)[1]


def _of_unsigned(a: np.ndarray, b: np.ndarray, bits: int, *, greater: bool) -> np.ndarray:
    above = unsigned(a, bits) > unsigned(b, bits)
    return np.where(above == greater, a, b)


_OF_LOW_BITS: Final[dict[type[Op], Callable[..., Any]]] = {
    arith.AddI: np.add,
    arith.SubI: np.subtract,
    arith.MulI: np.multiply,
    arith.AndI: np.bitwise_and,
    arith.OrI: np.bitwise_or,
    arith.XOrI: np.bitwise_xor,
    arith.MaxSI: np.maximum,
    arith.MinSI: np.minimum,
}
"""Functions whose low bits do not depend on the width."""

_OF_WIDTH: Final[dict[type[Op], Callable[..., Any]]] = {
    arith.DivSI: lambda a, b, bits: signless.divided_signed(a, b, bits)[0],
    arith.DivUI: lambda a, b, bits: signless.divided_unsigned(a, b, bits)[0],
    arith.CeilDivSI: _ceil_signed,
    arith.CeilDivUI: _ceil_unsigned,
    arith.FloorDivSI: _floor_signed,
    arith.RemSI: _remainder_signed,
    arith.RemUI: lambda a, b, bits: signless.divided_unsigned(a, b, bits)[1],
    arith.ShLI: signless.shifted_left,
    arith.ShRSI: partial(signless.shifted_right, signed=True),
    arith.ShRUI: partial(signless.shifted_right, signed=False),
    arith.MaxUI: partial(_of_unsigned, greater=True),
    arith.MinUI: partial(_of_unsigned, greater=False),
    math.AbsI: signless.absolute,
    math.CtLz: signless.leading_zeros,
    math.CtPop: lambda a, bits: signless.count_ones(unsigned(a, bits)),
    math.CtTz: signless.trailing_zeros,
    math.IPowI: signless.powers,
}


@evaluator(*_OF_LOW_BITS)
def _of_low_bits(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(over="ignore"):
        return integer_array(kind, _OF_LOW_BITS[type(op)](*(integers(kind, array) for array in arrays)))


@evaluator(*_OF_WIDTH)
def _of_width(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(over="ignore"):
        return integer_array(kind, _OF_WIDTH[type(op)](*(integers(kind, array) for array in arrays), width(kind)))


@evaluator(arith.AddUIExtended)
def _with_carry(op: arith.AddUIExtended, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    kind = op.sum.type
    with np.errstate(over="ignore"):
        total, overflow = signless.added_unsigned(integers(kind, a), integers(kind, b), width(kind))
    return [integer_array(kind, total), overflow]


@evaluator(arith.MulSIExtended, arith.MulUIExtended)
def _in_two_parts(op: arith.MulSIExtended | arith.MulUIExtended, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    kind = op.low.type
    product = signless.product_signed if isinstance(op, arith.MulSIExtended) else signless.product_unsigned
    with np.errstate(over="ignore"):
        parts = product(integers(kind, a), integers(kind, b), width(kind))
    return [integer_array(kind, part) for part in parts]


# `fxpmath`: real numbers in float64, rounded once to what the result's type holds; integers exactly.


def _steps(type: TensorType) -> Any:
    """The steps in which a quantized tensor stores numbers; its parameters broadcast to the tensor."""
    element = type.element
    if not is_quantized(element):
        raise NotImplementedError(f"nothing says the parameters of {type}")
    scale, zero_point = parameters(type)
    return Steps(scale.astype(np.float64), zero_point, element.storage_min, element.storage_max)  # type: ignore[arg-type]


def _real(type: TensorType, array: np.ndarray) -> np.ndarray:
    """The numbers of a tensor, in double."""
    if isinstance(type.element, ScalarType):
        return floats(type, array).astype(np.float64)
    return np.asarray(_steps(type).real(array))


def _reals(op: RealMath, arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return [_real(value.type, array) for value, array in zip(op.tensors, arrays, strict=False)]


def _result(op: RealMath, x: np.ndarray) -> np.ndarray:
    """Numbers in double, clamped and rounded to the result's type."""
    type, floating = op.result.type, isinstance(op.result.type.element, ScalarType)
    if not floating:
        x = np.where(np.isnan(x), 0.0, x)
    if op.clamp_min is not None:
        x = np.maximum(x, op.clamp_min)
    if op.clamp_max is not None:
        x = np.minimum(x, op.clamp_max)
    return float_array(type, x) if floating else np.asarray(_steps(type).stored(x))


_BINARY = {RealAddEw: np.add, RealSubEw: np.subtract, RealMulEw: np.multiply, RealDivEw: np.divide}


@evaluator(*_BINARY)
def _binary(op: RealMath, *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _result(op, _BINARY[type(op)](*_reals(op, arrays)))  # type: ignore[index]


@evaluator(RealUnary)
def _unary(op: RealUnary, *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _result(op, FUNCTIONS[op.opcode](*_reals(op, arrays)))


@evaluator(RealMatmul, RealMatmulBias)
def _matmul(op: RealMatmul | RealMatmulBias, *arrays: np.ndarray) -> np.ndarray:
    lhs, rhs, *bias = _reals(op, arrays)
    with np.errstate(all="ignore"):
        product = np.matmul(lhs, rhs)
        return _result(op, product + bias[0] if bias else product)


@evaluator(RoundingDivideByPot)
def _divide(op: RoundingDivideByPot, x: np.ndarray) -> np.ndarray:
    return rounding_divide_by_pot(x, op.exponent)


@evaluator(SaturatingAdd)
def _add(op: SaturatingAdd, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.clip(x.astype(np.int64) + y, op.clamp_min, op.clamp_max)


@evaluator(SaturatingRoundingDoublingHighMul)
def _high_multiply(op: SaturatingRoundingDoublingHighMul, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = op.result.type.storage.bits
    product = x.astype(np.int64) * y
    return np.minimum((product + (1 << (bits - 2))) >> (bits - 1), (1 << (bits - 1)) - 1)


@evaluator(Matmul)
def _integer_matmul(op: Matmul, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Sums in 64 bits, of which int32 keeps the low half."""
    return np.matmul(x.astype(np.int64) - op.lhs_zero_point, y.astype(np.int64) - op.rhs_zero_point)
