"""Forms of the ops of `fxpmath` on integers, as ops of `tosa` in i32, none of which leaves it.

    division          (x + (x >> 31) + 2^(e-1)) >> e, the least i32 first raised by 1, which changes no quotient;
                      behind a multiplication by a constant both are one RESCALE (`numerics.fixed_point`)
    sum               one operand is first brought within what the other leaves of i32, if it can be beyond
    high multiply     RESCALE by a constant, else MUL with a shift of 31, the product in 64 bits; x times the least
                      i32 is -x, saturated
    matrix product    MATMUL

Real ops on floats become TFLite's builtins; those on quantized types are refused: the pass `lower-real-math` makes ops
on integers of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.analysis.known import value_range
from tflq.base.errors import Refused
from tflq.dialects.declare import Operator
from tflq.dialects.inference import product
from tflq.dialects.tfl.activation import Logistic, Tanh
from tflq.dialects.tfl.arithmetic import Add, Div, Exp, Log, Mul, Neg, Rsqrt, Sin, Sqrt, Square, Sub
from tflq.dialects.tfl.comparison import Equal, Greater, Less, NotEqual
from tflq.dialects.tfl.convolution import BatchMatMul, FullyConnected
from tflq.dialects.tosa.convolution import MatMul
from tflq.dialects.tosa.elementwise import LogicalLeftShift
from tflq.dialects.tosa.movement import Rescale
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
from tflq.formats.mlir.rules import CoreEmitter, Translation, constant, form, of_tensors
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32, i32
from tflq.numerics.activation import BOUNDS
from tflq.numerics.fixed_point import Multiplier

_LEAST, _MOST = i32.minimum, i32.maximum
_FREE: Final = (None, None)


def _range(x: Value) -> tuple[int, int]:
    """Least and greatest value of an i32, through a shift to the left that loses no bit."""
    shift = x.producer
    if isinstance(shift, LogicalLeftShift) and shift.input2.is_constant and shift.input2.array.size == 1:
        by = int(shift.input2.array.reshape(()))
        low, high = (end << by for end in value_range(shift.input1))
        if low >= _LEAST and high <= _MOST:
            return low, high
    return value_range(x)


def _number(x: Value) -> int | None:
    """The one number that a constant holds; None of other values."""
    return int(x.array.reshape(())) if x.is_constant and x.array.size == 1 else None


@form(RoundingDivideByPot)
def _division(op: RoundingDivideByPot, b: CoreEmitter, x: Value) -> Value:
    storage, before = x.type.storage, x.producer
    if not op.exponent:
        return x
    if isinstance(before, Rescale) and _multiplies(before):
        return b.rescale(before.input, Multiplier(int(before.multiplier[0]), -op.exponent))
    wide = b.cast(x, i32)
    if _range(wide)[0] == _LEAST:
        wide = b.maximum(wide, _LEAST + 1)
    signed = b.add(wide, b.arithmetic_right_shift(wide, 31))
    return b.cast(b.arithmetic_right_shift(signed, op.exponent, round=True), storage)


def _multiplies(op: Rescale) -> bool:
    """Whether it is a high multiply of an i32, as `_high_product` makes it."""
    plain = op.rounding is None and op.scale32 and not op.input_zp and not op.output_zp
    return plain and op.multiplier.size == 1 and int(op.shift[0]) == 31 and op.input.type.storage == i32


@form(SaturatingAdd)
def _sum(op: SaturatingAdd, b: CoreEmitter, x: Value, y: Value) -> Value:
    storage = x.type.storage
    if x.is_constant:
        x, y = y, x
    if _number(y) == 0:
        return b.clamp(x, op.clamp_min, op.clamp_max)
    wide = b.cast(x, i32), b.cast(y, i32)
    total = b.add(_bounded(b, *wide), wide[1])
    return b.cast(b.clamp(total, op.clamp_min, op.clamp_max), storage)


def _bounded(b: CoreEmitter, x: Value, y: Value) -> Value:
    """x, within what y leaves of i32."""
    (low, high), (least, most) = _range(x), _range(y)
    if low + least >= _LEAST and high + most <= _MOST:
        return x
    if (number := _number(y)) is not None:
        return b.clamp(x, _LEAST - min(number, 0), _MOST - max(number, 0))
    lowest, highest = b.sub(_LEAST, b.minimum(y, 0)), b.sub(_MOST, b.maximum(y, 0))
    return b.minimum(b.maximum(x, lowest), highest)


@form(SaturatingRoundingDoublingHighMul)
def _high_product(op: SaturatingRoundingDoublingHighMul, b: CoreEmitter, x: Value, y: Value) -> Value:
    storage = x.type.storage
    if storage != i32:
        bits = storage.bits
        product = b.add(b.mul(b.cast(x, i32), b.cast(y, i32)), 1 << (bits - 2))
        high = b.arithmetic_right_shift(product, bits - 1)
        return b.cast(b.minimum(high, storage.maximum), storage)
    if x.is_constant:
        x, y = y, x
    if (number := _number(y)) is not None and number > 0:
        return b.rescale(x, Multiplier(number, 0))
    if _LEAST not in (_range(x)[0], _range(y)[0]):
        return b.mul(x, y, shift=31)
    negative = b.sub(0, b.maximum(x, _LEAST + 1))
    return b.select(b.equal(y, _LEAST), negative, b.mul(x, b.maximum(y, _LEAST + 1), shift=31))


@of_tensors(Matmul)
def _matrix_product(op: Matmul, t: Translation) -> Value:
    """The rows of lhs as those of one matrix."""
    lhs, rhs, dims = t.whole(op.lhs), t.whole(op.rhs), op.result.type.shape
    if dims is None or lhs.type.shape is None:
        raise Refused("the rank of its operands is not known", "state their shapes")
    rows = lhs if len(lhs.type.shape) == 2 else t.b.reshape(lhs, (product(lhs.type.shape[:-1]), lhs.type.shape[-1]))
    sums = t.b.emit(MatMul, [rows, rhs], i32, a_zp=int(op.lhs_zero_point), b_zp=int(op.rhs_zero_point))
    return sums if len(dims) == 2 else t.b.reshape(sums, dims)


# Real ops on floats, as the builtins that compute them.


_BUILTINS: Final[dict[type[Op], type[Operator]]] = {RealAddEw: Add, RealSubEw: Sub, RealMulEw: Mul, RealDivEw: Div}
_FUNCTIONS: Final[dict[str, type[Operator]]] = {
    "TANH": Tanh,
    "SIGMOID": Logistic,
    "EXP": Exp,
    "LOG": Log,
    "NEG": Neg,
    "RSQRT": Rsqrt,
    "SIN": Sin,
    "SQUARE": Square,
    "SQRT": Sqrt,
}
_COMPARISONS: Final[dict[str, type[Operator]]] = {
    "CMPZ": Equal,
    "CMPNZ": NotEqual,
    "CMPLZ": Less,
    "CMPGZ": Greater,
}
_ACTIVATIONS: Final = {bounds: name for name, bounds in BOUNDS.items() if name != "RELU_0_TO_1"} | {_FREE: "NONE"}
"""The fused activations, by what they clamp to."""


def _floats(op: RealMath, t: Translation) -> list[Value]:
    """The operands. Refused if an operand or the result is not of f32."""
    if any(value.type.quantized for value in op.tensors):
        raise Refused("it computes real numbers, which are quantized", "run the pass lower-real-math first")
    for value in op.tensors:
        if value.type.element != f32:
            raise Refused(f"TFLite has no arithmetic on {value.type.element}", "write it in f32")
    return [t.whole(value) for value in op.tensors[:-1]]


def _clamped(op: RealMath, b: CoreEmitter, x: Value) -> Value:
    """x within the bounds of an op."""
    return b.limited(x, op.clamp_min, op.clamp_max)


@of_tensors(*_BUILTINS)
def _real_binary(op: RealMath, t: Translation) -> Value:
    fused = _ACTIVATIONS.get((op.clamp_min, op.clamp_max))
    kind, operands = _BUILTINS[type(op)], _floats(op, t)
    if fused is not None:
        return t.b.emit(kind, operands, fused_activation_function=fused)
    return _clamped(op, t.b, t.b.emit(kind, operands, fused_activation_function="NONE"))


@of_tensors(RealUnary)
def _real_function(op: RealUnary, t: Translation) -> Value:
    (x,), b = _floats(op, t), t.b
    if (compare := _COMPARISONS.get(op.opcode)) is not None:
        x = b.converted(b.compare(compare, x, 0), f32)
    elif op.opcode != "IDENTITY":
        x = b.emit(_FUNCTIONS[op.opcode], [x])
    return _clamped(op, b, x)


@of_tensors(RealMatmul, RealMatmulBias)
def _real_matrix_product(op: RealMatmul | RealMatmulBias, t: Translation) -> Value:
    """FULLY_CONNECTED by a constant, else BATCH_MATMUL."""
    lhs, rhs, *bias = _floats(op, t)
    b, fused = t.b, _ACTIVATIONS.get((op.clamp_min, op.clamp_max))
    if rhs.is_constant:
        weights = constant(np.ascontiguousarray(rhs.array.T), f32, compact=False)
        operands = [lhs, weights, bias[0] if bias else None]
        activation = {"fused_activation_function": fused or "NONE", "keep_num_dims": True}
        product = b.emit(FullyConnected, operands, op.result.type, **activation)
        return product if fused else _clamped(op, b, product)
    product = b.emit(BatchMatMul, [lhs, rhs], op.result.type)
    return _clamped(op, b, b.emit(Add, [product, *bias], fused_activation_function="NONE") if bias else product)
