"""What is computed in float, and what the report warns of.

The fallback dequantizes the operands, computes the operator in float, and requantizes the results (the quant dialect's
"overcoming limited quantization support"). It is within one count of the real-valued result, rounded; saturated where
that is infinite, the zero point where it is not a number. Operands that are not quantized (axes, indices, shapes) stay
as they are. Canonicalization and CSE later remove the casts between neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tflq.builder import through_floats
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.effects import is_variable
from tflq.dialects.forms import is_recurrent, kept_reason
from tflq.dialects.tfl.activation import Tanh
from tflq.dialects.tfl.arithmetic import FloorDiv, FloorMod, Maximum, Minimum
from tflq.dialects.tfl.casts import Cast, Quantize
from tflq.dialects.tfl.comparison import Bitcast, BitwiseXor, Equal, Less, RightShift, SelectV2
from tflq.dialects.tfl.control import version_info
from tflq.dialects.tfl.convolution import DepthwiseConv2D, FullyConnected
from tflq.dialects.tfl.gathering import EmbeddingLookup
from tflq.dialects.tfl.joining import Concatenation
from tflq.dialects.tfl.reduction import ReduceProd
from tflq.dialects.traits.quantization import FloatKernel, HybridKernel, Interpolates, Unbounded
from tflq.dialects.traits.types import SameElementType
from tflq.errors import InvalidModelError, Refused
from tflq.ir.core import Op, Value
from tflq.ir.record import Notes
from tflq.ir.registry import family
from tflq.ir.types import (
    QuantizedType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f32,
    i1,
    i4,
    i16,
    ui8,
)
from tflq.legalize.probing import Distance, distance, kernel_name
from tflq.legalize.rule import AS_STATED, NotApplicable, Rewritten, Rule, RuleBuilder
from tflq.light import dataclass, replace

_DISREGARDED = frozenset({"SIGN_BIT", "TANH"})
"""Fused activations that float kernels also disregard, except those of recurrent operators."""

_NEAR = 2.0**26
"""How many steps of a result an operand may hold."""


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
    if family(op.name) == "casts" and op.name.startswith("quant."):
        raise NotApplicable(f"{op.name} is not an operator of TFLite, and has no float form but itself")
    if is_recurrent(op):
        from tflq.legalize.recurrent import missing_state

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
    below = b.emit(Less, [x, b.constant(0, f32)], i1)
    return b.emit(Cast, [below], x.type)


def _not_zero(b: RuleBuilder, divisor: Value) -> Value:
    """The divisor, with the least number instead of 0: quotients by it are infinite or nearly so, or 0 if the dividend
    is, and remainders nearly 0."""
    zero = b.emit(Equal, [divisor, b.constant(0, f32)], i1)
    least = b.constant(np.finfo(np.float32).tiny, f32)
    return b.emit(SelectV2, [zero, least, divisor], divisor.type)


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
    x = b.emit(SelectV2, [known, x, b.constant(np.float32(0), f32)], x.type)
    x = b.emit(Maximum, [x, b.constant(-bound, f32)], x.type)
    return b.emit(Minimum, [x, b.constant(bound, f32)], x.type)


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


# Exceptions: where a converted model gives something else than the parameters say, or than the interpreter does.
#
# Rules state what parameters kernels disregard, and note what C++ leaves undefined (`note_undefined`); `settled` finds
# out whether that shows in a result, and says how far it is from the real value.


@dataclass(frozen=True, slots=True)
class Caveat:
    """What a user should know about a result. `reproduced`: it is the interpreter's, which differs from what the
    parameters say; else it is what the parameters say, and the interpreter's differs, or is not the same everywhere.
    `remedy`: what the user can do, shown after each warning."""

    text: str
    reproduced: bool
    remedy: str


_QUANTIZED_AGAIN = "quantize the model again with scales closer to each other, or convert with --semantics real"

EXCEPTIONS: dict[str, Caveat] = {
    "disregarded": Caveat(
        "the kernel ignores parameters that the model states",
        reproduced=True,
        remedy="keep it if the model was tested in the interpreter, else convert with --semantics real",
    ),
    "undefined": Caveat(
        "the kernel comes to something that C++ leaves undefined", reproduced=True, remedy=_QUANTIZED_AGAIN
    ),
    "range": Caveat("the kernel's arithmetic leaves the range of its types", reproduced=True, remedy=_QUANTIZED_AGAIN),
    "unsettled": Caveat(
        "the kernel's result is undefined in C++, and interpreters differ",
        reproduced=False,
        remedy="use it, but do not compare it with an interpreter's result",
    ),
    "inexact": Caveat(
        "no integer arithmetic here gives what the kernel does",
        reproduced=False,
        remedy="state sizes that are open (--batch, --shape), else allow for the difference",
    ),
    "broken": Caveat(
        "the kernel's result says nothing of the model",
        reproduced=False,
        remedy="use it, but do not compare it with the result of the reference kernels",
    ),
    "state": Caveat(
        "the state outlives reset_all_variables()",
        reproduced=True,
        remedy="for a new sequence create the interpreter anew, or convert with --reset-signature and call "
        "get_signature_runner('tflq_reset')()",
    ),
}
"""By the name that a row of the report with a warning has. `docs/exceptions.md` has what was measured for each."""

_UNDEFINED = "{what}, which C++ leaves undefined; the result is what kernels compiled for x86-64 give{far}"
_UNSETTLED = "{what}, which C++ leaves undefined, and interpreters differ{far}; " + AS_STATED
_RANGE = "at these scales the kernel's sums or products exceed its types; the result is the kernel's{far}"
_USUAL = (1e-12, 1e6)
"""Scales between these do not take the kernels' float32 multipliers out of range."""


def remedies(exceptions: Iterable[str]) -> str:
    """What a user can do about warnings of these exceptions; empty if there are none, or they have no names."""
    return "; ".join(dict.fromkeys(EXCEPTIONS[name].remedy for name in exceptions if name))


def settled(rule: Rule, op: Op, answer: Rewritten, undefined: Mapping[str, int | None]) -> Rewritten:
    """A rule's answer with the warnings that its results need; none for what changes no value."""
    if answer.warning and not EXCEPTIONS[answer.exception].reproduced:
        return answer
    unusual = _unusual(op)
    if not (undefined or answer.warning or unusual):
        return answer
    far = distance(rule, op)
    counts = [c for c in undefined.values() if c is not None]
    if far is None and counts and len(counts) == len(undefined) and not answer.warning:
        far = Distance(max(counts))
    if far is not None and not far.shows:
        return replace(answer, warning="")
    if not answer.warning and not undefined and (far is None or not _plain(op, far)):
        return answer
    tail = "" if far is None else f", {far}"
    if undefined:
        words, name = _UNDEFINED.format(what=" and ".join(undefined), far=tail), "undefined"
    elif answer.warning:
        return answer
    else:
        words, name = _RANGE.format(far=tail), "range"
    return replace(answer, warning="; ".join(w for w in (answer.warning, words) if w), exception=name)


BY_PARAMETERS = "quantize the model again with scales closer to each other, or take the exact form (plain .onnx)"
"""What a user can do where a target computes by parameters, and the interpreter's kernel does not."""


def unlike_kernel(rule: Rule, op: Op, answer: Rewritten, undefined: Mapping[str, int | None]) -> str:
    """What shows in a result of the kernel that parameters do not say, for a target that computes by them; empty if
    nothing does. answer: the rule's, which does as the kernel."""
    found = settled(rule, op, answer, undefined)
    if not found.warning or not EXCEPTIONS[found.exception].reproduced:
        return ""
    exceeded = "its sums or products exceed its types" if found.exception == "range" else ""
    why = "; ".join(w for w in (answer.warning, " and ".join(undefined), exceeded) if w)
    far = distance(rule, op)
    return f"the interpreter's kernel gives something else than the parameters say{f', {far}' if far else ''}: {why}"


def inexact(rule: Rule, op: Op, answer: NotApplicable) -> dict[str, str]:
    """Warnings that the result is not the kernel's, each with its exception."""
    warnings = {answer.warning: "inexact"} if answer.warning else {}
    if answer.unsettled:
        far = distance(rule, op)  # the result of one of them
        words = _UNSETTLED.format(what=answer.unsettled, far="" if far in (None, Distance(0)) else f": {far}")
        warnings[words] = "unsettled"
    return warnings


def _unusual(op: Op) -> bool:
    low, high = _USUAL
    elements = (value.type.element for value in op.tensors)
    return any(isinstance(e, UniformQuantizedType) and not low <= e.scale <= high for e in elements)


def _plain(op: Op, far: Distance) -> bool:
    """Whether a distance is more than the error of a kernel's approximations. Comparisons round on purpose, and int16
    tables interpolate."""
    storage = op.result.type.storage
    interpolated = storage is i16 and trait_of(op, Interpolates) is not None
    return storage is not i1 and not interpolated and far.counts > 1 << max(storage.bits - 6, 0)


# Hybrid operators: they compute in float on quantized constants.
#
# A hybrid kernel quantizes the activations as it runs, or dequantizes its weights, or rows of a table. If none takes
# the weights at hand, the constants become float. No hybrid kernel reads a zero point; some refuse one other than 0.
#
# Sources: kernels/conv.cc, depthwise_conv.cc (whose hybrid kernel reads a scale per channel), transpose_conv.cc,
# fully_connected.cc, batch_matmul.cc, embedding_lookup.cc.


_SPARSE_BLOCK = 16
_NO_KERNEL = HybridKernel(())


def disregarded(op: Op) -> str:
    """What a hybrid kernel disregards of its constants' parameters; empty if nothing."""
    for value in op.operands:
        if value is None or not value.type.quantized or kept_reason(op) is not None:
            continue
        if value.type.storage == ui8:
            return f"the kernel reads '{value.name}', which is uint8, as int8 without a zero point"
        blocks = isinstance(value.type.element, UniformQuantizedSubChannelType)
        if blocks and value.type.storage in (trait_of(op, HybridKernel) or _NO_KERNEL).scaleless:
            return f"the kernel reads the scales of '{value.name}', one per block, as 0"
        if blocks and isinstance(op, FullyConnected):
            return (
                f"the reference kernels ignore the scales per block of '{value.name}', the optimized ones a fused "
                "activation"
            )
        if _zero_points(value).any():
            return f"the kernel ignores the zero points of '{value.name}', which are not 0"
    return ""


def _in_blocks(op: Op, sparsity: Mapping[str, Any]) -> bool:
    """Whether sparse weights are in the blocks of the only hybrid kernel that reads sparse weights."""
    blocks, levels = sparsity["block_map"], sparsity["dim_metadata"]
    whole = blocks is not None and len(blocks) == 1 and levels[-1]["dense_size"] == _SPARSE_BLOCK
    return isinstance(op, FullyConnected) and whole


def _zero_points(value: Value) -> np.ndarray:
    element = value.type.element
    return np.atleast_1d(getattr(element, "zero_points", getattr(element, "zero_point", 0)))


def without_kernel(op: Op, *, real: bool = False) -> str:
    """Why no kernel computes a hybrid op on its constants as they are; empty if one does. `real`: a kernel that
    disregards parameters does not count."""
    if kept_reason(op) is not None:
        return ""
    kernel, known = kernel_name(op), trait_of(op, HybridKernel) or _NO_KERNEL
    for place, value in enumerate(op.operands):
        if value is None or not value.type.quantized:
            continue
        element, storage = value.type.element, value.type.storage
        blocks = isinstance(element, UniformQuantizedSubChannelType)
        if blocks and storage not in known.blockwise + known.scaleless:
            return f"{kernel} has no kernel for float activations with {storage} blockwise constants"
        if place != 1 or storage not in known.weights:
            return f"{kernel} has no kernel for float activations with {storage} constants"
        if "sparsity" in value.info and not _in_blocks(op, value.info["sparsity"]):
            return (
                f"{kernel} has no kernel for float activations with sparse constants but in blocks of {_SPARSE_BLOCK}"
            )
        one_scale = not isinstance(element, UniformQuantizedPerAxisType)
        if isinstance(op, DepthwiseConv2D) and one_scale and value.type.shape and value.type.shape[-1] != 1:
            return f"{kernel} on float activations reads a scale per channel, and there is one"
        zeros = _zero_points(value).reshape(-1)
        if (storage in known.symmetric and zeros.any()) or (isinstance(op, EmbeddingLookup) and zeros[0]):
            return f"{kernel} takes no zero point of '{value.name}' but 0"
        axis = getattr(element, "axis", 0)
        if isinstance(op, EmbeddingLookup) and axis:
            return f"{kernel} takes scales per row, and those of '{value.name}' are along dim {axis}"
        last = (value.type.shape or (0,))[-1] or 0
        shorter = isinstance(element, UniformQuantizedSubChannelType) and last % element.block_sizes[-1]
        if storage in known.blockwise and shorter:
            return f"{kernel} takes whole blocks, and the last of '{value.name}' is shorter"
    return disregarded(op) if real else ""
