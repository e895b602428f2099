"""The fallback: dequantize the operands, compute the operator in float, requantize the results (seed: the quant
dialect's "overcoming limited quantization support").

Within one count of the real-valued result, rounded; saturated where that is infinite, the zero point where there is
none. Operands that are not quantized (axes, indices, shapes) stay as they are. The casts between neighbours are
simplified away afterwards by canonicalization and CSE.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.effects import is_variable
from tflq.dialects.forms import is_recurrent
from tflq.dialects.tfl.activation import Tanh
from tflq.dialects.tfl.arithmetic import FloorDiv, FloorMod, Maximum, Minimum
from tflq.dialects.tfl.bits import Bitcast, BitwiseXor, RightShift
from tflq.dialects.tfl.casts import Cast, Quantize
from tflq.dialects.tfl.comparison import Equal, Less, SelectV2
from tflq.dialects.tfl.movement import Concatenation
from tflq.dialects.tfl.reduction import ReduceProd
from tflq.dialects.tfl.runtime import version_info
from tflq.dialects.traits.kernels import FloatKernel, Unbounded
from tflq.dialects.traits.types import SameElementType
from tflq.errors import InvalidModelError
from tflq.ir.core import Op, Value
from tflq.ir.notes import Notes
from tflq.ir.registry import family
from tflq.ir.types import QuantizedType, TensorType, UniformQuantizedType, f32, i1, i4
from tflq.legalize.recurrent.signatures import missing_state, reads_past_state
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.legalize.scaling import kernel_name
from tflq.light import dataclass
from tflq.through_floats import through_floats

__all__ = ["beyond_floats", "fall_back"]

_DISREGARDED = frozenset({"SIGN_BIT", "TANH"})
"""Fused activations that float kernels disregard, too, but for those of recurrent operators."""

_NEAR = 2.0**26
"""Steps of a result that an operand may hold."""


def fall_back(op: Op, b: RuleBuilder) -> Sequence[Value]:
    """The op on float tensors. NotApplicable if it computes on bits, or no interpreter computes it in float."""
    if family(op.name) == "stablehlo":
        from tflq.legalize.stablehlo.builtins import as_builtin

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
    if family(op.name) == "casts" and op.name.startswith("quant."):
        raise NotApplicable(f"{op.name} is no operator of TFLite, and has no float form but itself")
    if problem := missing_state(op):
        raise NotApplicable(problem)
    numbers = _numbers(op)
    return through_floats(op, _Casts(op, b, numbers), partial(_computed, op, b, numbers))


@dataclass(frozen=True, slots=True)
class _Casts:
    """The casts of the integer form: stored integers are plain tensors there."""

    op: Op
    b: RuleBuilder
    numbers: frozenset[Value]

    def real(self, value: Value) -> Value:
        return self.b.cast(self.b.value(value), f32) if value in self.numbers else _real(self.b, value)

    def stored(self, made: Value, result: Value) -> Value:
        op, b = self.op, self.b
        if result in self.numbers:
            unit = result.type.with_element(UniformQuantizedType.of(result.type.storage, 1.0))
            made = _finite(b, made, unit.element)  # type: ignore[arg-type]
            return b.scast(b.qcast(made, unit), result.type)
        if not result.type.quantized:
            return made
        unbounded = trait_of(op, Unbounded) is not None or is_recurrent(op) or _far_apart(op)
        if unbounded and not isinstance(op, Quantize):
            made = _finite(b, made, result.type.element)  # type: ignore[arg-type]
        quantized = b.qcast(made, result.type)
        return b.scast(quantized, quantized.type.stripped())


def _numbers(op: Op) -> frozenset[Value]:
    """The plain integers that the operator takes or makes beside quantized tensors, where its kernels ask for one type:
    they stand for themselves."""
    found = set[Value]()
    for trait in op.traits if isinstance(op, Operator) else ():
        if isinstance(trait, SameElementType):
            values = [v for slot in trait.slots for v in slot.values(op)]
            if any(v.type.quantized for v in values):
                found.update(v for v in values if not v.type.quantized and v.type.storage.is_integer)
    return frozenset(found)


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
    if isinstance(op, Quantize):  # the casts are all there is to it
        return [first]  # type: ignore[list-item]
    attributes = {} if isinstance(op, Cast) else op.attributes  # which state the types, that are others now
    activation = None if is_recurrent(op) else attributes.get("fused_activation_function")  # else within the cell
    if activation in _DISREGARDED:
        attributes = {**attributes, "fused_activation_function": "NONE"}
    if isinstance(op, ReduceProd) and op.input.type.shape == ():  # which its float kernel crashes on
        computed: Sequence[Value] = [b.identity(first)]  # type: ignore[arg-type]
    elif reads_past_state(op):
        computed = [_merged(op, b, operands, types[0])]
    else:
        made = b.op(op.name, operands, types, attributes, version_info(op))
        if not _of_one_type(made):
            raise NotApplicable(f"{kernel_name(op)} takes tensors of one type, and not all of these are quantized")
        computed = made.results
    if activation in _DISREGARDED:
        computed = [_activated(b, computed[0], activation), *computed[1:]]
    return computed


def _of_one_type(made: Op) -> bool:
    """Whether what must be of one element type is so still, now that what was quantized is float."""
    if not isinstance(made, Operator):
        return True
    try:
        for trait in made.traits:
            if isinstance(trait, SameElementType):
                trait.check(made, Notes())
    except InvalidModelError:
        return False
    return True


def _contracted(op: Op, b: RuleBuilder) -> Sequence[Value] | None:
    """A file's dot_general or convolution on dequantized operands; None of all else."""
    from tflq.errors import Refused
    from tflq.legalize.stablehlo.contracting import Contraction, spread
    from tflq.legalize.stablehlo.contractions import Contractions

    if not isinstance(op, Contraction):
        return None
    try:
        made = spread(op, Contractions(b), _real(b, op.lhs), _real(b, op.rhs), op.output.type.with_element(f32))
    except Refused as why:
        raise NotApplicable(f"{kernel_name(op)} has no form on builtins: {why}") from None
    quantized = b.qcast(_finite(b, made, op.output.type.element), op.output.type)  # type: ignore[arg-type]
    return [b.scast(quantized, quantized.type.stripped())]


def _real(b: RuleBuilder, value: Value) -> Value:
    """An operand in float; of a variable tensor another one, which starts as 0."""
    if is_variable(value):
        return b.float_state(value)
    return b.dcast(b.typed(value)) if value.type.quantized else b.value(value)


def _activated(b: RuleBuilder, x: Value, activation: str) -> Value:
    """TANH, or SIGN_BIT: 1 below zero, else 0."""
    if activation == "TANH":
        return b.emit(Tanh, [x])
    below = b.emit(Less, [x, b.constant(0, f32)], i1)
    return b.emit(Cast, [below], x.type)


def _not_zero(b: RuleBuilder, divisor: Value) -> Value:
    """The divisor, in the place of 0 the least number: quotients by it are infinite or nearly so, 0 for 0, and
    remainders nearly 0."""
    zero = b.emit(Equal, [divisor, b.constant(0, f32)], i1)
    least = b.constant(np.finfo(np.float32).tiny, f32)
    return b.emit(SelectV2, [zero, least, divisor], divisor.type)


def beyond_floats(op: Op) -> str:
    """What is to be warned of where operands may hold numbers that float32 does not; empty if none does."""
    most = np.finfo(np.float32).max
    for value in op.operands:
        if value is not None and value.type.quantized and not _scales(value).max() * _steps(value) <= most:
            return f"'{value.name}' holds numbers beyond float32, in which this is computed: they are infinite there"
    return ""


def _steps(value: Value) -> float:
    """How many steps from its zero point a quantized tensor can hold, about."""
    return 2.0 ** (value.type.storage.bits - 1)


def _far_apart(op: Op) -> bool:
    """Whether operands hold so many steps of a result that what is computed of them may be more than int32 holds."""
    reach = max((_scales(v).max() * 2.0**v.type.storage.bits for v in op.operands if v and v.type.quantized), default=0)
    least = min((_scales(v).min() for v in op.results if v.type.quantized), default=1)
    return not reach < least * _NEAR


def _scales(value: Value) -> np.ndarray:
    element = value.type.element
    scales = element.scale if isinstance(element, UniformQuantizedType) else element.scales  # type: ignore[union-attr]
    return np.asarray(scales, np.float64)


def _finite(b: RuleBuilder, x: Value, element: QuantizedType) -> Value:
    """x, 0 where it is not a number, within what the quantized type holds and little more: qcast wraps far beyond."""
    scale = element.scale if isinstance(element, UniformQuantizedType) else float(element.scales.max())
    with np.errstate(over="ignore"):
        bound = np.minimum(np.float32(scale) * np.float32(2.0 ** (element.storage.bits + 1)), np.finfo(np.float32).max)
    known = b.emit(Equal, [x, x], i1)
    x = b.emit(SelectV2, [known, x, b.constant(np.float32(0), f32)], x.type)
    x = b.emit(Maximum, [x, b.constant(-bound, f32)], x.type)
    return b.emit(Minimum, [x, b.constant(bound, f32)], x.type)


def _merged(op: Op, b: RuleBuilder, operands: Sequence[Value | None], type: TensorType) -> Value:
    """The results of both directions, joined by another operator."""
    outer = (None, None) if type.shape is None else type.shape[:2]
    widths = [(op.operand(place).type.shape or (None, None))[1] for place in (8, 25)]
    types = [TensorType((*outer, width), f32) for width in widths]
    parts = b.op(op.name, operands, types, {**op.attributes, "merge_outputs": False}, {"version": 1}).results
    return b.emit(Concatenation, parts, type, axis=2, fused_activation_function="NONE")
