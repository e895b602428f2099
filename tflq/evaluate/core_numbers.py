"""Conversions of `arith`. A float that an integer type does not hold (poison: it may be anything) saturates, and NaN is
0, as what `lower-quant-ops` asks of a cast with a rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.dialects.arith import (
    COMPARE_FLOAT,
    COMPARE_INTEGER,
    AddF,
    AddI,
    AddUIExtended,
    AndI,
    Bitcast,
    CeilDivSI,
    CeilDivUI,
    CmpF,
    CmpI,
    DivF,
    DivSI,
    DivUI,
    ExtF,
    ExtSI,
    ExtUI,
    FloorDivSI,
    FPToSI,
    FPToUI,
    IndexCast,
    IndexCastUI,
    MaximumF,
    MaxNumF,
    MaxSI,
    MaxUI,
    MinimumF,
    MinNumF,
    MinSI,
    MinUI,
    MulF,
    MulI,
    MulSIExtended,
    MulUIExtended,
    NegF,
    OrI,
    RemF,
    RemSI,
    RemUI,
    Select,
    ShLI,
    ShRSI,
    ShRUI,
    SIToFP,
    SubF,
    SubI,
    TruncF,
    TruncI,
    UIToFP,
    XOrI,
)
from tflq.dialects.math import (
    AbsF,
    AbsI,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atan2,
    Atanh,
    Cbrt,
    Ceil,
    ClampF,
    CopySign,
    Cos,
    Cosh,
    CtLz,
    CtPop,
    CtTz,
    Erf,
    Erfc,
    Exp,
    Exp2,
    ExpM1,
    Floor,
    Fma,
    FPowI,
    IPowI,
    IsFinite,
    IsInf,
    IsNaN,
    IsNormal,
    Log,
    Log1p,
    Log2,
    Log10,
    PowF,
    Round,
    RoundEven,
    Rsqrt,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
    Trunc,
)
from tflq.evaluate.registry import evaluator, held_dtype
from tflq.ir.core import Op
from tflq.ir.types import ScalarType, TensorType, bf16, f32, f64
from tflq.numerics import signless
from tflq.numerics.elementwise import COMPARISONS
from tflq.numerics.fixed_point import half_away, saturated
from tflq.numerics.signless import bfloat16_bits, bfloat16_values, unsigned, wrapped

# Numbers of the core dialects' element types: how arrays hold them, and what is computed on.
#
# integers int64 by their sign, whatever their width; i1 is held as a boolean, whose 1 is -1 floats their own type;
# bf16 as float32, each result rounded to it


def width(type: TensorType) -> int:
    """How many bits an integer has."""
    storage = type.storage
    if storage.bits > 64:
        raise NotImplementedError(f"integers of {storage.bits} bits are not evaluated")
    return 1 if storage.kind == "bool" else storage.bits


def integers(type: TensorType, array: np.ndarray) -> np.ndarray:
    """int64 of what an array of a type holds."""
    width(type)
    wide = np.asarray(array).astype(np.int64)
    return -wide if type.storage.kind == "bool" else wide


def held_integers(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The array of a type for int64 or uint64, modulo its width."""
    inside = wrapped(numbers, width(type))
    return inside != 0 if type.storage.kind == "bool" else inside.astype(type.storage.dtype)


def floats(type: TensorType, array: np.ndarray) -> np.ndarray:
    """What an array of a type stands for. NotImplementedError for floats of 8 bits and the like."""
    if type.storage is bf16:
        return bfloat16_values(np.asarray(array, np.uint16))
    _check(type.storage)
    return np.asarray(array)


def held_floats(type: TensorType, numbers: np.ndarray) -> np.ndarray:
    """The array of a type for floats, rounded to it: to nearest, ties to even."""
    if type.storage is bf16:
        return bfloat16_bits(numbers)
    _check(type.storage)
    with np.errstate(over="ignore"):
        return np.asarray(numbers).astype(type.storage.dtype)


def _check(storage: ScalarType) -> None:
    if not storage.numpy:
        raise NotImplementedError(f"{storage} is not evaluated")


def rounded_to_odd(numbers: np.ndarray) -> np.ndarray:
    """Integers, int64 or uint64, as float64 which rounds on to fewer than 50 bits as they do: of what float64 does not
    hold, the bits that go leave one behind."""
    x = np.asarray(numbers)
    size = np.where(x < 0, -x, x).astype(np.uint64) if x.dtype.kind == "i" else x
    cut = size & ~np.uint64(0x7FF)
    sticky = np.where(size != cut, np.uint64(0x800), np.uint64(0))
    large = np.where(size >= np.uint64(1 << 53), cut | sticky, size).astype(np.float64)
    return np.where(x < 0, -large, large)


@evaluator(ExtSI, TruncI, IndexCast)
def _by_sign(op: ExtSI | TruncI | IndexCast, x: np.ndarray) -> np.ndarray:
    return held_integers(op.output.type, integers(op.input.type, x))


@evaluator(ExtUI, IndexCastUI)
def _by_zeros(op: ExtUI | IndexCastUI, x: np.ndarray) -> np.ndarray:
    source = op.input.type
    return held_integers(op.output.type, unsigned(integers(source, x), width(source)))


@evaluator(ExtF, TruncF)
def _between_floats(op: ExtF | TruncF, x: np.ndarray) -> np.ndarray:
    if isinstance(op, TruncF) and op.rounding not in (None, 0):
        raise NotImplementedError("arith.truncf is evaluated to nearest, ties to even")
    return held_floats(op.output.type, floats(op.input.type, x))


@evaluator(SIToFP, UIToFP)
def _to_float(op: SIToFP | UIToFP, x: np.ndarray) -> np.ndarray:
    numbers = integers(op.input.type, x)
    if isinstance(op, UIToFP):
        numbers = unsigned(numbers, width(op.input.type))
    if op.output.type.element in (f32, f64):  # which numpy converts to at once
        return numbers.astype(op.output.type.storage.dtype)
    return held_floats(op.output.type, rounded_to_odd(numbers))


@evaluator(FPToSI, FPToUI)
def _to_integer(op: FPToSI | FPToUI, x: np.ndarray) -> np.ndarray:
    kind, bits = op.output.type, width(op.output.type)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if isinstance(op, FPToSI) else (0, (1 << bits) - 1)
    return held_integers(kind, saturated(floats(op.input.type, x), low, high))


@evaluator(Bitcast)
def _bits(op: Bitcast, x: np.ndarray) -> np.ndarray:
    source, target = held_dtype(op.input.type), held_dtype(op.output.type)
    return np.ascontiguousarray(np.asarray(x, source)).view(target).reshape(np.shape(x))


# Comparison and choice of `arith`.


@evaluator(CmpI)
def _integers(op: CmpI, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind, word = op.lhs.type, COMPARE_INTEGER[op.predicate]
    x, y = integers(kind, a), integers(kind, b)
    if word[0] == "u":
        x, y = unsigned(x, width(kind)), unsigned(y, width(kind))
    return np.asarray(COMPARISONS[word[-2:].upper()](x, y))


@evaluator(CmpF)
def _floats(op: CmpF, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind, word = op.lhs.type, COMPARE_FLOAT[op.predicate]
    x, y = floats(kind, a), floats(kind, b)
    if word in ("true", "false"):
        return np.full(np.broadcast_shapes(np.shape(x), np.shape(y)), word == "true")
    unordered = np.isnan(x) | np.isnan(y)
    if word in ("ord", "uno"):
        return np.asarray(unordered == (word == "uno"))
    holds = COMPARISONS[word[1:].upper()](x, y)
    return np.asarray(holds | unordered if word[0] == "u" else holds & ~unordered)


@evaluator(Select)
def _select(op: Select, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition, a, b)


# Arithmetic of floats, roundings to whole numbers, and questions about floats: exact, or rounded once.
#
# Sums, products, quotients and roots of f16 and bf16 are computed in float32, which has more than twice their digits:
# the second rounding changes nothing.


def _maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """0 is greater than -0."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return -_maximum(-a, -b)


_FUNCTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    AddF: np.add,
    SubF: np.subtract,
    MulF: np.multiply,
    DivF: np.divide,
    RemF: np.fmod,
    MaximumF: _maximum,
    MinimumF: _minimum,
    MaxNumF: np.fmax,
    MinNumF: np.fmin,
    NegF: np.negative,
    AbsF: np.abs,
    Ceil: np.ceil,
    Floor: np.floor,
    Round: half_away,
    RoundEven: np.rint,
    Trunc: np.trunc,
    CopySign: np.copysign,
    ClampF: lambda x, low, high: _minimum(_maximum(x, low), high),
}


@evaluator(*_FUNCTIONS)
def _mapped(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(all="ignore"):
        return held_floats(kind, _FUNCTIONS[type(op)](*(floats(kind, array) for array in arrays)))


@evaluator(Fma)
def _fma(op: Fma, *arrays: np.ndarray) -> np.ndarray:
    """The product is exact in float64, and so is what the sum with it loses: that makes the sum odd, which rounds to
    the type as the exact one does."""
    kind = op.result.type
    if kind.element == f64:
        raise NotImplementedError("math.fma of f64 is not evaluated")
    a, b, c = (floats(kind, array).astype(np.float64) for array in arrays)
    with np.errstate(all="ignore"):
        product = a * b
        total = product + c
        part = total - product
        lost = (product - (total - part)) + (c - part)
    bits = np.asarray(total).view(np.int64)
    inexact = np.isfinite(total) & (lost != 0) & (bits & 1 == 0)
    toward = np.where((lost > 0) == (total > 0), 1, -1)
    odd = np.where(inexact, bits + toward, bits).view(np.float64)
    return held_floats(kind, odd)


def _is_normal(x: np.ndarray) -> np.ndarray:
    tiny = np.finfo(x.dtype).tiny  # that of bf16 is that of float32
    return np.isfinite(x) & (np.abs(x) >= tiny)


_QUESTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    IsFinite: np.isfinite,
    IsInf: np.isinf,
    IsNaN: np.isnan,
    IsNormal: _is_normal,
}


@evaluator(*_QUESTIONS)
def _asked(op: Op, x: np.ndarray) -> np.ndarray:
    return np.asarray(_QUESTIONS[type(op)](floats(op.operand(0).type, x)))


# Functions of floats: computed in float64, then rounded to the type, so that the last bit is right but in rare cases.
# Those of f64 are numpy's.


_FUNCTIONS_FUNCTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    Acos: np.arccos,
    Acosh: np.arccosh,
    Asin: np.arcsin,
    Asinh: np.arcsinh,
    Atan: np.arctan,
    Atanh: np.arctanh,
    Cbrt: np.cbrt,
    Cos: np.cos,
    Cosh: np.cosh,
    Erf: np.vectorize(math.erf, otypes=[np.float64]),  # numpy has none
    Erfc: np.vectorize(math.erfc, otypes=[np.float64]),
    Exp: np.exp,
    Exp2: np.exp2,
    ExpM1: np.expm1,
    Log: np.log,
    Log10: np.log10,
    Log1p: np.log1p,
    Log2: np.log2,
    Rsqrt: lambda x: 1 / np.sqrt(x),
    Sin: np.sin,
    Sinh: np.sinh,
    Sqrt: np.sqrt,
    Tan: np.tan,
    Tanh: np.tanh,
    Atan2: np.arctan2,
    PowF: np.power,
}


@evaluator(*_FUNCTIONS_FUNCTIONS)
def _functions_mapped(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(all="ignore"):
        return held_floats(kind, _FUNCTIONS_FUNCTIONS[type(op)](*(floats(kind, a).astype(np.float64) for a in arrays)))


@evaluator(FPowI)
def _power(op: FPowI, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        whole = np.power(floats(op.lhs.type, a).astype(np.float64), integers(op.rhs.type, b).astype(np.float64))
    return held_floats(op.result.type, whole)


# Integer arithmetic of `arith` and `math`, modulo the width of the type.


_Function: TypeAlias = Callable[..., Any]


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
    """Of the least integer by -1 it is 0, though the quotient overflows."""
    return signless.divided_signed(np.where(b == -1, 0, a), b, bits)[1]


def _of_unsigned(a: np.ndarray, b: np.ndarray, bits: int, *, greater: bool) -> np.ndarray:
    above = signless.unsigned(a, bits) > signless.unsigned(b, bits)
    return np.where(above == greater, a, b)


_INTEGERS_FUNCTIONS: Final[dict[type[Op], _Function]] = {
    AddI: np.add,
    SubI: np.subtract,
    MulI: np.multiply,
    AndI: np.bitwise_and,
    OrI: np.bitwise_or,
    XOrI: np.bitwise_xor,
    MaxSI: np.maximum,
    MinSI: np.minimum,
}
"""Of which the low bits do not depend on the width."""

_OF_WIDTH: Final[dict[type[Op], _Function]] = {
    DivSI: lambda a, b, bits: signless.divided_signed(a, b, bits)[0],
    DivUI: lambda a, b, bits: signless.divided_unsigned(a, b, bits)[0],
    CeilDivSI: _ceil_signed,
    CeilDivUI: _ceil_unsigned,
    FloorDivSI: _floor_signed,
    RemSI: _remainder_signed,
    RemUI: lambda a, b, bits: signless.divided_unsigned(a, b, bits)[1],
    ShLI: signless.shifted_left,
    ShRSI: partial(signless.shifted_right, signed=True),
    ShRUI: partial(signless.shifted_right, signed=False),
    MaxUI: partial(_of_unsigned, greater=True),
    MinUI: partial(_of_unsigned, greater=False),
    AbsI: signless.absolute,
    CtLz: signless.leading_zeros,
    CtPop: lambda a, bits: signless.count_ones(signless.unsigned(a, bits)),
    CtTz: signless.trailing_zeros,
    IPowI: signless.powers,
}


@evaluator(*_INTEGERS_FUNCTIONS)
def _integers_mapped(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(over="ignore"):
        return held_integers(kind, _INTEGERS_FUNCTIONS[type(op)](*(integers(kind, array) for array in arrays)))


@evaluator(*_OF_WIDTH)
def _of_width(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(over="ignore"):
        return held_integers(kind, _OF_WIDTH[type(op)](*(integers(kind, array) for array in arrays), width(kind)))


@evaluator(AddUIExtended)
def _with_carry(op: AddUIExtended, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    kind = op.sum.type
    with np.errstate(over="ignore"):
        total, overflow = signless.added_unsigned(integers(kind, a), integers(kind, b), width(kind))
    return [held_integers(kind, total), overflow]


@evaluator(MulSIExtended, MulUIExtended)
def _in_two_parts(op: MulSIExtended | MulUIExtended, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    kind = op.low.type
    product = signless.product_signed if isinstance(op, MulSIExtended) else signless.product_unsigned
    with np.errstate(over="ignore"):
        parts = product(integers(kind, a), integers(kind, b), width(kind))
    return [held_integers(kind, part) for part in parts]
