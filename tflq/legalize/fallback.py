"""Computation in float.

The fallback dequantizes the operands, computes the operator in float, and requantizes the results (the quant dialect's
"overcoming limited quantization support"). It is within one count of the real-valued result, rounded; saturated where
that is infinite, the zero point where it is not a number. Operands that are not quantized (axes, indices, shapes) stay
as they are. Canonicalization and CSE later remove the casts between neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.base.errors import InvalidModelError, Refused
from tflq.dialects.builder import through_floats
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.effects import is_handle, is_variable
from tflq.dialects.forms import is_recurrent
from tflq.dialects.parameters import FloatKernel, MultiplyAccumulate, Unbounded
from tflq.dialects.tfl.activation import Tanh
from tflq.dialects.tfl.arithmetic import FloorDiv, FloorMod, Maximum, Minimum
from tflq.dialects.tfl.casts import Bitcast, Cast, Quantize
from tflq.dialects.tfl.comparison import BitwiseXor, Equal, Less, RightShift, SelectV2
from tflq.dialects.tfl.convolution import BatchMatMul
from tflq.dialects.tfl.movement import Concatenation
from tflq.dialects.tfl.pooling import ReduceProd
from tflq.dialects.tfl.state import version_info
from tflq.dialects.traits import SameElementType
from tflq.ir.ops import Op, Value, family
from tflq.ir.types import QuantizedType, TensorType, UniformQuantizedType, f32, i1, i4
from tflq.ir.verifier import Notes
from tflq.legalize.probing import kernel_name
from tflq.legalize.rule import NotApplicable, RuleBuilder

_DISREGARDED = frozenset({"SIGN_BIT", "TANH"})
"""Fused activations that float kernels also disregard, except those of recurrent operators."""

_NEAR = 2.0**26
"""The largest number of steps of a result in an operand."""


def fall_back(op: Op, b: RuleBuilder) -> Sequence[Value]:
    """The op on float tensors. NotApplicable if it computes on bits, or no interpreter computes it in float."""
    if family(op.name) == "stablehlo":
        from tflq.legalize.stablehlo import as_builtin

        op = as_builtin(op) or op
    if isinstance(op, Bitcast) and op.input.type.storage == op.output.type.storage == i4:
        plain = b.value(op.input)
        return [b.emit(Cast, [b.emit(Cast, [plain], plain.type.with_element(f32))], plain.type)]
    if isinstance(op, (Bitcast, BitwiseXor, RightShift)):
        raise NotApplicable(f"{kernel_name(op)} computes on stored bits, and floats have none; store them in int8")
    if family(op.name) == "stablehlo" and (floats := _contracted(op, b)) is not None:
        return floats
    if family(op.name) == "stablehlo" and trait_of(op, FloatKernel) is None:
        raise NotApplicable(f"no interpreter computes {kernel_name(op)} in float; convert it to TFLite's own operators")
    if family(op.name) == "quant" and op.name.startswith("quant."):
        raise NotApplicable(f"{op.name} is not an operator of TFLite, and has no float form but itself")
    if is_recurrent(op):
        from tflq.legalize.recurrent import missing_state

        if problem := missing_state(op):
            raise NotApplicable(problem)
    if strange := next((v for v in op.tensors if not (v.type.storage.numpy or is_handle(v))), None):
        raise NotApplicable(f"no float kernel computes on '{strange.name}' of {strange.type.storage}")
    if isinstance(op, Quantize) and not op.result.type.quantized:
        raise NotApplicable(f"QUANTIZE has no kernel that gives plain {op.result.type.storage}; state its scale")
    if isinstance(op, Quantize) and not op.input.type.quantized and op.input.type.storage is not f32:
        raise NotApplicable(f"QUANTIZE has no kernel on plain {op.input.type.storage}; cast it to f32 first")
    numbers = _numbers(op)
    return through_floats(op, _Casts(op, b, numbers), partial(_computed, op, b, numbers))


@dataclass(frozen=True, slots=True)
class _Casts:
    """The casts of the integer form: stored integers are plain tensors there."""

    op: Op
    b: RuleBuilder
    numbers: frozenset[Value]

    def real(self, value: Value) -> Value:
        slots = self.op.operand_slots if isinstance(self.op, Operator) else ()
        if any(
            value in slot.values(self.op) for slot in slots if slot.indices
        ):  # kernels read these as they are stored
            return self.b.value(value)
        return self.b.cast(self.b.value(value), f32) if value in self.numbers else _real(self.b, value)

    def stored(self, real: Value, result: Value) -> Value:
        op, b = self.op, self.b
        if result in self.numbers:
            unit = result.type.with_element(UniformQuantizedType.of(result.type.storage, 1.0))
            real = _finite(b, real, unit.element)  # type: ignore[arg-type]
            return b.scast(b.qcast(real, unit), result.type)
        if not result.type.quantized:
            return real
        unbounded = trait_of(op, Unbounded) is not None or is_recurrent(op) or _far_apart(op)
        if unbounded and not isinstance(op, Quantize):
            real = _finite(b, real, result.type.element)  # type: ignore[arg-type]
        quantized = b.qcast(real, result.type)
        return b.scast(quantized, quantized.type.stripped())


def _numbers(op: Op) -> frozenset[Value]:
    """The plain integers that the operator takes or makes together with quantized tensors, where its kernels want one
    type: they stand for themselves."""
    numbers = set[Value]()
    for trait in op.traits if isinstance(op, Operator) else ():
        if isinstance(trait, SameElementType):
            values = [v for slot in trait.slots for v in slot.values(op)]
            if any(v.type.quantized for v in values):
                numbers.update(v for v in values if not v.type.quantized and v.type.storage.is_integer)
    return frozenset(numbers)


def _computed(
    op: Op,
    b: RuleBuilder,
    numbers: frozenset[Value],
    operands: Sequence[Value | None],
    types: Sequence[TensorType],
) -> Sequence[Value]:
    """The op on floats."""
    first = operands[0]
    types = [t.with_element(f32) if v in numbers else t for v, t in zip(op.results, types, strict=True)]
    if isinstance(op, (FloorDiv, FloorMod)) and operands[1] is not None:  # their kernels stop at a divisor of 0
        operands = [first, _not_zero(b, operands[1])]
    if isinstance(op, Quantize):  # the casts do all of it
        return [first]  # type: ignore[list-item]
    attributes = {} if isinstance(op, Cast) else op.attributes  # those of CAST state types, which change here
    activation = None if is_recurrent(op) else attributes.get("fused_activation_function")  # theirs is within the cell
    if activation in _DISREGARDED:
        attributes = {**attributes, "fused_activation_function": "NONE"}
    if isinstance(op, ReduceProd) and op.input.type.shape == ():  # which its float kernel crashes on
        computed: Sequence[Value] = [b.identity(first)]  # type: ignore[arg-type]
    elif _reads_past_state(op):
        computed = [_merged(op, b, operands, types[0])]
    else:
        emitted = b.op(op.name, operands, types, attributes, version_info(op))
        storage = emitted.results[0].type.storage if emitted.results else f32
        if (isinstance(op, BatchMatMul) or trait_of(op, MultiplyAccumulate) is not None) and not storage.is_float:
            raise NotApplicable(f"{kernel_name(op)} of real numbers has no result in {storage}")
        if not _of_one_type(emitted):
            raise NotApplicable(f"{kernel_name(op)} takes tensors of one type, and not all of these are quantized")
        computed = emitted.results
    if activation in _DISREGARDED:
        computed = [_activated(b, computed[0], activation), *computed[1:]]
    return computed


def _of_one_type(op: Op) -> bool:
    """Whether tensors that must have one element type still have one, now that quantized ones are float."""
    if not isinstance(op, Operator):
        return True
    try:
        for trait in op.traits:
            if isinstance(trait, SameElementType):
                trait.check(op, Notes())
    except InvalidModelError:
        return False
    return True


def _contracted(op: Op, b: RuleBuilder) -> Sequence[Value] | None:
    """A file's dot_general or convolution on dequantized operands; None for other ops."""
    from tflq.legalize.stablehlo_contractions import Contraction, Contractions, spread

    if not isinstance(op, Contraction):
        return None
    try:
        real = spread(op, Contractions(b), _real(b, op.lhs), _real(b, op.rhs), op.output.type.with_element(f32))
    except Refused as why:
        raise NotApplicable(f"{kernel_name(op)} has no form on builtins: {why}") from None
    quantized = b.qcast(_finite(b, real, op.output.type.element), op.output.type)  # type: ignore[arg-type]
    return [b.scast(quantized, quantized.type.stripped())]


def _real(b: RuleBuilder, value: Value) -> Value:
    """An operand in float; of a variable tensor, the float variable in its place, which starts as 0."""
    if is_variable(value):
        return b.float_state(value)
    return b.dcast(b.typed(value)) if value.type.quantized else b.value(value)


def _activated(b: RuleBuilder, x: Value, activation: str) -> Value:
    """TANH, or SIGN_BIT: 1 below zero, else 0."""
    if activation == "TANH":
        return b.emit(Tanh, [x])
    below = b.emit(Less, b.alike(x, 0), i1)
    return b.emit(Cast, [below], x.type)


def _not_zero(b: RuleBuilder, divisor: Value) -> Value:
    """The divisor, with the least number instead of 0: quotients by it are infinite or nearly so, or 0 if the dividend
    is, and remainders nearly 0."""
    zero = b.emit(Equal, b.alike(divisor, 0), i1)
    return b.emit(SelectV2, [zero, *b.alike(np.finfo(np.float32).tiny, divisor)], divisor.type)


def beyond_floats(op: Op) -> str:
    """A warning if an operand may hold numbers that float32 does not; else empty."""
    most = np.finfo(np.float32).max
    for value in op.operands:
        if value is None or not value.type.quantized:
            continue
        if not _scales(value).max() * 2.0 ** (value.type.storage.bits - 1) <= most:
            return f"'{value.name}' holds numbers beyond float32, in which this is computed: they are infinite there"
    return ""


def _far_apart(op: Op) -> bool:
    """Whether operands hold so many steps of a result that what is computed from them may leave int32."""
    reach = max((_scales(v).max() * 2.0**v.type.storage.bits for v in op.operands if v and v.type.quantized), default=0)
    least = min((_scales(v).min() for v in op.results if v.type.quantized), default=1)
    return not reach < least * _NEAR


def _scales(value: Value) -> np.ndarray:
    element = value.type.element
    scales = element.scale if isinstance(element, UniformQuantizedType) else element.scales  # type: ignore[union-attr]
    return np.asarray(scales, np.float64)


def _finite(b: RuleBuilder, x: Value, element: QuantizedType) -> Value:
    """x, 0 where it is not a number, limited to little more than what the quantized type holds: far beyond, qcast
    wraps."""
    scale = element.scale if isinstance(element, UniformQuantizedType) else float(element.scales.max())
    with np.errstate(over="ignore"):
        bound = np.minimum(np.float32(scale) * np.float32(2.0 ** (element.storage.bits + 1)), np.finfo(np.float32).max)
    known = b.emit(Equal, [x, x], i1)
    x = b.emit(SelectV2, [known, *b.alike(x, 0)], x.type)
    x = b.emit(Maximum, b.alike(x, -bound), x.type)
    return b.emit(Minimum, b.alike(x, bound), x.type)


def _reads_past_state(op: Op) -> bool:
    if not is_recurrent(op):
        return False
    from tflq.legalize.recurrent import reads_past_state

    return reads_past_state(op)


def _merged(op: Op, b: RuleBuilder, operands: Sequence[Value | None], type: TensorType) -> Value:
    """The results of both directions, joined by another operator."""
    outer = (None, None) if type.shape is None else type.shape[:2]
    widths = [(op.operand(place).type.shape or (None, None))[1] for place in (8, 25)]
    types = [TensorType((*outer, width), f32) for width in widths]
    parts = b.op(op.name, operands, types, {**op.attributes, "merge_outputs": False}, {"version": 1}).results
    return b.emit(Concatenation, parts, type, axis=2, fused_activation_function="NONE")
