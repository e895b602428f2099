"""Known types of a value before a port: parameters or a range, as a model states them around it.

Parameters are stated by casts (`quant.qcast` and `quant.dcast`, or QUANTIZE and DEQUANTIZE of a file) and by fake
quantization; a range by statistics; all of these by element types. Parameters are preferred to a range. The points that
`quant.stats_ref` and `quant.coupled_ref` mark state nothing, and are seen through: they stay where they are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.parameters import SimulatesQuantization
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.regions import CoupledRef, Stats, StatsRef
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    LEAST_WIDTH,
    AnyQuantizedType,
    CalibratedQuantizedType,
    ElementType,
    NoQuantizedType,
    QuantizedType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    i8,
    i16,
    is_float,
    is_quantized,
    ui8,
    ui16,
)
from tflq.numerics.ranges import nudged
from tflq.targets.load import Kernels
from tflq.tools.quantize.regions.lookup import real_constant

# The ops that state something of a value.


POINTS: Final = (StatsRef, CoupledRef)
"""Ops that mark a point by a key. They are the identity, and no pass on regions deletes one."""


def source_of(op: Op) -> Value:
    """The value that a statement or a cast is about: its operand."""
    return op.operand(0)


def is_quantizing(op: Op | None) -> bool:
    """Whether an op makes quantized numbers of reals."""
    return isinstance(op, Qcast) or (isinstance(op, Quantize) and is_float(op.input.type.element))


def is_dequantizing(op: Op | None) -> bool:
    """Whether an op makes reals of quantized numbers."""
    return isinstance(op, Dcast) or (isinstance(op, Dequantize) and op.input.type.quantized)


def stored_of(value: Value) -> Value | None:
    """The quantized value that a value is the reals of; None if no op made these of one."""
    op = value.producer
    return source_of(op) if op is not None and is_dequantizing(op) else None


def is_statement(op: Op | None) -> bool:
    """Whether an op is between kernels, not one: it casts, or says something of a value."""
    statement = isinstance(op, (Stats, *POINTS)) or is_quantizing(op) or is_dequantizing(op)
    return statement or (op is not None and faked_type(op) is not None)


def faked_type(op: Op) -> QuantizedType | None:
    """The parameters that a fake quantization of reals stands for; None for any other op, and if they are not known."""
    if trait_of(op, SimulatesQuantization) is None:
        return None
    try:
        return simulated_type(op)
    except ValueError:
        return None


def simulated_type(op: Op) -> UniformQuantizedType | UniformQuantizedPerAxisType:
    """The parameters that a fake quantization (`SimulatesQuantization`) stands for. ValueError says why it has none.

    Storage has 8 bits, or 16 for more than 8. Its least integers are left out for fewer bits, and the least for a
    narrow range. It is signed if the op says so. Ranges below `LEAST_WIDTH` are widened, as TensorFlow does it.
    """
    simulates = trait_of(op, SimulatesQuantization)
    assert simulates is not None
    assert isinstance(op, Operator)
    value = simulates.data.value(op)
    bounds = simulates.bounds(op)
    if value is None or not is_float(value.type.element):
        raise ValueError("its input is not of reals")
    if bounds is None:
        raise ValueError("its range is computed")
    bits, narrow = simulates.steps(op)
    scale, zero, least, greatest = nudged(*widened(*bounds), bits, narrow_range=narrow)
    signed = simulates.is_signed(op)
    storage = (i8 if signed else ui8) if bits <= i8.bits else (i16 if signed else ui16)
    shift = 1 << (bits - 1) if signed else 0
    expressed = value.type.storage
    ends = {"storage_min": least - shift, "storage_max": greatest - shift}
    axis = None if simulates.axis is None else simulates.axis_of(op)
    return uniform(storage, axis, scale, zero - shift, expressed=expressed, **ends)


def uniform(
    storage: ScalarType, axis: int | None, scale: np.ndarray, zero_point: np.ndarray | int, **more: Any
) -> UniformQuantizedType | UniformQuantizedPerAxisType:
    """Parameters for each index of an axis, or for all elements, as the constructors check and take them."""
    if axis is None:
        return UniformQuantizedType.of(storage, float(scale.item()), int(np.asarray(zero_point).item()), **more)
    return UniformQuantizedPerAxisType.of(storage, axis, scale, zero_point, **more)


def other_sign(kind: QuantizedType) -> QuantizedType:
    """A type of equal numbers on storage with the other sign: 128 less or more for 8 bits. The type itself if its
    storage has none of the other sign, or it has blocks."""
    storage = _OTHER_SIGN.get(kind.storage)
    if storage is None or isinstance(kind, UniformQuantizedSubChannelType):
        return kind
    shift = storage.minimum - kind.storage.minimum
    moved = kind.replace(storage=storage, storage_min=kind.storage_min + shift, storage_max=kind.storage_max + shift)
    if isinstance(moved, UniformQuantizedType):
        return moved.replace(zero_point=moved.zero_point + shift)
    return moved.replace(zero_points=moved.zero_points + shift)


def storages(kernels: Kernels) -> frozenset[ScalarType | None]:
    """The storage types of the kernels of a target; None stands for any."""
    signatures = (signature for signatures in kernels.values() for signature in signatures)
    slots = (slot for signature in signatures for side in signature.sides for slot in side)
    return frozenset(port.storage for slot in slots for port in slot.ports if port.kinds)


def stored_by(listed: Container[ScalarType | None], spec: ElementType) -> ElementType:
    """Parameters on storage that a target has: of the other sign, if it lists none of theirs."""
    if not is_quantized(spec) or spec.storage in listed or spec.storage.bits >= ACCUMULATED:
        return spec
    other = other_sign(spec)
    return other if other.storage in listed else spec


_OTHER_SIGN: Final = {i8: ui8, ui8: i8, i16: ui16, ui16: i16}


_CONSTRAINTS = (AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType)


def set_plain_types(values: Iterable[Value]) -> dict[Value, ElementType]:
    """Gives values whose element type only constrains them (any, calibrated, none) the type that it expresses. Returns
    the former types."""
    constraints: dict[Value, ElementType] = {}
    for value in values:
        element = value.type.element
        if isinstance(element, _CONSTRAINTS) and element.expressed is not None:
            constraints[value] = element
            value.type = value.type.with_element(element.expressed)
    return constraints


# What is stated around a value.


ACCUMULATED: Final = 32
"""The bits of an accumulator, at least."""


def same_value(value: Value) -> Value:
    """The value before statistics and points, which are the identity."""
    while isinstance(value.producer, (Stats, *POINTS)):
        value = source_of(value.producer)
    return value


@dataclass(frozen=True, slots=True)
class Statement:
    """Statement on a value. `value`: its subject, before the ops that only make statements. `spec`: the strongest
    statement; None if there is none."""

    value: Value
    spec: ElementType | None


def statement_before(value: Value) -> Statement:
    """The statement by the ops before a use."""
    spec: ElementType | None = None
    about, marked = value, False  # behind a mark a value is looked at, but has to stay
    while (op := value.producer) is not None:
        if isinstance(op, (Stats, *POINTS)):
            if isinstance(op, Stats) and not is_quantized(op.arg.type.element):
                spec = spec or range_of(op)
            marked |= not isinstance(op, Stats) or op.axis is not None
            value = source_of(op)
        elif (kind := faked_type(op)) is not None and _adds_nothing(kind, spec, source_of(op)):
            spec = spec if spec is not None and is_quantized(spec) else kind
            value = source_of(op)
        elif spec is not None and is_quantized(spec):
            break
        elif (stored := stored_of(value)) is not None:
            if stored.is_constant and stored.type.storage.bits >= ACCUMULATED:
                break  # to be added to an accumulator: its parameters follow from others
            spec, cast = stored.type.element, stored.producer
            if cast is None or not is_quantizing(cast) or not _stands_for(source_of(cast).type, value.type):
                break
            value = source_of(cast)
        else:
            break
        about = about if marked else value
    return Statement(about, spec)


def _adds_nothing(kind: QuantizedType, spec: ElementType | None, value: Value) -> bool:
    """Whether fake quantization of a value needs not stay before what is stated behind it: casts to the same steps,
    unless it rounds a constant, which is folded."""
    if spec is None or not is_quantized(spec):
        return True
    return same_steps(spec, kind) and not value.is_constant


def _stands_for(source: TensorType, result: TensorType) -> bool:
    """Whether a value can be used in the place of what casts make of it: of the same reals, in as known a shape."""
    return source.element == result.element and result.shape in (None, source.shape)


def statement_after(
    value: Value, users: Mapping[Value, Sequence[Op]], returned: frozenset[Value]
) -> tuple[ElementType | None, dict[Value, Value]]:
    """The strongest statement by the ops after a value, if every use of it is one; and the values that stand for it.

    Each of these comes with the value that it could be replaced by: this one, or the last that is marked.
    """
    spec: ElementType | None = None
    same: dict[Value, Value] = {}
    marked = value
    while value not in returned and (uses := users.get(value, ())):
        if len(uses) == 1 and isinstance(op := uses[0], (Stats, *POINTS)):
            stays = not isinstance(op, Stats) or op.axis is not None
            spec = spec or (range_of(op) if isinstance(op, Stats) else None)
            value = op.result
            if stays:
                marked = value
            else:
                same[value] = marked
            continue
        kinds = {op.result.type.element if is_quantizing(op) else faked_type(op) for op in uses}
        (kind,) = kinds if len(kinds) == 1 else (None,)
        if kind is None:
            break
        return kind, same | {v: marked for op in uses for v in _reals(op, users) if v.type == value.type}
    return spec, same


def _reals(op: Op, users: Mapping[Value, Sequence[Op]]) -> list[Value]:
    """Real results of a cast or a fake quantization of a value; also by casts to the same steps behind it."""
    if is_quantizing(op):
        return [user.result for user in users.get(op.result, ()) if is_dequantizing(user)]
    kind = faked_type(op)
    behind = users.get(op.result, ()) if kind is not None else ()
    if kind is None or not all(is_quantizing(cast) and same_steps(cast.result.type.element, kind) for cast in behind):
        return [op.result]
    return [op.result, *(real for cast in behind for real in _reals(cast, users))]


def same_steps(one: ElementType | None, other: QuantizedType) -> bool:
    """Whether parameters are the same but for the sign of what is stored."""
    return one in (other, other_sign(other))


def range_of(stats: Stats) -> CalibratedQuantizedType | None:
    """The range of a whole tensor that statistics state; None if it is of quantized numbers."""
    element = stats.arg.type.element
    if not isinstance(element, ScalarType):
        return None
    low, high = np.asarray(stats.layer_stats, np.float64).tolist()
    return CalibratedQuantizedType.of(element, low, high)


# Ranges.


def widened(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges that are wide enough, so that a tensor that is always 0 has a scale. A range of `LEAST_WIDTH` or less is
    widened to contain half of that on either side of 0, as in TensorFlow Lite's converter."""
    narrow = high - low <= LEAST_WIDTH
    half = LEAST_WIDTH / 2
    return np.where(narrow, np.minimum(low, -half), low), np.where(narrow, np.maximum(high, half), high)


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest of a value, each of all elements, or [n] of each index of `axis`. `exact`: these are
    all elements that there ever are, those of a constant."""

    expressed: ScalarType
    low: np.ndarray
    high: np.ndarray
    axis: int | None = None
    exact: bool = False

    @classmethod
    def of(cls, seen: CalibratedQuantizedType, *, exact: bool = False) -> Range:
        """A range of a whole tensor."""
        return cls(seen.expressed, np.asarray(seen.minimum), np.asarray(seen.maximum), exact=exact)

    def along(self, axis: int, size: int) -> Range:
        """The range of each index of an axis: all have the same."""
        low, high = (np.full(size, end) for end in (self.low, self.high))
        return replace(self, low=low, high=high, axis=axis)


def ranges_along(value: Value, users: Mapping[Value, Sequence[Op]] | None = None) -> list[tuple[Stats, Range]]:
    """The statistics of an axis that stand before a value is used, the last first, with their ranges. If `users` are
    given, also those behind the value."""
    ops: list[Op] = []
    before = value
    while isinstance(before.producer, (Stats, *POINTS)):
        ops.append(before.producer)
        before = source_of(before.producer)
    while users is not None and len(uses := users.get(value, ())) == 1 and isinstance(uses[0], (Stats, *POINTS)):
        ops.append(uses[0])
        value = uses[0].result
    exact = before.is_constant
    return [(op, _along(op, exact=exact)) for op in ops if isinstance(op, Stats) and op.axis is not None]


def _along(stats: Stats, *, exact: bool) -> Range:
    assert stats.axis_stats is not None
    low, high = np.asarray(stats.axis_stats, np.float64).T
    return Range(stats.arg.type.storage, low, high, stats.axis, exact)


def constant_range(value: Value, axis: int | None) -> Range | None:
    """The range of the elements of a constant, whole or along an axis; None for other values, and if an element is not
    finite."""
    value = same_value(value)
    expressed = value.type.element
    if (stored := stored_of(value)) is not None:
        value = real_constant(stored) or value
    if not value.is_constant or not is_float(expressed) or value.array.dtype.kind != "f" or not value.array.size:
        return None
    array = value.array.astype(np.float64)
    if not np.isfinite(array).all() or (axis is not None and axis >= array.ndim):
        return None
    others = tuple(i for i in range(array.ndim) if i != axis)
    return Range(value.type.storage, array.min(others), array.max(others), axis, exact=True)


def parameters(seen: Range, stored: AnyQuantizedType, zero_point: int | None) -> QuantizedType:
    """The parameters for a range, on a storage type; `zero_point`: the one that the kernel asks for.

    The range is widened to contain 0, and to `LEAST_WIDTH`, as in TensorFlow Lite's converter. Constants may well be
    small: one that is exact is widened only if there is nothing but 0, or a channel that reaches further than
    `LEAST_WIDTH` does, since a step is then not above that channel's. scale = (max - min) / (qmax - qmin) in f64,
    rounded to the expressed type; zero point = round half even(qmin - min / scale), clamped. Where the zero point is
    given, the scale is the least that reaches both ends; of zero point 0 with as many steps below 0 as above, as
    TensorFlow Lite's converter counts them: max|x| / qmax. No scale is below the smallest normal float32.
    """
    low, high = np.minimum(seen.low, 0.0), np.maximum(seen.high, 0.0)
    wide = widened(low, high)
    small = seen.exact and not (np.maximum(-low, high) > LEAST_WIDTH / 2).any()
    low, high = (np.where(high > low, end, w) for end, w in zip((low, high), wide, strict=True)) if small else wide
    qmin, qmax = stored.storage_min, stored.storage_max
    if zero_point is None:
        scale = (high - low) / (qmax - qmin)
    else:
        least = max(qmin, -qmax) if zero_point == 0 else qmin
        reach = [abs(end / (q - zero_point)) for end, q in ((low, least), (high, qmax)) if q != zero_point]
        scale = np.maximum.reduce(reach)
    scale = np.maximum(scale, np.finfo(np.float32).tiny)
    more = {"expressed": seen.expressed, "storage_min": qmin, "storage_max": qmax}
    scaled = uniform(stored.storage, seen.axis, scale, zero_point or 0, **more)
    if zero_point is not None:
        return scaled
    rounded = np.asarray(scaled.scale if isinstance(scaled, UniformQuantizedType) else scaled.scales, np.float64)
    zeros = np.clip(np.rint(qmin - low / rounded), qmin, qmax).astype(np.int64)
    return uniform(stored.storage, seen.axis, scale, zeros, **more)
