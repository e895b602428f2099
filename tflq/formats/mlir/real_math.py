"""Real math of `fxpmath`: made of float operators, and lowered to integers.

raise-real-math: float operators of TFLite become real ops.

    ADD SUB MUL DIV          real_add_ew and its kin, with the fused activation as a clamp
    FULLY_CONNECTED          real_matmul or real_matmul_bias; weights are transposed, a constant at once
    TANH LOGISTIC EXP ...    real_unary
    RELU and its kin, MAXIMUM and MINIMUM with a number
                             a clamp of the real op whose result only they read
    ADD of a vector          the bias of a real_matmul whose result only it reads

Two clamps, one after the other, are one (`numerics.real_math.combined`).

lower-real-math: real ops on quantized types become the dialect's ops on integers.

    stored integers     quant.scast; widened to i32, less the zero point
    scaling             `numerics.real_math.Factor`: arith.shli, saturating_rounding_doubling_high_mul by a constant,
                        rounding_divide_by_pot
    result              saturating_add of the zero point, clamped to the range; narrowed; quant.scast

A sum of signed numbers without zero points, of which one has the result's scale and the other that divided by a power
of two, stays in its storage type: the finer operand is divided, then both are added. A function of 8 bits is a
tosa.table of 256 entries. `numerics.real_math` says how the factors are chosen and when there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import isclose, isfinite, prod
from typing import Any, ClassVar, Final, Literal

import numpy as np

from tflq.base.errors import Reason, Refused, UnsupportedError
from tflq.dialects.builder import Emitter
from tflq.dialects.declare import Operator
from tflq.dialects.effects import visible_blocks
from tflq.dialects.inference import constant_array
from tflq.dialects.quant import Scast
from tflq.dialects.tfl.activation import Logistic, Relu, Relu0To1, Relu6, ReluN1To1, Tanh
from tflq.dialects.tfl.arithmetic import Add, Div, Exp, Log, Maximum, Minimum, Mul, Neg, Rsqrt, Sin, Sqrt, Square, Sub
from tflq.dialects.tfl.convolution import FullyConnected
from tflq.dialects.tfl.movement import Reshape, Transpose
from tflq.dialects.tosa.movement import Table
from tflq.formats.mlir.dialects.arith import (
    COMPARE_INTEGER,
    CmpI,
    DivSI,
    ExtSI,
    ExtUI,
    Select,
    ShLI,
    SubI,
    TruncI,
    XOrI,
)
from tflq.formats.mlir.dialects.fxpmath import (
    Matmul,
    RealAddEw,
    RealBinary,
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
from tflq.formats.mlir.lower_quant import open_dims, scalar, splat
from tflq.ir.attributes import TypedInt
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.rewriting import replace_result
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i1, i8, i32
from tflq.numerics.activation import BOUNDS
from tflq.numerics.real_math import (
    DIVIDEND_SHIFT,
    RECIPROCAL,
    Factor,
    NoFactor,
    Steps,
    combined,
    contraction_factor,
    power_of_two,
    product_factors,
    quotient_factor,
    sum_factors,
    unary_table,
)
from tflq.transforms.pass_manager import Pass, PassResult

_Bounds = tuple[float | None, float | None]
_FREE: Final[_Bounds] = (None, None)

_BINARIES: Final[dict[type[Op], type[RealBinary]]] = {Add: RealAddEw, Sub: RealSubEw, Mul: RealMulEw, Div: RealDivEw}
_UNARIES: Final[dict[type[Op], str]] = {
    Tanh: "TANH",
    Logistic: "SIGMOID",
    Exp: "EXP",
    Log: "LOG",
    Neg: "NEG",
    Rsqrt: "RSQRT",
    Sin: "SIN",
    Square: "SQUARE",
    Sqrt: "SQRT",
}
_CLAMPS: Final[dict[type[Op], str]] = {
    Relu: "RELU",
    Relu6: "RELU6",
    ReluN1To1: "RELU_N1_TO_1",
    Relu0To1: "RELU_0_TO_1",
}


class RaiseRealMath(Pass):
    """Raises float32 ADD, SUB, MUL, DIV, FULLY_CONNECTED and functions of one number to the real ops of `fxpmath`, with
    their activations, clamps and biases.

    Other operators stay, and so do clamps of a result that something else reads, too, or that no real op makes.
    """

    name: ClassVar[str] = "raise-real-math"
    makes: ClassVar[Literal["any"]] = "any"

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, lambda function: _Raising(function).run())


class _Raising:
    """The raising of one function. `readers`: how often each value is read."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.readers = Counter({value: len(ops) for value, ops in function.users().items()})
        self.readers.update(function.outputs)
        self.ops: list[Op] = []
        self.b = Emitter(self.ops)
        self.gone: set[Value] = set()

    def run(self) -> bool:
        """Whether anything changed."""
        modified = False
        for op in self.function.ops:
            self.b.location = op.location
            raised = self.raised(op) if _is_float(op) else None
            if raised is None:
                self.ops.append(op)
                continue
            replace_result(raised, op.result)
            modified = True
        self.function.ops = self.ops
        self.function.tensors = [value for value in self.function.tensors if value not in self.gone]
        return modified

    def raised(self, op: Op) -> Value | None:
        """The value that replaces an operator's result; None if the operator stays."""
        if isinstance(op, FullyConnected):
            return self.product(op)
        if (kind := _BINARIES.get(type(op))) is not None:
            return self.biased(op) or self.binary(op, kind)
        if (opcode := _UNARIES.get(type(op))) is not None:
            return self.b.emit(RealUnary, op.operands, op.result.type, opcode=opcode)
        clamp = _clamp(op)
        return None if clamp is None else self.clamped(*clamp)

    def binary(self, op: Any, kind: type[RealBinary]) -> Value | None:
        bounds = _activation(op)
        return None if bounds is None else self.b.emit(kind, op.operands, op.result.type, **_attributes(bounds))

    def product(self, op: FullyConnected) -> Value | None:
        """input weightsᵀ + bias."""
        bounds, shape = _activation(op), op.weights.type.shape
        plain = op.weights_format == "DEFAULT" and len(op.results) == 1
        if bounds is None or not plain or shape is None or (op.bias is not None and op.bias.type.rank != 1):
            return None
        rows = self.rows(op, shape[1])
        if rows is None:
            return None
        operands: list[Value | None] = [rows, self.transposed(op.weights)]
        if op.bias is None:
            return self.b.emit(RealMatmul, operands, op.result.type, **_attributes(bounds))
        return self.b.emit(RealMatmulBias, [*operands, op.bias], op.result.type, **_attributes(bounds))

    def rows(self, op: FullyConnected, length: int | None) -> Value | None:
        """The input, in rows of the weights' length."""
        dims = op.input.type.shape
        if dims is None or length is None:
            return None
        if dims and dims[-1] == length and (op.keep_num_dims or len(dims) == 2):
            return op.input
        if op.keep_num_dims:
            return None
        known = [dim for dim in dims if dim is not None]
        count = prod(known) // length if len(known) == len(dims) and length else None
        sizes = constant(np.asarray([-1, length], np.int32))
        return self.b.emit(Reshape, [op.input, sizes], TensorType((count, length), f32))

    def transposed(self, weights: Value) -> Value:
        array = constant_array(weights)
        if array is not None:
            return constant(np.ascontiguousarray(array.T), name=weights.name)
        units, length = weights.type.shape or (None, None)
        order = constant(np.asarray([1, 0], np.int32))
        return self.b.emit(Transpose, [weights, order], TensorType((length, units), f32))

    def biased(self, op: Any) -> Value | None:
        """A product and the ADD of a vector to it, as one op."""
        bounds = _activation(op)
        if not isinstance(op, Add) or bounds is None:
            return None
        for product, bias in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            matmul = self.only_read_here(product)
            if not isinstance(matmul, RealMatmul) or _bounds(matmul) != _FREE or bias.type.rank != 1:
                continue
            if bias.type.shape == product.type.dims[-1:] and product.type == op.result.type:
                self.ops.remove(matmul)
                self.gone.add(product)
                return self.b.emit(RealMatmulBias, [*matmul.operands, bias], op.result.type, **_attributes(bounds))
        return None

    def clamped(self, x: Value, bounds: _Bounds) -> Value | None:
        """The real op that makes x, with a clamp more."""
        producer = self.only_read_here(x)
        if not isinstance(producer, RealMath):
            return None
        producer.attributes = {**producer.attributes, **_attributes(combined(_bounds(producer), *bounds))}
        self.gone.add(x)
        return x

    def only_read_here(self, x: Value) -> Op | None:
        """The op of this function that makes a value, if that is read once."""
        return x.producer if self.readers[x] == 1 and x.producer in self.ops else None


def _is_float(op: Op) -> bool:
    """Whether an operator has one result, and all its tensors are float32."""
    return op.name.startswith("tfl.") and bool(op.results) and all(v.type.element == f32 for v in op.tensors)


def _activation(op: Any) -> _Bounds | None:
    """The bounds of a fused activation; None of one that does not clamp."""
    name = op.fused_activation_function
    return _FREE if name == "NONE" else BOUNDS.get(name)


def _clamp(op: Op) -> tuple[Value, _Bounds] | None:
    """The tensor that an operator clamps, and to what."""
    if (name := _CLAMPS.get(type(op))) is not None:
        (x,) = op.present_operands
        return x, BOUNDS[name]
    if isinstance(op, (Maximum, Minimum)):
        for x, bound in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if x.type == op.result.type and (number := _number(bound)) is not None:
                return x, ((number, None) if isinstance(op, Maximum) else (None, number))
    return None


def _number(value: Value) -> float | None:
    """The one number that all elements of a constant are."""
    array = constant_array(value)
    if array is None or not array.size or not (array == array.reshape(-1)[0]).all():
        return None
    return float(array.reshape(-1)[0])


def _bounds(op: RealMath) -> _Bounds:
    return op.clamp_min, op.clamp_max


def _attributes(bounds: _Bounds) -> dict[str, Any]:
    """The attributes of a clamp; None for an end that is infinite."""
    named = zip(("clamp_min", "clamp_max"), bounds, strict=True)
    return {name: bound for name, bound in named if bound is not None and isfinite(bound)}


_I31: Final = 1 << 31


class LowerRealMath(Pass):
    """Lowers the real ops of `fxpmath` on quantized types to its ops on integers; those on floats stay.

    Sums, differences and products take up to 16 bits, quotients, matrix products and functions up to 8. The result is
    within one step of the real one. UnsupportedError lists the ops without such a form: mixed with floats, of other
    widths, with scales per axis, or with scales whose ratio leaves int32.
    """

    name: ClassVar[str] = "lower-real-math"
    makes: ClassVar[Literal["any"]] = "any"

    def run(self, module: Module) -> PassResult:
        refused: list[Reason] = []
        modified = [_function(module, index, refused) for index in range(len(module.functions))]
        if refused:
            raise UnsupportedError(f"{len(refused)} op(s) have no form on integers:", refused)
        return PassResult(module, any(modified))


def _function(module: Module, index: int, refused: list[Reason]) -> bool:
    function = module.functions[index]
    ops = _ops(function.ops, _Place(module, index, function), refused)
    modified, function.ops = ops is not function.ops, ops
    return modified


class _Place:
    """Where refusals are."""

    def __init__(self, module: Module, index: int, function: Function) -> None:
        self._source, self._index, self._name = module.source, index, function.name

    def of(self, refusal: Refused, op: Op) -> Reason:
        if op.location is not None:
            return refusal.at(op.location)
        return refusal.within(f"function {self._index} '{self._name}', {op.name}", self._source, self._index)


def _ops(ops: list[Op], place: _Place, refused: list[Reason]) -> list[Op]:
    """The ops with the real ones lowered, also inside of others; the same list if there are none."""
    result: list[Op] = []
    changed = False
    for op in ops:
        if isinstance(op, RealMath) and any(not isinstance(v.type.element, ScalarType) for v in op.tensors):
            start, b = len(result), Emitter(result)
            b.location = op.location
            try:
                replace_result(_Lowering(op, b).result(), op.result)
                changed = True
            except Refused as refusal:
                refused.append(place.of(refusal, op))
                result[start:] = [op]
            continue
        for block in visible_blocks(op):
            inside = _ops(block.ops, place, refused)
            changed |= inside is not block.ops
            block.ops = inside
        result.append(op)
    return result if changed else ops


class _Lowering:
    """The lowering of one op: `b` emits, `steps` says how each tensor is stored, operands first."""

    def __init__(self, op: RealMath, b: Emitter) -> None:
        self.op, self.b = op, b
        self.names = [slot.name for slot in (*op.operand_slots, *op.result_slots)]
        self.elements = [_per_layer(*pair) for pair in zip(self.names, op.tensors, strict=True)]
        self.steps = [Steps(e.scale, e.zero_point, e.storage_min, e.storage_max) for e in self.elements]
        self.target = self.steps[-1].clamped(op.clamp_min, op.clamp_max) if self.steps[-1].scale else self.steps[-1]

    def result(self) -> Value:
        """The result, of the op's type."""
        try:
            stored = _LOWERINGS[type(self.op)](self)
        except NoFactor as why_not:
            raise Refused(str(why_not), "choose other scales") from None
        return self.b.emit(Scast, [stored], self.op.result.type)

    def at_most(self, bits: int) -> None:
        """Refused if a tensor other than a bias is stored in more bits."""
        for name, element in zip(self.names, self.elements, strict=True):
            if element.storage.bits > bits and name != "bias":
                what = f"'{name}' is stored in {element.storage}, and the form on integers takes {bits} bits at most"
                raise Refused(what, f"quantize it to {bits} bits")

    # --- stored integers

    def stored(self, place: int) -> Value:
        """An operand's stored integers, signless."""
        value = self.op.tensors[place]
        return self.b.emit(Scast, [value], value.type.stored())

    def widened(self, place: int, to: ScalarType = i32) -> Value:
        """An operand's stored integers in a type of more bits."""
        storage, x = self.elements[place].storage, self.stored(place)
        if storage.bits == to.bits:
            return x
        return self.b.emit(ExtSI if storage.signed else ExtUI, [x], x.type.with_element(to))

    def centred(self, place: int) -> Value:
        """An operand's stored integers less the zero point, in i32."""
        x, zero = self.widened(place), self.steps[place].zero_point
        return self.elementwise(SubI, x, self.like(x, zero)) if zero else x

    def finished(self, x: Value) -> Value:
        """Stores an i32 in steps of the result: adds the zero point, clamps, narrows."""
        total = self.add(x, self.like(x, self.target.zero_point), self.target.low, self.target.high)
        return self.b.emit(TruncI, [total], self.op.result.type.stored())

    # --- ops on i32

    def like(self, x: Value, number: int) -> Value:
        """A tensor of one number, of the shape of another."""
        return splat(self.b, scalar(number, x.type.storage), x.type, open_dims(self.b, x))

    def elementwise(self, kind: type[Operator], *operands: Value) -> Value:
        """An op of `arith` on tensors of one type."""
        return self.b.emit(kind, operands, operands[-1].type)

    def shifted(self, x: Value, left: int) -> Value:
        return self.elementwise(ShLI, x, self.like(x, left)) if left else x

    def high(self, x: Value, y: Value) -> Value:
        return self.b.emit(SaturatingRoundingDoublingHighMul, [x, y])

    def add(self, x: Value, y: Value, low: int = -_I31, high: int = _I31 - 1, type: TensorType | None = None) -> Value:
        return self.b.emit(SaturatingAdd, [x, y], type, clamp_min=TypedInt(low, i32), clamp_max=TypedInt(high, i32))

    def divided(self, x: Value, exponent: int) -> Value:
        return self.b.emit(RoundingDivideByPot, [x], exponent=TypedInt(exponent, i32)) if exponent else x

    def scaled(self, x: Value, by: Factor) -> Value:
        """x times a factor."""
        if by.limit is not None:
            x = self.add(x, self.like(x, 0), -by.limit, by.limit)
        x = self.shifted(x, by.left)
        if by.mantissa is not None:
            x = self.high(x, self.like(x, by.mantissa))
        return self.divided(x, by.right)


def _per_layer(name: str, value: Value) -> UniformQuantizedType:
    """The quantized type of a tensor. Refused if the tensor has not one scale."""
    element = value.type.element
    if isinstance(element, UniformQuantizedType):
        return element
    if isinstance(element, ScalarType):
        raise Refused(f"'{name}' is {element}, and others are quantized", "quantize it, or dequantize the others")
    raise Refused(f"'{name}' has no single scale", "give it one scale and zero point for the tensor")


# What each op becomes: the stored result.


def _sum(x: _Lowering) -> Value:
    """lhs + rhs, or lhs - rhs."""
    if (narrow := _narrow_sum(x)) is not None:
        return narrow
    x.at_most(16)
    one, other, both = sum_factors(*x.steps)
    first, second = x.scaled(x.centred(0), one), x.scaled(x.centred(1), other)
    if isinstance(x.op, RealSubEw):
        second = x.elementwise(SubI, x.like(second, 0), second)
    return x.finished(x.scaled(x.add(first, second), both))


def _narrow_sum(x: _Lowering) -> Value | None:
    """lhs + rhs in the storage type, if the finer operand need only be divided by a power of two."""
    first, second, result = x.steps
    storage = x.elements[-1].storage
    plain = storage.signed and storage.bits in (8, 16, 32) and not any(each.zero_point for each in x.steps)
    if not plain or not isinstance(x.op, RealAddEw) or any(e.storage != storage for e in x.elements):
        return None
    if not result.scale or max(first.scale, second.scale) != result.scale:
        return None
    exponents = [power_of_two(each.scale / result.scale) for each in (first, second)]
    if any(e is None or not -31 <= e <= 0 for e in exponents):
        return None
    lhs, rhs = x.stored(0), x.stored(1)
    lhs, rhs = x.divided(lhs, -(exponents[0] or 0)), x.divided(rhs, -(exponents[1] or 0))
    return x.add(lhs, rhs, x.target.low, x.target.high, x.op.result.type.stored())


def _product(x: _Lowering) -> Value:
    """lhs * rhs."""
    x.at_most(16)
    one, other, factor = product_factors(*x.steps)
    return x.finished(x.scaled(x.high(x.shifted(x.centred(0), one), x.shifted(x.centred(1), other)), factor))


def _quotient(x: _Lowering) -> Value:
    """lhs / rhs. Where rhs is 0 the reciprocal is taken as 0, and lhs is added as often as leaves the range."""
    x.at_most(8)
    factor = quotient_factor(*x.steps)
    dividend, divisor = x.shifted(x.centred(0), DIVIDEND_SHIFT), x.centred(1)
    nothing = x.like(divisor, 0)
    is_zero = x.b.emit(CmpI, [divisor, nothing], divisor.type.with_element(i1), predicate=COMPARE_INTEGER.index("eq"))
    safe = x.elementwise(Select, is_zero, x.like(divisor, 1), divisor)
    reciprocal = x.elementwise(DivSI, x.like(divisor, RECIPROCAL), safe)
    quotient = x.high(dividend, x.elementwise(Select, is_zero, nothing, reciprocal))
    beyond = x.high(dividend, x.elementwise(Select, is_zero, x.like(divisor, _I31 - 1), nothing))
    return x.finished(x.add(x.scaled(quotient, factor), beyond))


def _contraction(x: _Lowering) -> Value:
    """lhs rhs + bias, the sums in i32."""
    x.at_most(8)
    length = x.op.tensors[1].type.shape[0] if x.op.tensors[1].type.shape else None
    if length is None:
        raise Refused("the number of products in a sum is not known", "state the rows of rhs")
    reach = length * x.steps[0].reach * x.steps[1].reach
    if reach >= _I31:
        raise Refused(f"sums of {length} products may leave int32", "split it along the rows of rhs")
    (lhs, zero), (rhs, other) = _bytes(x, 0), _bytes(x, 1)
    sums = x.b.emit(Matmul, [lhs, rhs], lhs_zero_point=TypedInt(zero, i32), rhs_zero_point=TypedInt(other, i32))
    if isinstance(x.op, RealMatmulBias):
        sums = x.add(sums, _bias(x))
        reach = min(reach + x.steps[2].reach, _I31 - 1)
    return x.finished(x.scaled(sums, contraction_factor(x.steps[0], x.steps[1], x.steps[-1], reach)))


def _bytes(x: _Lowering, place: int) -> tuple[Value, int]:
    """An operand as i8, and its zero point there: of unsigned integers the top bit is flipped."""
    stored, storage, zero = x.widened(place, i8), x.elements[place].storage, x.steps[place].zero_point
    if storage.signed or storage.bits < i8.bits:
        return stored, zero
    return x.elementwise(XOrI, stored, x.like(stored, i8.minimum)), zero + i8.minimum


def _bias(x: _Lowering) -> Value:
    """The bias in i32. Refused unless it is stored in steps of the products."""
    step, bias = x.steps[0].scale * x.steps[1].scale, x.steps[2]
    if bias.zero_point or x.elements[2].storage.bits > i32.bits or not isclose(bias.scale, step, rel_tol=1e-6):
        what = f"'bias' has scale {bias.scale:.6g} and zero point {bias.zero_point}"
        raise Refused(what, f"store it in i32 with zero point 0 and the operands' product of scales, {step:.6g}")
    return x.widened(2)


def _function_of_one(x: _Lowering) -> Value:
    """A table of the 256 integers that 8 bits hold."""
    x.at_most(8)
    source, result = (e.storage for e in x.elements)
    if (source.bits, result.bits) != (8, 8):
        raise Refused(f"a table takes and makes 8 bits, and this is of {source} and {result}", "quantize it to 8 bits")
    entries = unary_table(x.op.opcode, x.steps[0], x.target, source.minimum)  # type: ignore[attr-defined]
    if not source.signed:  # their bits, read as i8: 128 comes first
        entries = np.roll(entries, 128)
    table = constant(entries.astype(np.uint8).view(np.int8))
    return x.b.emit(Table, [x.stored(0), table], x.op.result.type.stored())


_LOWERINGS: Final[dict[type[RealMath], Callable[[_Lowering], Value]]] = {
    RealAddEw: _sum,
    RealSubEw: _sum,
    RealMulEw: _product,
    RealDivEw: _quotient,
    RealMatmul: _contraction,
    RealMatmulBias: _contraction,
    RealUnary: _function_of_one,
}
