"""Traits of an operator's quantization parameters: those of its tensors among each other.

An interpreter checks little of this and computes something anyway; a converter would compute something else. So what
has no clear meaning is refused; what has one, but is refused or disregarded by an interpreter, is noted. Scales of 0,
infinite and denormal ones, and ratios of any size are valid: kernels compute with them. Source: the Prepare functions
of tflite/kernels; `GetQuantizedConvolutionMultipler` and `PopulateConvolutionQuantizationParams` in
kernels/kernel_util.cc. What single kernels do is measured, or read in their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from tflq.dialects.declare import Attribute, Operator, Slot, Trait
from tflq.dialects.inference import product, without_dim
from tflq.dialects.traits import OfSlots
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType
from tflq.ir.verifier import COPIED, Notes

NARROW: Final = 16
"""Integers up to this width are nearly always quantized values; wider ones are accumulators, indices or biases."""
_BIAS_TOLERANCE: Final = 0.02
"""Of the output's scale: how far a bias scale may be from input × filter in an interpreter."""
_UNSEEN: Final = 1 / 16
"""Of the output's scale: how much a bias may change, with the kernels' scale instead of its own, unnoticed."""

Parameters = Mapping[str, tuple[float, int]]
"""By storage type, the scale and zero point that a kernel gives its result."""


def _has_details(value: Value) -> bool:
    raw = value.info.get("quantization")
    return raw is not None and raw.get("details") is not None


def _lacks(value: Value) -> bool:
    """Whether a tensor of integers has no quantization parameters of any kind."""
    return value.type.storage.is_integer and not value.type.quantized and not _has_details(value)


class QuantizedTogether(OfSlots):
    """If one of these has quantization parameters, all of them that are stored as integers need them."""

    def check(self, op: Operator, notes: Notes) -> None:
        values = [v for slot in self.slots for v in slot.values(op)]
        if not any(isinstance(v.type.element, (UniformQuantizedType, UniformQuantizedPerAxisType)) for v in values):
            return
        for value in values:
            if _lacks(value) and value.type.storage.bits <= NARROW:
                notes.fail_op(
                    op, f"'{value.name}' has no quantization parameters, but other tensors of the operator have"
                )


class NeedsParameters(OfSlots):
    """These mean nothing without quantization parameters, unless they are stored as floats."""

    def check(self, op: Operator, notes: Notes) -> None:
        for slot in self.slots:
            for value in slot.values(op):
                if _lacks(value):
                    notes.fail_op(op, f"{slot.name} '{value.name}' needs quantization parameters and has none")


class Int16Symmetric(OfSlots):
    """Kernels take int16 of these with zero point 0 only."""

    def check(self, op: Operator, notes: Notes) -> None:
        for slot in self.slots:
            for value in slot.values(op):
                element = value.type.element
                if value.type.storage.bits == 16 and isinstance(element, UniformQuantizedType) and element.zero_point:
                    problem = f"{slot.name} '{value.name}' is int16 with zero point {element.zero_point}"
                    notes.warn_op(op, f"{problem}, and kernels need 0", remedy="quantize it with zero point 0")


class SameScale(OfSlots):
    """The operator moves or compares these as they are stored: they have one scale and zero point."""

    def check(self, op: Operator, notes: Notes) -> None:
        first: Value | None = None
        for slot in self.slots:
            for value in slot.values(op):
                element = value.type.element
                if not isinstance(element, UniformQuantizedType):
                    continue
                if first is None:
                    first = value
                elif element is not first.type.element and element != first.type.element:
                    one = first.type.element
                    assert isinstance(one, UniformQuantizedType)
                    left = f"'{first.name}' ({one.scale}, {one.zero_point})"
                    right = f"'{value.name}' ({element.scale}, {element.zero_point})"
                    what = f"{left} and {right} differ in scale or zero point; {COPIED}"
                    notes.warn_op(op, what, remedy="give both the same")
                    return


class ParametersUnread(OfSlots):
    """The kernel computes on these as they are stored, whatever their parameters (measured, with every resolver).
    `both`: also where operand and result have different ones; XNNPACK refuses some operators then."""

    __slots__ = ("both",)

    def __init__(self, *slots: Any, both: bool = True) -> None:
        super().__init__(*slots)
        self.both = both


class SimulatesQuantization(Trait):
    """The result is the input, rounded as quantization between two bounds to `num_bits` would round it (without the
    lowest of the integers with `narrow_range`).

    The bounds are attributes or operands: one of each, or one for each index of `axis`, an attribute or a dim (-1: the
    last). signed: whether the integers are, or the attribute that says so.
    """

    __slots__ = ("axis", "data", "maximum", "minimum", "signed")

    def __init__(self, data: Any, minimum: Any, maximum: Any, *, axis: Any = None, signed: Any = False) -> None:
        self.data: Slot = data
        self.minimum: Slot | Attribute = minimum
        self.maximum: Slot | Attribute = maximum
        self.axis: int | Attribute | None = axis
        self.signed: bool | Attribute = signed

    def bounds(self, op: Operator) -> tuple[np.ndarray, np.ndarray] | None:
        """The bounds; None if one is not constant."""
        low, high = (_numbers(op, side) for side in (self.minimum, self.maximum))
        return None if low is None or high is None else (low, high)

    def steps(self, op: Operator) -> tuple[int, bool]:
        """The number of bits, and whether the lowest integer is left out."""
        bits, narrow = (op.attribute_slots[key].__get__(op, type(op)) for key in ("num_bits", "narrow_range"))
        return bits, narrow

    def is_signed(self, op: Operator) -> bool:
        """Whether the integers are signed."""
        return bool(_value_of(op, self.signed))

    def axis_of(self, op: Operator) -> int:
        """The dim that has a range for each index. ValueError if it is the last one, and the rank is not known."""
        axis = int(_value_of(op, self.axis))
        rank = op.result.type.rank
        if axis < 0 and rank is None:
            raise ValueError("the rank of its input is not known")
        return axis if axis >= 0 else axis + (rank or 0)


def _value_of(op: Operator, item: Any) -> Any:
    return item.__get__(op, type(op)) if isinstance(item, Attribute) else item


def _numbers(op: Operator, side: Slot | Attribute) -> np.ndarray | None:
    """An attribute, or a constant operand, as an array."""
    if isinstance(side, Attribute):
        return np.asarray(_value_of(op, side), np.float64)
    value = side.value(op)
    return value.array.astype(np.float64) if value is not None and value.is_constant else None


class FixedScale(Trait):
    """The result has these parameters, by storage type. `unread`: widths whose kernel takes any."""

    __slots__ = ("parameters", "unread")

    def __init__(self, parameters: Parameters, *, unread: tuple[int, ...] = ()) -> None:
        self.parameters = parameters
        self.unread = unread

    def check(self, op: Operator, notes: Notes) -> None:
        data, result = op.operands[0], op.results[0]
        element = result.type.element
        if not isinstance(element, UniformQuantizedType) or data is None or data.type.storage != element.storage:
            return
        fixed = self.parameters.get(element.storage.name)
        if fixed is None or element.storage.bits in self.unread:
            return
        scale, zero_point = fixed
        if abs(element.scale - scale) > scale / 1000 or element.zero_point != zero_point:
            actual = f"scale {element.scale} and zero point {element.zero_point}"
            what = f"result '{result.name}' has {actual}, where kernels expect {scale} and {zero_point}"
            notes.warn_op(op, what, remedy="quantize it with these")


class MultiplyAccumulate(Trait):
    """input × filter + bias: the bias has the scale input × filter; a per-axis filter has its scales along `axis`.

    strict: the kernel refuses a bias of another scale also with a signed filter. zero_point: what it does with one of
    a signed filter.
    """

    __slots__ = ("axis", "bias", "data", "strict", "weights", "zero_point")

    def __init__(
        self,
        data: Any,
        weights: Any,
        bias: Any,
        *,
        axis: int,
        strict: bool = False,
        zero_point: Literal["ignore", "refuse", "read"] = "ignore",
    ) -> None:
        self.data: Final[Slot] = data
        self.weights: Final[Slot] = weights
        self.bias: Final[Slot] = bias
        self.axis = axis
        self.strict = strict
        self.zero_point: Final = zero_point

    def check(self, op: Operator, notes: Notes) -> None:
        data, weights, result = self.data.value(op), self.weights.value(op), op.results[0]
        bias = self.bias.value(op)
        if data is not None and bias is not None and data.type.storage.is_float and not bias.type.storage.is_float:
            notes.fail_op(op, f"'{data.name}' is {data.type.storage}, and its bias '{bias.name}' {bias.type.storage}")
        floats = [v for v in (data, weights) if v is not None and v.type.storage.is_float]
        if len({v.type.storage for v in floats}) > 1:
            notes.fail_op(op, " and ".join(f"'{v.name}' is {v.type.storage}" for v in floats))
        if data is None or weights is None or not isinstance(data.type.element, UniformQuantizedType):
            return
        element = weights.type.element
        if isinstance(element, UniformQuantizedType):
            scales = np.array([element.scale], np.float64)
            if element.storage.signed and element.zero_point and self.zero_point != "read":
                problem = f"filter '{weights.name}' has zero point {element.zero_point}"
                notes.warn_op(op, f"{problem}, which kernels {self.zero_point}", remedy="quantize it with zero point 0")
        elif isinstance(element, UniformQuantizedPerAxisType):
            scales = element.scales.astype(np.float64)
            self._check_axis(op, notes, weights, element)
        else:
            return
        if isinstance(result.type.element, UniformQuantizedType):
            with np.errstate(all="ignore"):
                self._check_bias(op, notes, weights, scales * data.type.element.scale, result.type.element.scale)
        self._check_accumulator(op, notes, data, weights)

    def _check_axis(self, op: Operator, notes: Notes, weights: Value, element: UniformQuantizedPerAxisType) -> None:
        if element.axis != self.axis and weights.type.rank != 1:
            problem = f"filter '{weights.name}' is quantized along dim {element.axis}"
            notes.fail_op(op, f"{problem}, where dim {self.axis} is expected")
        if element.has_zero_point:
            problem = f"filter '{weights.name}' is per-axis with zero points other than 0"
            if element.storage.signed:
                notes.fail_op(op, problem)
            notes.warn_op(op, f"{problem}, which no kernel supports", remedy="quantize it with zero points of 0")

    def _check_bias(self, op: Operator, notes: Notes, weights: Value, scales: np.ndarray, output_scale: float) -> None:
        """Kernels add a bias to the accumulator as it is: its scale must be the accumulator's, its zero point 0."""
        bias = self.bias.value(op)
        if bias is None:
            return
        element = bias.type.element
        if isinstance(element, UniformQuantizedType):
            bias_scales = np.array([element.scale])
        elif isinstance(element, UniformQuantizedPerAxisType):
            bias_scales = element.scales.astype(np.float64)
        else:
            return
        if element.has_zero_point:
            notes.fail_op(op, f"bias '{bias.name}' has a zero point other than 0")
        if bias_scales.size not in (1, scales.size) and scales.size != 1:
            notes.fail_op(op, f"bias '{bias.name}' has {bias_scales.size} scales for {scales.size} channels")
        apart = np.abs(bias_scales - scales)
        checked = self.strict or not weights.type.storage.signed
        if scales.size == 1 and checked and not (apart / np.float64(output_scale) <= _BIAS_TOLERANCE).all():
            notes.fail_op(op, f"bias '{bias.name}' has a scale far from input × filter ({bias_scales[0]}, {scales[0]})")
        other = (apart > 0.01 * scales) & (bias_scales != scales.astype(np.float32))
        if other.any() and not (bias.is_constant and _unseen(np.where(other, apart, 0), bias.array, output_scale)):
            what = f"bias '{bias.name}' has a scale other than input × filter, which is used instead"
            notes.warn_op(op, what, remedy="quantize it with that scale")

    def _check_accumulator(self, op: Operator, notes: Notes, data: Value, weights: Value) -> None:
        shape = weights.type.shape
        if weights.type.storage.bits > 8 or shape is None or None in shape or self.axis >= len(shape):
            return
        terms = product(without_dim(shape, self.axis)) or 0
        span, largest = 255, 127 if weights.type.storage.signed else 255
        if data.type.storage.bits <= 8 and terms * span * largest >= 1 << 31:
            what = f"{terms} products per output may overflow an int32 accumulator"
            notes.warn_op(op, what, remedy="use a smaller filter, or make sure that sums of real inputs fit")


def _unseen(apart: np.ndarray, bias: np.ndarray, output_scale: float) -> bool:
    """Whether no bias [C] is another number of the result's steps at scales [1 or C] this far apart."""
    flat = np.abs(bias.astype(np.float64)).reshape(-1)
    if apart.size not in (1, flat.size):
        return not flat.any()
    return bool(np.all((flat == 0) | (apart * flat < _UNSEEN * output_scale)))


# What kernels of TFLite do with quantized tensors, whatever the operators mean.


Misread: TypeAlias = Literal["scales", "result type", "packed", "copied", "floats"]


class Misreads(Trait):
    """Its kernel runs on tensors that it misreads:

    scales         it asks a tensor of several scales for its one, and computes with 0
    result type    it takes the result to be of its operand's type
    packed         it reads two packed int4 as one byte
    copied         it copies packed int4 under other parameters
    floats         it reads the stored integers of a constant as floats
    """

    __slots__ = ("kinds",)

    def __init__(self, *kinds: Misread) -> None:
        self.kinds: Final = frozenset(kinds)


class HybridKernel(Trait):
    """A kernel computes on float activations with quantized weights of these types.

    blockwise: of these also with a scale per block; scaleless: of these the kernel runs on such weights, but finds no
    scale; symmetric: of these it refuses a zero point other than 0.
    """

    __slots__ = ("blockwise", "scaleless", "symmetric", "weights")

    def __init__(
        self,
        weights: tuple[ScalarType, ...],
        blockwise: tuple[ScalarType, ...] = (),
        scaleless: tuple[ScalarType, ...] = (),
        symmetric: tuple[ScalarType, ...] = (),
    ) -> None:
        self.weights: Final = weights
        self.blockwise: Final = blockwise
        self.scaleless: Final = scaleless
        self.symmetric: Final = symmetric


class AsksSameScale(Trait):
    """Its kernel refuses operands of these storage types whose scale and zero point are not the result's."""

    __slots__ = ("storages",)

    def __init__(self, *storages: ScalarType) -> None:
        self.storages: Final = frozenset(storages)


class LacksKernel(Trait):
    """No kernel takes quantized tensors of these storage types."""

    __slots__ = ("storages",)

    def __init__(self, *storages: ScalarType) -> None:
        self.storages: Final = frozenset(storages)

    def concerns(self, op: Op) -> bool:
        """Whether an operator has such a tensor."""
        return any(v.type.quantized and v.type.storage in self.storages for v in op.tensors)


class FloatKernel(Trait):
    """A StableHLO operator that an interpreter computes on floats, without calling a function."""


class NeverRuns(Trait):
    """No interpreter has a kernel of it, at no batch; it becomes builtins on the shapes that are stated."""


class Interpolates(Trait):
    """Its int16 kernel interpolates between the entries of a table."""


class Unbounded(Trait):
    """Its results can be infinite or not a number, or as good as that."""
