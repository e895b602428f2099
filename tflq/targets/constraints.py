"""Constraints on the scales of a kernel's operands and results, and the parameters that they give its ports.

    same_scale                       all quantized ports have one scale and zero point
    same_operand_scale               the operands do
    operand_scale_below BOUND        the operands' scales are below BOUND, those of SOFTMAX times its beta
    operand_scale_from BOUND         the operands' scales are BOUND or more, those of SOFTMAX times its beta
    fixed_scale SCALE ZERO_POINT     the results have these
    multiplier_scale [BOUND]         operands' scales, multiplied, over the result's: a positive multiplier below BOUND
                                     (2^31 unless said; 1: shifts to the right only)
    multiplier_accumulator_scale     the same of input and weights, and the bias is stored at input × weights, zero
              [BOUND]                point 0
    rounds_alike                     the sums of input and weights, scaled with two roundings, are those scaled in
                                     float64 with one, whatever the input: weights and bias are constants
    scale_ratio_below BOUND          every operand's scale over the result's is below BOUND
    positive_scale                   every scale is a positive number, neither 0 nor infinite
    power_of_two_scale               every scale is a power of two
    power_of_two_shifts              with `pot_scale_int16`, and int16 of power-of-two scales: one operand has the
                                     result's scale, the other no greater one
    rank_at_most N                   no operand or result has more than N dims
    indices_from_zero                constant operands of plain integers have no negative elements
    no_activation                    no activation is fused
    lowered                          never kept: what matches this line is lowered

A constraint answers why an op does not keep it, or None. Others can be entered by `constraint`, before a file that
names them is read.

A `QuantFunction` says what a constraint makes of the parameters of its ports. It gets the types of all inputs and
outputs that can be quantized, and the numbers of the constraint. A port whose parameters are not known yet is an
`AnyQuantizedType` of its storage. It puts uniform types in the lists and returns the indices of the inputs and of the
outputs that it updated. Packages offer theirs by entry points in the group `tflq.targets`, under the name by which a
target's line asks for them; a program enters its own by `quant_function`.

Source: the RFC on quantization in MLIR (its shorthands; Target Constraints). The tolerance of bias scales is
GetQuantizedConvolutionMultiplier's, 0.02 of the result's scale. Where all ports have one scale, the port that the
others follow is that of TensorFlow Lite's quantization driver (GetQuantParamsForSameScaleConstraint).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from tflq.dialects.declare import Operator, Slot
from tflq.dialects.tfl import fused_activation
from tflq.dialects.tfl.activation import Softmax
from tflq.dialects.tfl.convolution import DepthwiseConv2D
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    AnyQuantizedType,
    ElementType,
    QuantizedType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    i16,
    is_quantized,
)
from tflq.numerics.activation import activation_range
from tflq.numerics.convolution import double_scales, exact_channel_bounds, legacy_scale
from tflq.numerics.elementwise import power_of_two_shifts
from tflq.numerics.requantize.staircase import roundings_agree

_Function: TypeAlias = Callable[..., str | None]
F = TypeVar("F", bound=_Function)

_BIAS_TOLERANCE = 0.02


class Constraint:
    """A function of an op and numbers. `numbers`: what each is, "positive" or "integer"; "?": it may be left out.
    `accumulates`: only operators with input, weights and bias have what it is about."""

    __slots__ = ("accumulates", "function", "numbers")

    def __init__(self, function: _Function, numbers: tuple[str, ...] = (), accumulates: bool = False) -> None:
        self.function: Final = function
        self.numbers: Final = numbers
        self.accumulates: Final = accumulates

    def parse(self, words: Sequence[str]) -> tuple[float, ...]:
        """The numbers. ValueError says what they must be."""
        expected = ", ".join(kind.removesuffix("?") + (" (or none)" * kind.endswith("?")) for kind in self.numbers)
        least = sum(not kind.endswith("?") for kind in self.numbers)
        try:
            parsed = tuple(map(float, words))
        except ValueError:
            parsed = (math.nan,)
        if not least <= len(parsed) <= len(self.numbers) or not all(map(_is, parsed, self.numbers)):
            raise ValueError(f"{len(self.numbers) or 'no'} number(s)" + (f": {expected}" if expected else ""))
        return parsed

    def misfit(self, operands: Sequence[Slot]) -> str | None:
        """The operators that it is for, if one with these operands is not among them."""
        names = {slot.name for slot in operands}
        if not self.accumulates or ({"input", "bias"} <= names and names & _WEIGHTS):
            return None
        return "operators with input, weights and bias"


def _is(number: float, kind: str) -> bool:
    return math.isfinite(number) and (number > 0 if kind.startswith("positive") else number.is_integer())


CONSTRAINTS: dict[str, Constraint] = {}
"""By name."""

_WEIGHTS = frozenset({"filter", "weights"})


def constraint(name: str, *numbers: str, accumulates: bool = False) -> Callable[[F], F]:
    """Enters a function of an op and numbers under the name by which signatures ask for it."""

    def register(function: F) -> F:
        CONSTRAINTS[name] = Constraint(function, numbers, accumulates)
        return function

    return register


def _scales(value: Value) -> np.ndarray:
    element = value.type.element
    if isinstance(element, UniformQuantizedType):
        return np.asarray([element.scale])
    return np.asarray(element.scales, np.float64).reshape(-1)  # type: ignore[union-attr]


def _has_zero_points(element: ElementType) -> bool:
    return element.has_zero_point  # type: ignore[union-attr]


def _quantized(values: Iterable[Value | None]) -> list[Value]:
    return [v for v in values if v is not None and v.type.quantized]


def _parameters(value: Value) -> tuple[object, ...]:
    element = value.type.element
    if isinstance(element, UniformQuantizedType):
        return element.scale, element.zero_point
    return (element,)


def _alike(values: list[Value]) -> str | None:
    other = next((v for v in values[1:] if _parameters(v) != _parameters(values[0])), None)
    return None if other is None else f"'{values[0].name}' and '{other.name}' differ in scale or zero point"


_COUNTS = (1 << 16) - 1


@constraint("same_scale")
def _same_scale(op: Op) -> str | None:
    return _alike(_quantized(op.tensors))


@constraint("same_operand_scale")
def _same_operand_scale(op: Op) -> str | None:
    return _alike(_quantized(op.operands))


def _operand_scales(op: Op, value: Value) -> tuple[np.ndarray, str]:
    """The scales by which a kernel reads an operand, and their name in a sentence."""
    what = f"the scale of '{value.name}'"
    if isinstance(op, Softmax):
        return _scales(value) * op.beta, f"{what} times beta"
    return _scales(value), what


@constraint("operand_scale_below", "positive")
def _operand_scale_below(op: Op, bound: float) -> str | None:
    for value in _quantized(op.operands):
        scales, what = _operand_scales(op, value)
        if not (scales < bound).all():
            return f"{what} is {scales.max():g}, not below {bound:g}"
    return None


@constraint("operand_scale_from", "positive")
def _operand_scale_from(op: Op, bound: float) -> str | None:
    for value in _quantized(op.operands):
        scales, what = _operand_scales(op, value)
        if not (scales >= bound).all():
            return f"{what} is {scales.min():g}, less than {bound:g}"
    return None


@constraint("scale_ratio_below", "positive")
def _scale_ratio_below(op: Op, bound: float) -> str | None:
    for result in _quantized(op.results):
        for value in _quantized(op.operands):
            with np.errstate(all="ignore"):
                ratio = _scales(value).max(initial=0) / _scales(result).min(initial=np.inf)
            if not ratio < bound:
                return f"the scale of '{value.name}' is {ratio:g} times that of '{result.name}', not below {bound:g}"
    return None


@constraint("fixed_scale", "positive", "integer")
def _fixed_scale(op: Op, scale: float, zero_point: float) -> str | None:
    """Converters write 1/65535 for 1/65536, and kernels take it for that: over 16 bits it is less than one count."""
    for value in _quantized(op.results):
        element = value.type.element
        single = isinstance(element, UniformQuantizedType) and element.zero_point == int(zero_point)
        if not single or abs(_scales(value)[0] - scale) > scale / _COUNTS:
            return f"'{value.name}' is not of scale {scale:g} and zero point {zero_point:g}"
    return None


@constraint("multiplier_scale", "positive?")
def _multiplier_scale(op: Op, bound: float = 2.0**31) -> str | None:
    return _multiplier(_quantized(op.operands), op, bound)


def _multiplier(factors: list[Value], op: Op, bound: float) -> str | None:
    """The product of the scales of some values over those of the results: one per index where there is an axis."""
    for result in _quantized(op.results):
        ratio = np.ones(1)
        for value in factors:
            scales = _scales(value)
            if scales.size != ratio.size and 1 not in (scales.size, ratio.size):
                return f"'{value.name}' has {scales.size} scales, another operand {ratio.size}"
            with np.errstate(invalid="ignore"):
                ratio = ratio * scales
        scales = _scales(result)
        if scales.size not in (1, ratio.size):
            return f"'{result.name}' has {scales.size} scales, its operands {ratio.size}"
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = ratio / scales
        if not (ratio < bound).all():
            return f"scales give a multiplier of {ratio.max():g} for '{result.name}', which is not below {bound:g}"
    return None


@constraint("multiplier_accumulator_scale", "positive?", accumulates=True)
def _multiplier_accumulator_scale(op: Op, bound: float = 2.0**31) -> str | None:
    x, weights, bias = _factors(op)
    if x is None or weights is None or not (x.type.quantized and weights.type.quantized and op.result.type.quantized):
        return "input, weights or result are not quantized"
    reason = _multiplier([x, weights], op, bound)
    if reason is None and bias is not None and bias.type.quantized:
        if _has_zero_points(bias.type.element):
            return f"bias '{bias.name}' has a zero point"
        product, scales = _scales(x) * _scales(weights), _scales(bias)
        fits = 1 in (product.size, scales.size) or product.size == scales.size
        if not fits or (np.abs(product - scales) / _scales(op.result) > _BIAS_TOLERANCE).any():
            return f"bias '{bias.name}' is not stored at the scale of input times weights"
    return reason


def _factors(op: Op) -> tuple[Value | None, Value | None, Value | None]:
    """Input, weights and bias, by the names that the op's declaration has for them."""
    assert isinstance(op, Operator)
    parts = {slot.name: op.optional(place) for place, slot in enumerate(op.operand_slots)}
    return parts["input"], next(parts[name] for name in _WEIGHTS if name in parts), parts["bias"]


@constraint("rounds_alike", accumulates=True)
def _rounds_alike(op: Op) -> str | None:
    """FULLY_CONNECTED has one rounding in TFLite, and two in TFLite Micro: kernels/fully_connected_common.cc there."""
    x, weights, bias = _factors(op)
    if x is None or weights is None or not weights.is_constant or not (bias is None or bias.is_constant):
        return "weights or bias are not constants, so that nothing is known of the sums that are rounded"
    source, factor, result = x.type.element, weights.type.element, op.result.type.element
    if not isinstance(source, UniformQuantizedType) or not isinstance(result, UniformQuantizedType):
        return "input or result has not one scale"
    channel = weights.array.ndim - 1 if isinstance(op, DepthwiseConv2D) else 0
    offset = np.zeros(1, np.int64) if bias is None else bias.array.astype(np.int64).reshape(-1)
    counts = {1, weights.array.shape[channel] if weights.array.ndim else 1}
    if not weights.type.quantized or not weights.array.size or not {_scales(weights).size, offset.size} <= counts:
        return f"'{weights.name}' has not one scale and one bias for each channel, or for all"
    once = twice = double_scales(source.scale, _scales(weights), result.scale)
    zero = 0
    if isinstance(factor, UniformQuantizedType):
        zero, twice = factor.zero_point, np.asarray([legacy_scale(source.scale, factor.scale, result.scale)])
    storage, activation = result.storage, fused_activation(op)
    try:
        least, most = activation_range(activation, storage.minimum, storage.maximum, result.scale, result.zero_point)
    except ValueError as error:
        return str(error)
    start, end = (v - source.zero_point for v in (source.storage.minimum, source.storage.maximum))
    summed = tuple(axis for axis in range(weights.array.ndim) if axis != channel)
    low, high = (v.reshape(-1) for v in exact_channel_bounds(weights.array, summed, zero, start, end, offset))
    alike = roundings_agree(once, twice, low, high, least - result.zero_point, most - result.zero_point)
    if alike.all():
        return None
    return f"two roundings differ from one for some sums of {np.count_nonzero(~alike)} of {alike.size} channels"


@constraint("positive_scale")
def _positive_scale(op: Op) -> str | None:
    """Models of converters have scales of 0 where a tensor is 0 throughout."""
    for value in _quantized(op.tensors):
        scales = _scales(value)
        if bad := scales[~((scales > 0) & np.isfinite(scales))].tolist():
            return f"the scale of '{value.name}' is {bad[0]:g}, not a positive number"
    return None


@constraint("power_of_two_scale")
def _power_of_two_scale(op: Op) -> str | None:
    for value in _quantized(op.tensors):
        if (np.frexp(_scales(value))[0] != 0.5).any():
            return f"the scale of '{value.name}' is not a power of two"
    return None


@constraint("power_of_two_shifts")
def _power_of_two_shifts(op: Op) -> str | None:
    """ADD and SUB of int16 shift one operand to the scale of the other: `Prepare` in kernels/add.cc and sub.cc."""
    values = [*_quantized(op.operands), *_quantized(op.results)]
    if not op.attributes.get("pot_scale_int16") or len(values) != 3 or any(v.type.storage is not i16 for v in values):
        return None
    try:
        power_of_two_shifts(*(float(_scales(v)[0]) for v in values))
    except ValueError as error:
        return str(error)
    return None


@constraint("rank_at_most", "integer")
def _rank_at_most(op: Op, most: float) -> str | None:
    value = next((v for v in op.tensors if v.type.rank is None or v.type.rank > most), None)
    return None if value is None else f"'{value.name}' has more than {most:g} dims"


@constraint("indices_from_zero")
def _indices_from_zero(op: Op) -> str | None:
    for value in op.present_operands:
        if value.type.quantized or value.type.storage.is_float:
            continue
        if value.is_constant and value.array.size and value.array.min() < 0:
            return f"'{value.name}' has negative elements"
    return None


@constraint("no_activation")
def _no_activation(op: Op) -> str | None:
    activation = fused_activation(op)
    return None if activation == "NONE" else f"the fused activation is {activation}"


@constraint("lowered")
def _lowered(op: Op) -> str | None:
    return "the target has no kernel on these types"


# Parameters that constraints give ports.


Types: TypeAlias = list[ElementType]
QuantFunction: TypeAlias = Callable[..., tuple[list[int], list[int]]]

_GROUP = "tflq.targets"
_FUNCTIONS: dict[str, QuantFunction] = {}


def quant_function(name: str, *numbers: str) -> Callable[[QuantFunction], QuantFunction]:
    """Enters a function under a name; `numbers` as of `tflq.targets.constraint`. A kernel keeps the constraint if the
    function has nothing to update."""

    def register(function: QuantFunction) -> QuantFunction:
        _FUNCTIONS[name] = function
        CONSTRAINTS.setdefault(name, Constraint(_constraint_of(name, function), numbers))
        return function

    return register


def _constraint_of(name: str, function: QuantFunction) -> Callable[..., str | None]:
    def broken(op: Op, *numbers: float) -> str | None:
        sides = [[v.type.element for v in values if v is not None] for values in (op.operands, op.results)]
        inputs, outputs = ([t for t in side if is_quantized(t)] for side in sides)
        return f"its parameters are not those of {name}" if any(function(inputs, outputs, *numbers)) else None

    return broken


@cache
def load_quant_functions() -> None:
    """Enters those of installed packages."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=_GROUP):
        quant_function(entry.name)(entry.load())


def quant_functions(
    constraints: Sequence[tuple[str, tuple[float, ...]]],
) -> list[tuple[str, QuantFunction, tuple[float, ...]]]:
    """Of a signature's constraints those that give ports parameters."""
    return [(name, _FUNCTIONS[name], numbers) for name, numbers in constraints if name in _FUNCTIONS]


def _parameters_on(kind: ElementType, stored: ElementType) -> ElementType:
    """Parameters, on the storage of a port."""
    if not isinstance(kind, UniformQuantizedType) or not isinstance(stored, (AnyQuantizedType, UniformQuantizedType)):
        return kind
    if kind.storage != stored.storage:
        return stored
    if isinstance(stored, UniformQuantizedType):
        same = (stored.scale, stored.zero_point) == (kind.scale, kind.zero_point)
        return stored if same else kind
    low, high = max(kind.storage_min, stored.storage_min), min(kind.storage_max, stored.storage_max)
    return UniformQuantizedType(kind.storage, kind.expressed, kind.scale, kind.zero_point, low, high)


def _follow(types: Types, places: Sequence[int], kind: ElementType) -> list[int]:
    """Gives ports the parameters; which of them did not have them."""
    changed = []
    for place in places:
        updated = _parameters_on(kind, types[place])
        if updated != types[place]:
            types[place] = updated
            changed.append(place)
    return changed


def _quantizable(types: Types) -> list[int]:
    return [i for i, t in enumerate(types) if is_quantized(t) or isinstance(t, AnyQuantizedType)]


@quant_function("same_scale")
def _give_same_scale(inputs: Types, outputs: Types) -> tuple[list[int], list[int]]:
    """All ports follow the only input if it is known, else the only output, else the first that is known."""
    sides = [(types, _quantizable(types)) for types in (inputs, outputs)]
    known = [types[i] for types, places in sides for i in places if is_quantized(types[i])]
    if not known:
        return [], []
    alone = [types[places[0]] for types, places in sides if len(places) == 1 and is_quantized(types[places[0]])]
    kind = next(iter(alone), known[0])
    return _follow(*sides[0], kind), _follow(*sides[1], kind)


@quant_function("same_operand_scale")
def _give_same_operand_scale(inputs: Types, outputs: Types) -> tuple[list[int], list[int]]:
    return _give_same_scale(inputs, [])[0], []


@quant_function("fixed_scale", "positive", "integer")
def _give_fixed_scale(inputs: Types, outputs: Types, scale: float, zero_point: float) -> tuple[list[int], list[int]]:
    changed = []
    for place in _quantizable(outputs):
        stored = outputs[place]
        if not isinstance(stored, (AnyQuantizedType, UniformQuantizedType)) or stored.expressed is None:
            continue
        fixed = UniformQuantizedType.of(
            stored.storage,
            scale,
            int(zero_point),
            expressed=stored.expressed,
            storage_min=stored.storage_min,
            storage_max=stored.storage_max,
        )
        if fixed != stored:
            outputs[place] = fixed
            changed.append(place)
    return [], changed


@quant_function("multiplier_scale", "positive?")
def _give_multiplier_scale(inputs: Types, outputs: Types, bound: float = 0.0) -> tuple[list[int], list[int]]:
    """The multiplier follows from all ports, and no port from others."""
    return [], []


@quant_function("multiplier_accumulator_scale", "positive?")
def _give_multiplier_accumulator_scale(
    inputs: Types, outputs: Types, bound: float = 0.0
) -> tuple[list[int], list[int]]:
    """The third input, a bias, has the product of the scales of the first two, and zero point 0."""
    places = _quantizable(inputs)
    if len(places) < 3 or not all(is_quantized(inputs[i]) for i in places[:2]):
        return [], []
    x, weights, bias = (inputs[i] for i in places[:3])
    product = _product(x, weights)  # type: ignore[arg-type]
    stored = bias.storage  # type: ignore[union-attr]
    rest: dict[str, Any] = {"storage_min": bias.storage_min, "storage_max": bias.storage_max}  # type: ignore[union-attr]
    rest["expressed"] = x.expressed  # type: ignore[union-attr]
    if product is None or rest["expressed"] is None:
        return [], []
    expected: ElementType
    if product.ndim:
        expected = UniformQuantizedPerAxisType.of(stored, 0, product, 0, **rest)
    else:
        expected = UniformQuantizedType.of(stored, float(product), 0, **rest)
    if expected == bias or _tolerated(bias, product, outputs):
        return [], []
    inputs[places[2]] = expected
    return [places[2]], []


def _product(x: QuantizedType, weights: QuantizedType) -> np.ndarray | None:
    """The scales of an accumulator, one or one per index; None if they are neither."""
    one, other = _axis_scales(x), _axis_scales(weights)
    if one is None or other is None or (one.ndim and other.ndim):
        return None
    return np.asarray(one * other)


def _axis_scales(kind: ElementType) -> np.ndarray | None:
    if isinstance(kind, UniformQuantizedType):
        return np.asarray(kind.scale, np.float64)
    if isinstance(kind, UniformQuantizedSubChannelType) or not isinstance(kind, UniformQuantizedPerAxisType):
        return None
    return np.asarray(kind.scales, np.float64)


def _tolerated(bias: ElementType, product: np.ndarray, outputs: Types) -> bool:
    """Whether a bias that has parameters already is as near to the product as kernels take it."""
    scales = _axis_scales(bias)
    result = next((_axis_scales(kind) for kind in outputs if isinstance(kind, UniformQuantizedType)), None)
    if scales is None or result is None or not result.all() or scales.size not in (1, product.size):
        return False
    return not _has_zero_points(bias) and bool((np.abs(product - scales) / result <= _BIAS_TOLERANCE).all())
