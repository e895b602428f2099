"""Arithmetic, comparisons, choices, bits and logic, functions and activations, of the integer form and of TFLite on
plain tensors.

Integers are computed in float32 where all numbers stay below 2^24, else in int32, which wraps, or int64. Shifts and
products of more than 32 bits are floors of float32 (`tflq.formats.onnx.limbs`).

Sources: kernels/add.cc, sub.cc, mul.cc, div.cc, floor_div.cc, floor_mod.cc, squared_difference.cc, bitwise_xor.cc,
right_shift.cc, comparisons.cc, select.cc, logical.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import pi, sqrt
from typing import Final

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.declare import Operator
from tflq.dialects.tfl import activation, arithmetic, comparison
from tflq.dialects.tosa import elementwise as tosa
from tflq.formats.onnx import dialect as onnx
from tflq.formats.onnx.context import EXACT, Onnx, OnnxTensor, TensorForm, lowering
from tflq.formats.onnx.dialect import ReduceMax, ReduceSum
from tflq.formats.onnx.limbs import limbs_of, plus, product, shift_left, shift_right, shifted_right, split
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, f32, i1, i32, i64, ui8, ui32
from tflq.numerics.activation import BOUNDS

Emit = Callable[[Value, Value], Value]


_NAMES: Final[dict[type[Operator], str]] = {
    tosa.Add: "add",
    tosa.Sub: "sub",
    tosa.Maximum: "maximum",
    tosa.Minimum: "minimum",
    arithmetic.Add: "add",
    arithmetic.Sub: "sub",
    arithmetic.Mul: "mul",
    arithmetic.Div: "div",
    arithmetic.Maximum: "maximum",
    arithmetic.Minimum: "minimum",
}
"""The builder's method for each operator."""


@lowering(tosa.Add, tosa.Sub, tosa.Maximum, tosa.Minimum, arithmetic.Maximum, arithmetic.Minimum)
def linear(op: Operator, t: Onnx) -> OnnxTensor:
    return t.elementwise(getattr(t, _NAMES[type(op)]), op.present_operands, op.result)


@lowering(tosa.Mul)
def multiply(op: tosa.Mul, t: Onnx) -> OnnxTensor:
    """With a shift, (a b + 2^(shift - 1)) >> shift, of limbs."""
    operands = [op.input1, op.input2]
    if not op.shift:
        return t.elementwise(t.mul, operands, op.result)
    ends = [t.bounds(v) for v in operands]

    def emit(a: Value, b: Value) -> Value:
        factors = [split(t, v, *end) for v, end in zip((a, b), ends, strict=True)]
        half: list[Value | None] = [
            t.constant(limb[0], f32) if limb.any() else None
            for limb in limbs_of(np.asarray([1 << (op.shift - 1)], object))
        ]
        sums = product(t, *factors)
        longer = max(len(sums), len(half))
        sums, half = (v + [None] * (longer - len(v)) for v in (sums, half))
        return shifted_right(t, [plus(t, x, y) for x, y in zip(sums, half, strict=True)], op.shift)

    return t.elementwise(emit, operands, op.result, i32)


@lowering(tosa.IntDiv)
def divide(op: tosa.IntDiv, t: Onnx) -> OnnxTensor:
    """Toward zero, as DIV of integers."""
    return t.elementwise(t.div, [op.input1, op.input2], op.result, i32)


@lowering(tosa.Abs)
def absolute(op: tosa.Abs, t: Onnx) -> OnnxTensor:
    return t.elementwise(t.abs, [op.input1], op.result)


@lowering(tosa.Negate)
def negate(op: tosa.Negate, t: Onnx) -> OnnxTensor:
    """output_zp + input1_zp - x, saturated."""
    x, storage = op.input1, op.result.type.storage
    if storage.is_float:
        return t.elementwise(t.negative, [x], op.result)

    def emit(a: Value) -> Value:
        return t.clip(t.sub(t.like(op.output_zp + op.input1_zp, a), a), storage.minimum, storage.maximum)

    return t.elementwise(emit, [x], op.result, i64 if storage == i32 else f32)


@lowering(tosa.Clamp)
def clamp(op: tosa.Clamp, t: Onnx) -> OnnxTensor:
    """Between two numbers, which move with what is taken off the tensor in the form that it has."""
    if op.result.type.storage.is_float:
        return t.elementwise(lambda x: t.clip(x, op.min_val, op.max_val), [op.input], op.result)
    tensor = t.tensor(op.input)
    least, most = t.bounds(op.input)
    if op.min_val <= least and most <= op.max_val:
        return tensor
    forms = [form for form in tensor.forms if form.element in (f32, i32, i64)]
    wide = TensorForm(t.computing([op.input], op.result), first=tensor.first)
    form = min(forms, key=lambda f: (f.first != tensor.first, f.element != f32)) if forms else wide
    low, high = (int(bound) - form.offset for bound in (op.min_val, op.max_val))
    y = t.clip(tensor.get(t, form), low, high)
    return t.bind(y, op.result, offset=form.offset, first=form.first)


# TFLite's arithmetic on plain tensors.


def activated(t: Onnx, y: Value, name: str) -> Value:
    """With a fused activation. Kernels without state clamp, and ignore every other activation."""
    low, high = BOUNDS.get(name, (None, None))
    y = y if low is None else t.maximum(y, t.like(low, y))
    return y if high is None else t.minimum(y, t.like(high, y))


@lowering(arithmetic.Add, arithmetic.Sub, arithmetic.Mul, arithmetic.Div)
def kernel_arithmetic(op: arithmetic.Add | arithmetic.Sub | arithmetic.Mul | arithmetic.Div, t: Onnx) -> OnnxTensor:
    emit: Emit = getattr(t, _NAMES[type(op)])

    def compute(x: Value, y: Value) -> Value:
        return activated(t, emit(x, y), op.fused_activation_function)

    return t.elementwise(compute, [op.lhs, op.rhs], op.result, _wrapping(op.result))


@lowering(arithmetic.AddN)
def add_n(op: arithmetic.AddN, t: Onnx) -> OnnxTensor:
    """In the kernel's order: one after another. Source: kernels/add_n.cc."""
    operands = op.present_operands
    return t.elementwise(lambda *xs: reduce(t.add, xs), operands, op.result, _wrapping(op.result))


@lowering(arithmetic.SquaredDifference)
def squared_difference(op: arithmetic.SquaredDifference, t: Onnx) -> OnnxTensor:
    def emit(x: Value, y: Value) -> Value:
        difference = t.sub(x, y)
        return t.mul(difference, difference)

    return t.elementwise(emit, [op.lhs, op.rhs], op.result, _wrapping(op.result))


def _wrapping(result: Value) -> ScalarType:
    """The type in which a kernel computes plain numbers. Refused for narrow integers, whose kernels differ."""
    storage = result.type.storage
    if storage not in (i32, i64) and not storage.is_float:
        raise Refused(f"arithmetic of {storage}")
    return storage


@lowering(arithmetic.FloorDiv, arithmetic.FloorMod)
def floor_division(op: arithmetic.FloorDiv | arithmetic.FloorMod, t: Onnx) -> OnnxTensor:
    """Of integers: MOD has the divisor's sign, as the kernel's; DIV goes toward zero, which is one more where what it
    leaves has not the divisor's sign."""
    storage = op.result.type.storage

    def emit(x: Value, y: Value) -> Value:
        if storage.is_float:
            return _float_modulo(t, x, y) if isinstance(op, arithmetic.FloorMod) else t.floor(t.div(x, y))
        if isinstance(op, arithmetic.FloorMod):
            return t.mod(x, y)
        quotient = t.div(x, y)
        rest = t.sub(x, t.mul(quotient, y))
        differ = t.emit(onnx.Xor, [t.below_zero(rest), t.below_zero(y)])
        off = t.both(differ, t.invert(t.equal(rest, t.like(0, rest))))
        return t.sub(quotient, t.cast(off, quotient.type.storage))

    element = storage if storage.is_float or storage == i64 else i32
    return t.elementwise(emit, [op.lhs, op.rhs], op.result, element)


def _float_modulo(t: Onnx, x: Value, y: Value) -> Value:
    """The remainder of the quotient toward zero, which is exact; plus the divisor, if their signs differ."""
    rest = t.mod(x, y, fmod=True)
    differ = t.emit(onnx.Xor, [t.below_zero(rest), t.below_zero(y)])
    off = t.both(differ, t.invert(t.equal(rest, t.like(0, rest))))
    return t.where(off, t.add(rest, y), rest)


@lowering(tosa.Pow, arithmetic.Pow)
def power(op: tosa.Pow | arithmetic.Pow, t: Onnx) -> OnnxTensor:
    if not op.result.type.storage.is_float:
        raise Refused("POW of integers")
    return t.elementwise(lambda x, y: t.emit(onnx.Pow, [x, y]), op.present_operands, op.result)


# Comparisons and choices.


_COMPARED: Final[dict[type[Operator], tuple[type[Operator], bool]]] = {
    tosa.Equal: (onnx.Equal, False),
    tosa.Greater: (onnx.Greater, False),
    tosa.GreaterEqual: (onnx.GreaterOrEqual, False),
    comparison.Equal: (onnx.Equal, False),
    comparison.NotEqual: (onnx.Equal, True),
    comparison.Greater: (onnx.Greater, False),
    comparison.GreaterEqual: (onnx.GreaterOrEqual, False),
    comparison.Less: (onnx.Less, False),
    comparison.LessEqual: (onnx.LessOrEqual, False),
}
"""The operator for each comparison, and whether it is the contrary."""


@lowering(tosa.Comparison | comparison.Comparison)
def compare(op: tosa.Comparison | comparison.Comparison, t: Onnx) -> OnnxTensor:
    kind, contrary = _COMPARED[type(op)]
    operands = op.present_operands

    def emit(x: Value, y: Value) -> Value:
        if x.type.storage == i1:
            differ = t.emit(onnx.Xor, [x, y])
            return differ if contrary else t.invert(differ)
        truth = t.emit(kind, [x, y])
        return t.invert(truth) if contrary else truth

    element = i1 if operands[0].type.storage == i1 else t.computing(operands)
    return t.elementwise(emit, operands, op.result, element)


@lowering(tosa.Select, comparison.SelectV2)
def select(op: tosa.Select | comparison.SelectV2, t: Onnx) -> OnnxTensor:
    condition, x, y = op.present_operands
    return chosen(t, condition, None, x, y, op.result)


@lowering(comparison.Select)
def select_rows(op: comparison.Select, t: Onnx) -> OnnxTensor:
    """A condition of rank 1 chooses whole rows."""
    condition, x, y = op.present_operands
    missing = len(x.type.dims) - len(condition.type.dims)
    rows = (*condition.type.dims, *(1,) * missing) if missing else None
    return chosen(t, condition, rows, x, y, op.result)


def chosen(
    t: Onnx, condition: Value, rows: Sequence[int | None] | None, x: Value, y: Value, result: Value
) -> OnnxTensor:
    """WHERE; of truth values by AND and OR."""
    chosen = t.value(condition) if rows is None else t.reshape(t.value(condition), rows)
    if result.type.storage == i1:
        a, b = t.value(x), t.value(y)
        choice = t.either(t.both(chosen, a), t.both(t.invert(chosen), b))
        return t.bind(choice, result)
    element = t.computing([x, y], result)
    return t.bind(t.where(chosen, t.integers(x, element), t.integers(y, element)), result)


# Bits of integers, and logic.


_LOGIC: Final[dict[type[Operator], type[Operator]]] = {
    tosa.LogicalAnd: onnx.And,
    tosa.LogicalOr: onnx.Or,
    tosa.LogicalXor: onnx.Xor,
    comparison.LogicalAnd: onnx.And,
    comparison.LogicalOr: onnx.Or,
    tosa.BitwiseAnd: onnx.BitwiseAnd,
    tosa.BitwiseOr: onnx.BitwiseOr,
    tosa.BitwiseXor: onnx.BitwiseXor,
    comparison.BitwiseXor: onnx.BitwiseXor,
}


@lowering(*_LOGIC)
def logic(op: Operator, t: Onnx) -> OnnxTensor:
    return t.elementwise(
        lambda x, y: t.emit(_LOGIC[type(op)], [x, y]), op.present_operands, op.result, op.result.type.storage
    )


@lowering(tosa.LogicalNot, comparison.LogicalNot)
def invert(op: tosa.LogicalNot | comparison.LogicalNot, t: Onnx) -> OnnxTensor:
    return t.elementwise(t.invert, op.present_operands, op.result, i1)


@lowering(tosa.BitwiseNot)
def complement(op: tosa.BitwiseNot, t: Onnx) -> OnnxTensor:
    """-1 - x, or 255 - x of uint8."""
    ones = 255 if op.result.type.storage == ui8 else -1
    element = None if op.result.type.storage.bits < 32 else i32
    return t.elementwise(lambda x: t.sub(t.like(ones, x), x), [op.input], op.result, element)


@lowering(tosa.LogicalLeftShift)
def left_shift(op: tosa.LogicalLeftShift, t: Onnx) -> OnnxTensor:
    if op.result.type.storage != i32:
        raise Refused(f"a left shift of {op.result.type.storage}")
    return t.elementwise(lambda x, places: shift_left(t, x, places), [op.input1, op.input2], op.result, i32)


@lowering(tosa.LogicalRightShift)
def logical_right_shift(op: tosa.LogicalRightShift, t: Onnx) -> OnnxTensor:
    """BITSHIFT of an unsigned integer."""
    if op.result.type.storage != i32:
        raise Refused(f"a logical right shift of {op.result.type.storage}")

    def emit(x: Value, places: Value) -> Value:
        return t.cast(t.bit_shift(t.cast(x, ui32), t.cast(places, ui32), "RIGHT"), i32)

    return t.elementwise(emit, [op.input1, op.input2], op.result, i32)


@lowering(tosa.ArithmeticRightShift, comparison.RightShift)
def right_shift(op: tosa.ArithmeticRightShift | comparison.RightShift, t: Onnx) -> OnnxTensor:
    """Rounded down, or half up. In float32 by constants, where it holds the numbers; else in int32, where what is lost
    last is the difference of two shifts."""
    x, places = op.present_operands
    rounds = isinstance(op, tosa.ArithmeticRightShift) and op.round
    if places.is_constant:
        amounts = places.array.astype(np.int64)
        if isinstance(op, comparison.RightShift):
            amounts = np.clip(amounts, 0, x.type.storage.bits - 1)
        low, high = t.bounds(x)
        half = (np.int64(1) << amounts) >> 1 if rounds else np.zeros_like(amounts)
        if low >= -EXACT and high + int(half.max(initial=0)) <= EXACT:
            return t.elementwise(lambda v: _float_shift(t, v, amounts, half), [x], op.result, f32)
    elif isinstance(op, comparison.RightShift):
        raise Refused("a shift by a computed amount")

    def emit(v: Value, n: Value) -> Value:
        y = shift_right(t, v, n)
        if not rounds:
            return y
        zero = t.like(0, n)
        before = shift_right(t, v, t.maximum(t.sub(n, t.like(1, n)), zero))
        return t.where(t.greater(n, zero), t.sub(before, y), v)

    return t.elementwise(emit, [x, places], op.result, i32)


def _float_shift(t: Onnx, x: Value, amounts: np.ndarray, half: np.ndarray) -> Value:
    if not amounts.any():
        return x
    x = t.add(x, t.like(half, x)) if half.any() else x
    return t.floor(t.mul(x, t.like(np.ldexp(1.0, -amounts.astype(np.int32)), x)))


@lowering(tosa.Clz)
def leading_zeros(op: tosa.Clz, t: Onnx) -> OnnxTensor:
    """32 less the number of powers of two that x reaches; 0 below 0."""
    x = t.integers(op.input)
    shape = x.type.dims
    powers = t.constant(np.int64(1) << np.arange(31, dtype=np.int64), i32)
    reached = t.cast(t.greater_or_equal(t.reshape(x, (*shape, 1)), powers), f32)
    bits = t.cast(t.reduce(ReduceSum, reached, [len(shape)], keep=False), i32)
    zeros = t.sub(t.like(32, bits), bits)
    return t.bind(t.where(t.below_zero(x), t.like(0, zeros), zeros), op.result)


# Functions of one number, in float32, and of whole numbers where they are whole. Sources: kernels/elementwise.cc,
# exp.cc, floor.cc, ceil.cc, round.cc, neg.cc, zeros_like.cc.


_FUNCTIONS: Final[dict[type[Operator], type[Operator]]] = {
    tosa.Ceil: onnx.Ceil,
    tosa.Cos: onnx.Cos,
    tosa.Erf: onnx.Erf,
    tosa.Exp: onnx.Exp,
    tosa.Floor: onnx.Floor,
    tosa.Log: onnx.Log,
    tosa.Reciprocal: onnx.Reciprocal,
    tosa.Sigmoid: onnx.Sigmoid,
    tosa.Sin: onnx.Sin,
    tosa.Tanh: onnx.Tanh,
    arithmetic.Ceil: onnx.Ceil,
    arithmetic.Cos: onnx.Cos,
    activation.Elu: onnx.Elu,
    arithmetic.Exp: onnx.Exp,
    arithmetic.Floor: onnx.Floor,
    arithmetic.Log: onnx.Log,
    activation.Logistic: onnx.Sigmoid,
    arithmetic.Round: onnx.Round,
    arithmetic.Sign: onnx.Sign,
    arithmetic.Sin: onnx.Sin,
    arithmetic.Sqrt: onnx.Sqrt,
    activation.Tanh: onnx.Tanh,
}


@lowering(*_FUNCTIONS)
def function(op: Operator, t: Onnx) -> OnnxTensor:
    return _of_floats(t, op, lambda x: t.emit(_FUNCTIONS[type(op)], [x]))


@lowering(tosa.Rsqrt, arithmetic.Rsqrt)
def reciprocal_root(op: tosa.Rsqrt | arithmetic.Rsqrt, t: Onnx) -> OnnxTensor:
    return _of_floats(t, op, lambda x: t.emit(onnx.Reciprocal, [t.emit(onnx.Sqrt, [x])]))


@lowering(arithmetic.Abs, arithmetic.Neg, arithmetic.Square)
def of_numbers(op: arithmetic.Abs | arithmetic.Neg | arithmetic.Square, t: Onnx) -> OnnxTensor:
    """Also of int32, which wraps."""
    if op.result.type.storage not in (f32, i32):
        raise Refused(f"{op.short_name.upper()} of {op.result.type.storage}")

    def emit(x: Value) -> Value:
        if isinstance(op, arithmetic.Square):
            return t.mul(x, x)
        return t.abs(x) if isinstance(op, arithmetic.Abs) else t.negative(x)

    return t.elementwise(emit, [op.input], op.result, op.result.type.storage)


@lowering(arithmetic.ZerosLike)
def zeros_like(op: arithmetic.ZerosLike, t: Onnx) -> OnnxTensor:
    """x times 0, which is 0 where x is whole; of floats, which may be infinite, x < x."""

    def emit(x: Value) -> Value:
        return t.cast(t.less(x, x), x.type.storage) if x.type.storage.is_float else t.mul(x, t.like(0, x))

    return t.elementwise(emit, [op.input], op.result)


# Activations and normalizations of float32: what the float fallback computes between casts.
#
# Sources: kernels/activations.cc, l2norm.cc.


CLAMPS: Final[dict[type[Operator], str]] = {
    activation.Relu: "RELU",
    activation.Relu6: "RELU6",
    activation.ReluN1To1: "RELU_N1_TO_1",
    activation.Relu0To1: "RELU_0_TO_1",
}


@lowering(*CLAMPS)
def rectify(op: activation.ScaledActivation, t: Onnx) -> OnnxTensor:
    return _of_floats(t, op, lambda x: activated(t, x, CLAMPS[type(op)]))


@lowering(activation.LeakyRelu)
def leaky_relu(op: activation.LeakyRelu, t: Onnx) -> OnnxTensor:
    return _of_floats(t, op, lambda x: t.where(t.below_zero(x), t.mul(x, t.like(op.alpha, x)), x))


@lowering(activation.Prelu)
def prelu(op: activation.Prelu, t: Onnx) -> OnnxTensor:
    _need_float(op)
    return t.elementwise(lambda x, alpha: t.where(t.below_zero(x), t.mul(x, alpha), x), [op.input, op.alpha], op.result)


@lowering(activation.HardSwish)
def hard_swish(op: activation.HardSwish, t: Onnx) -> OnnxTensor:
    def emit(x: Value) -> Value:
        return t.mul(t.mul(x, t.clip(t.add(x, t.like(3, x)), 0, 6)), t.like(1 / 6, x))

    return _of_floats(t, op, emit)


@lowering(activation.Gelu)
def gelu(op: activation.Gelu, t: Onnx) -> OnnxTensor:
    def emit(x: Value) -> Value:
        if op.approximate:
            cube = t.mul(t.mul(x, x), x)
            inner = t.mul(t.add(x, t.mul(cube, t.like(0.044715, x))), t.like(sqrt(2 / pi), x))
            share = t.emit(onnx.Tanh, [inner])
        else:
            share = t.emit(onnx.Erf, [t.mul(x, t.like(sqrt(0.5), x))])
        return t.mul(t.mul(x, t.like(0.5, x)), t.add(share, t.like(1, x)))

    return _of_floats(t, op, emit)


@lowering(activation.Softmax, activation.LogSoftmax)
def softmax(op: activation.Softmax | activation.LogSoftmax, t: Onnx) -> OnnxTensor:
    """Of the last dim, less its greatest element."""
    _need_float(op)
    x, last = t.value(op.input), [len(op.input.type.dims) - 1]
    centred = t.sub(x, t.reduce(ReduceMax, x, last))
    if isinstance(op, activation.LogSoftmax):
        total = t.reduce(ReduceSum, t.emit(onnx.Exp, [centred]), last)
        return t.bind(t.sub(centred, t.emit(onnx.Log, [total])), op.result)
    powers = t.emit(onnx.Exp, [t.mul(centred, t.like(op.beta, x))])
    return t.bind(t.div(powers, t.reduce(ReduceSum, powers, last)), op.result)


@lowering(activation.L2Normalization)
def l2_normalization(op: activation.L2Normalization, t: Onnx) -> OnnxTensor:
    """Of the last dim, whose norm is at least 1e-6."""
    _need_float(op)
    x = t.value(op.input)
    squares = t.reduce(ReduceSum, t.mul(x, x), [len(op.input.type.dims) - 1])
    norm = t.maximum(t.emit(onnx.Sqrt, [squares]), t.like(1e-6, x))
    return t.bind(activated(t, t.div(x, norm), op.fused_activation_function), op.result)


def _of_floats(t: Onnx, op: Operator, emit: Callable[[Value], Value]) -> OnnxTensor:
    _need_float(op)
    return t.elementwise(emit, op.present_operands, op.result)


def _need_float(op: Operator) -> None:
    if op.result.type.storage != f32:
        raise Refused(f"{op.short_name.upper()} of {op.result.type.storage}")
