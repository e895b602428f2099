"""Quantization casts as arithmetic on the stored integers, and the pass `lower-quant-ops`.

As ops of MLIR's core dialects, to the letter of the `quant` dialect's specification:

    qcast(x) = scast(clamp(fptosi(x / scale + zero_point), storage_min, storage_max))
    dcast(q) = (sitofp(scast(q)) - sitofp(zero_point)) * scale

There are four cases. Scales and zero points that all elements share are splat to the tensor's shape (a scalar's are
scalars); an unranked tensor is flattened to one dim first. Scales along an axis, or of blocks, are picked by the maps
of a linalg.generic; an unranked tensor is flattened to three dims around the axis first.

Conversion to an integer is towards zero, and undefined out of its range, as the specification has it. With a rounding,
of the quotient (`rounding`, as TFLite's kernels round) or of the sum with the zero point (`sum_rounding`), a sum out of
the storage type's range becomes its end. The clamp is of stored integers in both cases.

As ops of `tosa`:

    qcast(x) = scast(cast(clamp(round(x / scale) + zero_point, storage_min, storage_max)))
    dcast(q) = (cast(scast(q)) - zero_point) * scale

The order is TFLite's (kernels/internal/reference/quantize.h and dequantize.h): the zero point is added after rounding,
and the clamp comes before the cast, so that what is out of range saturates. If the expressed type does not hold the
storage type's bound (i32 in f32), the clamp is to the next value inside.

There, scales and zero points are constants that broadcast, of the rank of what is computed on, as TOSA asks; the shift
of `tosa.mul` is an operand, as in its text. What TOSA lacks is taken from MLIR's other dialects: the division of floats
(`arith`, along an axis in a `linalg.generic`) and roundings (`math`). The four cases differ only in the shape that is
computed on: a ranked tensor as it is; a scalar as a tensor of rank 0; an unranked tensor flattened to one dim
(per-layer) or to three around the channel (per-axis); sub-channel with each blocked dim split in two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

import numpy as np

from tflq.base.errors import OptionError, Reason, UnsupportedError
from tflq.dialects.builder import Builder, Emitter
from tflq.dialects.declare import Operator
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.tosa.elementwise import Add, GreaterEqual, Maximum, Minimum, Mul, Sub
from tflq.formats.mlir.dialects.arith import (
    COMPARE_FLOAT,
    AddF,
    CmpF,
    DivF,
    FPToSI,
    FPToUI,
    MaximumF,
    MaxSI,
    MaxUI,
    MinimumF,
    MinSI,
    MinUI,
    MulF,
    Select,
    SIToFP,
    SubF,
    UIToFP,
)
from tflq.formats.mlir.dialects.linalg import Generic, LinalgYield
from tflq.formats.mlir.dialects.math import Floor, Round, RoundEven, Trunc
from tflq.formats.mlir.dialects.tensor import (
    CollapseShape,
    Dim,
    Empty,
    ExpandShape,
    Extract,
    FromElements,
    NumElements,
    Reshape,
    ShapeOf,
    Splat,
    SplitAt,
)
from tflq.ir.attributes import AffineMap, TypedArray
from tflq.ir.module import Module
from tflq.ir.ops import Block, Buffer, Op, Region, Value
from tflq.ir.rewriting import replace_result, rewrite_all_ops
from tflq.ir.types import (
    BareType,
    QuantizedType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    bf16,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
    signless,
)
from tflq.numerics.fixed_point import ROUNDINGS
from tflq.numerics.signless import bfloat16_bits, bfloat16_values
from tflq.transforms.pass_manager import Pass, PassResult

if TYPE_CHECKING:
    import numpy.typing as npt


# Emitting ops of MLIR's core dialects.


INDEX = BareType.of(index)


def stored_elements(values: npt.ArrayLike, element: ScalarType) -> np.ndarray:
    """Numbers as arrays that hold elements of a type: signless integers modulo their width, bf16 as bits."""
    if element is bf16:
        return bfloat16_bits(values)
    if not element.is_integer:
        return np.asarray(values, element.dtype)
    wide = np.asarray(values, object)
    half = 1 << (element.bits - 1)
    wrapped = ((wide + half) % (2 * half)) - half if element.signed else wide % (2 * half)
    return np.asarray(wrapped, element.dtype)


def scalar(value: float | np.generic, element: ScalarType) -> Value:
    """A constant outside any tensor."""
    return _constant(BareType.of(element), stored_elements(value, element))


def dense(values: np.ndarray, element: ScalarType) -> Value:
    """A constant tensor."""
    return _constant(TensorType(values.shape, element), stored_elements(values, element))


def _constant(type: TensorType, array: np.ndarray) -> Value:
    return Value(type, buffer=Buffer.of(array, type.storage))


def open_dims(b: Emitter, x: Value) -> list[Value]:
    """The sizes of a ranked tensor's unknown dims, in order."""
    unknown = [axis for axis, dim in enumerate(x.type.dims) if dim is None]
    return [b.emit(Dim, [x, scalar(axis, index)], INDEX) for axis in unknown]


def splat(b: Emitter, number: Value, type: TensorType, dims: Sequence[Value]) -> Value:
    """A tensor of one number, of the shape of `type`; the number as it is if `type` is that of a scalar."""
    if isinstance(type, BareType):
        return number
    return b.emit(Splat, [number, *dims], type.with_element(number.type.element))


def generic(
    b: Emitter,
    inputs: Sequence[Value],
    maps: Sequence[AffineMap],
    result: TensorType,
    dims: Sequence[Value],
    body: Callable[[Emitter, Sequence[Value]], Value],
) -> Value:
    """linalg.generic over all elements of `result`, all in parallel. `maps`: of the inputs and the result."""
    rank = len(result.shape or ())
    empty = b.emit(Empty, list(dims), result)
    arguments = [Value(BareType.of(v.type.element)) for v in (*inputs, empty)]
    inner = Emitter()
    inner.op(LinalgYield, [body(inner, arguments)], [])
    attributes = {
        "indexing_maps": list(maps),
        "iterator_types": ["parallel"] * rank,
        "operandSegmentSizes": TypedArray.of(np.array([len(inputs), 1], np.int32), i32),
    }
    op = b.op(Generic, [*inputs, empty], [result], attributes)
    op.regions = [Region([Block(arguments, inner.ops)])]
    return op.result


# The casts.


MATH: Final[dict[str, type[Operator]]] = {"half_even": RoundEven, "half_away": Round, "toward_zero": Trunc}
"""The ops that round; half_up is written out."""
_Step: TypeAlias = Callable[[Emitter, Value, Value, "Value | None", list[Value]], Value]
"""Computes on a value with its scale, its zero point unless that is 0, and the sizes of its unknown dims."""


def quantize(b: Emitter, op: Qcast, rounding: str | None = None) -> Value:
    """The result of a quant.qcast. `rounding`: of the quotient, where the op says none."""
    element, target = _uniform(op, op.result.type), op.result.type
    stored = target.stored()
    total = op.sum_rounding
    quotient = op.rounding or (rounding if total is None else None)
    for name in (quotient, total):
        if name is not None and name not in ROUNDINGS:
            raise OptionError(
                Reason.at(op.location, f"'{name}' is not a rounding", remedy=f"use {', '.join(ROUNDINGS)}")
            )
    rounded = quotient is not None or total is not None

    def step(b: Emitter, x: Value, scale: Value, zero: Value | None, dims: list[Value]) -> Value:
        y = b.emit(DivF, [x, scale], x.type)
        y = _rounded(b, y, quotient, dims)
        if zero is not None:
            y = b.emit(AddF, [y, _real(b, element, zero)], y.type)
        y = _rounded(b, y, total, dims)
        whole = _saturating(b, y, element, dims) if rounded else _converted(b, y, element)
        return _clamped(b, whole, element, dims)

    return b.emit(Scast, [_applied(b, op.input, element, stored, step)], target)


def _converted(b: Emitter, y: Value, element: QuantizedType) -> Value:
    """The integer part, of the signless storage type."""
    kind = FPToSI if element.storage.signed else FPToUI
    return b.emit(kind, [y], y.type.with_element(signless(element.storage)))


def _saturating(b: Emitter, y: Value, element: QuantizedType, dims: list[Value]) -> Value:
    """The integer part, within the storage type: floats beyond it, of which a conversion is undefined, become its ends.

    The expressed type may not hold an end (i32 in f32): the conversion is then of the next float inside, and a
    comparison chooses the end.
    """
    storage, expressed = element.storage, element.expressed
    ends = ((storage.minimum, 1, MaximumF, "olt"), (storage.maximum, -1, MinimumF, "ogt"))
    bounds = [splat(b, scalar(_inward(end, expressed, toward), expressed), y.type, dims) for end, toward, _, _ in ends]
    inside = y
    for (_, _, limit, _), bound in zip(ends, bounds, strict=True):
        inside = b.emit(limit, [inside, bound], y.type)
    whole = _converted(b, inside, element)
    for (end, toward, _, comparison), bound in zip(ends, bounds, strict=True):
        if _inward(end, expressed, toward) != end:
            beyond = b.emit(CmpF, [y, bound], y.type.with_element(i1), predicate=COMPARE_FLOAT.index(comparison))
            whole = b.emit(Select, [beyond, splat(b, scalar(end, whole.type.storage), y.type, dims), whole], whole.type)
    return whole


def dequantize(b: Emitter, op: Dcast) -> Value:
    """The result of a quant.dcast."""
    source = op.input
    element = _uniform(op, source.type)

    def step(b: Emitter, x: Value, scale: Value, zero: Value | None, dims: list[Value]) -> Value:
        y = _real(b, element, x)
        if zero is not None:
            y = b.emit(SubF, [y, _real(b, element, zero)], y.type)
        return b.emit(MulF, [y, scale], y.type)

    stored = b.emit(Scast, [source], source.type.stored())
    return _applied(b, stored, element, op.result.type, step)


def uniform(type: TensorType) -> QuantizedType:
    element = type.element
    assert isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType))
    return element


def _uniform(op: Op, type: TensorType) -> QuantizedType:
    """The quantized element type. UnsupportedError if constants of what it expresses cannot be written."""
    element = uniform(type)
    if not element.expressed.numpy and element.expressed is not bf16:
        what = f"lower-quant-ops cannot write constants of the expressed type {element.expressed}"
        raise UnsupportedError(Reason.at(op.location, what, remedy="express it in f32"))
    return element


def _real(b: Emitter, element: QuantizedType, x: Value) -> Value:
    """Stored integers as floats."""
    return b.emit(SIToFP if element.storage.signed else UIToFP, [x], x.type.with_element(element.expressed))


def _applied(b: Emitter, x: Value, element: QuantizedType, result: TensorType, step: _Step) -> Value:
    """A step on every element of x."""
    if isinstance(x.type, BareType) or x.type.shape is not None:
        if isinstance(element, UniformQuantizedType):
            return _per_layer(b, x, element, step)
        return _with_maps(b, x, element, result, step)
    if isinstance(element, UniformQuantizedSubChannelType):
        raise UnsupportedError(
            Reason("lower-quant-ops needs a ranked tensor for sub-channel quantization", remedy="state its rank")
        )
    shape = b.emit(ShapeOf, [x], TensorType((None,), index))
    if isinstance(element, UniformQuantizedType):
        flat = _reshaped(b, x, [b.emit(NumElements, [shape], INDEX)], (None,))
        flat_result = _per_layer(b, flat, element, step)
    else:
        (count,) = element.scales.shape
        before = _split(b, shape, element.axis)[0]
        after = _split(b, shape, element.axis + 1)[1]
        sizes = [b.emit(NumElements, [part], INDEX) for part in (before, after)]
        flat = _reshaped(b, x, [sizes[0], scalar(count, index), sizes[1]], (None, count, None))
        around = element.replace(axis=1)
        flat_result = _with_maps(b, flat, around, flat.type.with_element(result.element), step)
    return b.emit(Reshape, [flat_result, shape], result)


def _reshaped(b: Emitter, x: Value, sizes: list[Value], shape: tuple[int | None, ...]) -> Value:
    flat = b.emit(FromElements, sizes, TensorType((len(sizes),), index))
    return b.emit(Reshape, [x, flat], TensorType(shape, x.type.element))


def _split(b: Emitter, shape: Value, axis: int) -> list[Value]:
    return b.op(SplitAt, [shape, scalar(axis, index)], [shape.type, shape.type]).results


def _per_layer(b: Emitter, x: Value, element: QuantizedType, step: _Step) -> Value:
    """A step with one scale and zero point, for all elements."""
    assert isinstance(element, UniformQuantizedType)
    dims = open_dims(b, x)
    scale = splat(b, scalar(element.scale, element.expressed), x.type, dims)
    stored = x.type.with_element(element.storage).stored().storage
    zero = splat(b, scalar(element.zero_point, stored), x.type, dims) if element.zero_point else None
    return step(b, x, scale, zero, dims)


def _with_maps(b: Emitter, x: Value, element: QuantizedType, result: TensorType, step: _Step) -> Value:
    """A step with the scale and zero point of each element; x is ranked."""
    assert not isinstance(element, UniformQuantizedType)
    rank = len(x.type.dims)
    all_dims = AffineMap.projection(rank, tuple(range(rank)))
    if isinstance(element, UniformQuantizedPerAxisType):
        picked = AffineMap.projection(rank, (element.axis,))
    else:
        picked = _of_blocks(rank, element)
    scales = dense(element.scales, element.expressed)
    stored = TensorType((), element.storage).stored().storage
    zeros = dense(element.zero_points, stored)
    maps = [all_dims, picked, picked, all_dims]

    def body(inner: Emitter, values: list[Value]) -> Value:
        return step(inner, values[0], values[1], values[2], [])

    return generic(b, [x, scales, zeros], maps, result, open_dims(b, x), body)  # type: ignore[arg-type]


def _of_blocks(rank: int, element: UniformQuantizedSubChannelType) -> AffineMap:
    """The map from the place of an element to that of its block."""
    sizes = dict(zip(element.axes, element.block_sizes, strict=True))
    names = [f"d{i}" for i in range(rank)]
    places = []
    for axis, name in enumerate(names):
        size = sizes.get(axis, 0)
        places.append("0" if not size else name if size == 1 else f"{name} floordiv {size}")
    return AffineMap(f"affine_map<({', '.join(names)}) -> ({', '.join(places)})>")


def _clamped(b: Emitter, y: Value, element: QuantizedType, dims: list[Value]) -> Value:
    """Clamped to the storage range, if that is narrower than the storage type."""
    storage = element.storage
    if (element.storage_min, element.storage_max) == (storage.minimum, storage.maximum):
        return y
    stored = y.type.storage
    low, high = (splat(b, scalar(n, stored), y.type, dims) for n in (element.storage_min, element.storage_max))
    lower, upper = (MaxSI, MinSI) if storage.signed else (MaxUI, MinUI)
    return b.emit(upper, [b.emit(lower, [y, low], y.type), high], y.type)


def _rounded(b: Emitter, y: Value, rounding: str | None, dims: list[Value]) -> Value:
    """Rounded to an integer, which is still a float."""
    if rounding is None:
        return y
    if rounding in MATH:
        return b.emit(MATH[rounding], [y], y.type)
    whole = b.emit(Floor, [y], y.type)  # half up: 1 more if the rest, which is exact, is a half or more
    element = y.type.storage
    half = splat(b, scalar(0.5, element), y.type, dims)
    rest = b.emit(SubF, [y, whole], y.type)
    up = b.emit(CmpF, [rest, half], y.type.with_element(i1), predicate=COMPARE_FLOAT.index("oge"))
    return b.emit(AddF, [whole, b.emit(UIToFP, [up], y.type)], y.type)


def bounds(element: QuantizedType) -> tuple[float, float]:
    """The storage range in the expressed type, rounded inwards."""
    return _inward(element.storage_min, element.expressed, 1), _inward(element.storage_max, element.expressed, -1)


def _inward(bound: int, expressed: ScalarType, toward: int) -> float:
    """The float nearest to an integer that is not beyond it; `toward`: the side on which it must be."""
    if expressed is bf16:
        bits = bfloat16_bits(bound)
        value = float(bfloat16_values(bits))
        if (value - bound) * toward < 0 or not np.isfinite(value):
            value = float(bfloat16_values(bits - np.uint16(1)))  # a step towards 0
        return value
    dtype = expressed.dtype
    with np.errstate(over="ignore"):
        near = dtype.type(bound)
    if (float(near) - bound) * toward < 0:
        near = np.nextafter(near, dtype.type(np.inf * toward))
    return float(near)


_CAST = frozenset({i8, i16, i32})
"""The integers of tosa.cast."""


def lowered(op: Qcast | Dcast, ops: list[Op], rounding: str) -> Value:
    """The result of a quant.qcast or quant.dcast; its ops go to the end of `ops`. `rounding`: if the op says none.

    UnsupportedError for an expressed type that numpy lacks, and for a rounding of the sum with the zero point.
    """
    b = Builder(ops)
    b.location = op.location
    return _quantize(b, op, rounding) if isinstance(op, Qcast) else _dequantize(b, op)


def _quantize(b: Builder, op: Qcast, rounding: str) -> Value:
    if op.sum_rounding is not None:
        what = "lower-quant-ops{dialect=tosa} rounds the quotient, as TFLite does, and not the sum with the zero point"
        raise UnsupportedError(Reason.at(op.location, what, remedy="use dialect=core"))
    target = op.result.type
    element = uniform(target)
    work = _flatten(b, op.input, element)
    scale, zero_point = _parameters(element, work)
    _expressed(element)
    low, high = map(np.asarray, bounds(element))
    stored = _rounded_in_tosa(b, _divided(b, work.value, scale), op.rounding or rounding)
    if zero_point.any():
        stored = _elementwise(b, Add, stored, zero_point)
    bounded = _elementwise(b, Minimum, _elementwise(b, Maximum, stored, low), high)
    storage = signless(element.storage)
    if element.storage in _CAST:
        whole = b.cast(bounded, storage)
    else:
        kind = FPToSI if element.storage.signed else FPToUI
        whole = b.emit(kind, [bounded], bounded.type.with_element(storage))
    return b.scast(work.restore(whole, target.stored()), target)


def _rounded_in_tosa(b: Builder, x: Value, rounding: str) -> Value:
    """A float, rounded to an integer."""
    if rounding in MATH:
        return b.emit(MATH[rounding], [x], x.type)
    whole = b.emit(Floor, [x], x.type)  # half up: 1 more if the rest, which is exact, is a half or more
    rest = b.emit(Sub, [x, whole], x.type)
    up = _elementwise(b, GreaterEqual, rest, np.asarray(0.5), i1)
    return b.emit(Add, [whole, b.emit(UIToFP, [up], x.type)], x.type)


def _divided(b: Builder, x: Value, scale: np.ndarray) -> Value:
    """x / scale, which TOSA has no op for."""
    element = x.type.storage
    if scale.size == 1:
        return b.emit(DivF, [x, splat(b, scalar(scale.item(), element), x.type, open_dims(b, x))], x.type)
    rank = len(x.type.dims)
    full = _of_rank(scale, rank)
    names = [f"d{i}" for i in range(rank)]
    picked = ", ".join(name if size > 1 else "0" for name, size in zip(names, full.shape, strict=True))
    maps = [AffineMap.projection(rank, tuple(range(rank)))] * 3
    maps[1] = AffineMap(f"affine_map<({', '.join(names)}) -> ({picked})>")
    operands = [x, dense(full, element)]
    return generic(b, operands, maps, x.type, open_dims(b, x), lambda inner, xs: inner.emit(DivF, xs[:2], xs[0].type))


def _dequantize(b: Builder, op: Dcast) -> Value:
    source = op.input
    element = uniform(source.type)
    work = _flatten(b, b.scast(source, source.type.stored()), element)
    scale, zero_point = _parameters(element, work)
    real = work.value.type.with_element(_expressed(element))
    if element.storage in _CAST:
        value = b.cast(work.value, real.storage)
    else:
        value = b.emit(SIToFP if element.storage.signed else UIToFP, [work.value], real)
    if zero_point.any():
        value = _elementwise(b, Sub, value, zero_point)
    factor = b.constant(_of_rank(scale, len(value.type.dims)), real.storage)
    product = b.emit(Mul, [value, factor, b.constant(np.zeros(1), i8)], value.type)
    return work.restore(product, op.result.type)


def _elementwise(
    b: Builder, kind: type[Operator], x: Value, parameter: np.ndarray, to: ScalarType | None = None
) -> Value:
    """An op on `x` and a constant of its rank that broadcasts to its shape."""
    element = x.type.element
    assert isinstance(element, ScalarType)
    with np.errstate(over="ignore"):  # a zero point that f16 does not hold
        full = _of_rank(parameter, len(x.type.dims)).astype(element.dtype)
    return b.emit(kind, [x, b.constant(full, element)], x.type.with_element(to or element))


def _of_rank(parameter: np.ndarray, rank: int) -> np.ndarray:
    """A parameter with dims of size 1 before its own."""
    return parameter.reshape((*[1] * (rank - parameter.ndim), *parameter.shape))


def _expressed(element: QuantizedType) -> ScalarType:
    if not element.expressed.numpy:
        what = f"lower-quant-ops cannot write constants of the expressed type {element.expressed}"
        raise UnsupportedError(Reason(what, remedy="express it in f32"))
    return element.expressed


@dataclass(frozen=True)
class _Work:
    """The value to compute on, which of its dims is the channel, and the way back from there to a given type."""

    value: Value
    channel: int
    restore: Callable[[Value, TensorType], Value]


def _parameters(element: QuantizedType, work: _Work) -> tuple[np.ndarray, np.ndarray]:
    """Scales and zero points, shaped to broadcast against the value that is computed on."""
    if isinstance(element, UniformQuantizedType):
        return np.asarray(element.scale), np.asarray(element.zero_point)
    view: tuple[int, ...]
    if isinstance(element, UniformQuantizedPerAxisType):
        view = (-1, *([1] * (len(work.value.type.dims) - 1 - work.channel)))
    else:
        blocks = enumerate(element.scales.shape)
        view = tuple(n for axis, count in blocks for n in ((count, 1) if axis in element.axes else (count,)))
    return element.scales.reshape(view), element.zero_points.reshape(view)


def _flatten(b: Builder, x: Value, element: QuantizedType) -> _Work:
    if isinstance(x.type, BareType):
        tensor = b.emit(FromElements, [x], TensorType((), x.type.element))
        return _Work(tensor, 0, lambda value, result: b.emit(Extract, [value], result))
    if isinstance(element, UniformQuantizedSubChannelType):
        return _split_blocks(b, x, element)
    if x.type.shape is None:
        return _flatten_unranked(b, x, element)
    channel = element.axis if isinstance(element, UniformQuantizedPerAxisType) else 0
    return _Work(x, channel, lambda value, _: value)


def _split_blocks(b: Builder, x: Value, element: UniformQuantizedSubChannelType) -> _Work:
    if not x.type.is_static:
        raise UnsupportedError(
            Reason("lower-quant-ops needs a static shape for sub-channel quantization", remedy="state its dims")
        )
    sizes = dict(zip(element.axes, element.block_sizes, strict=True))
    dims: list[int] = []
    groups: list[list[int]] = []
    for axis, dim in enumerate(x.type.dims):
        parts = [(dim or 0) // sizes[axis], sizes[axis]] if axis in sizes else [dim or 0]
        groups.append(list(range(len(dims), len(dims) + len(parts))))
        dims += parts
    attributes = {"reassociation": groups, "static_output_shape": TypedArray.of(np.array(dims, np.int64), i64)}
    split = b.emit(ExpandShape, [x], TensorType(tuple(dims), x.type.element), **attributes)
    return _Work(split, 0, lambda value, result: b.emit(CollapseShape, [value], result, reassociation=groups))


def _flatten_unranked(b: Builder, x: Value, element: QuantizedType) -> _Work:
    shape = b.emit(ShapeOf, [x], TensorType((None,), index))
    if isinstance(element, UniformQuantizedPerAxisType):
        before = _split_at(b, shape, element.axis)[0]
        after = _split_at(b, shape, element.axis + 1)[1]
        counts = [b.emit(NumElements, [before], INDEX), _size(b, element.scales.size)]
        sizes = [*counts, b.emit(NumElements, [after], INDEX)]
        work = TensorType((None, element.scales.size, None), x.type.element)
    else:
        sizes = [b.emit(NumElements, [shape], INDEX)]
        work = TensorType((None,), x.type.element)
    flat = b.emit(FromElements, sizes, TensorType((len(sizes),), index))
    flattened = b.emit(Reshape, [x, flat], work)
    return _Work(flattened, 1, lambda value, result: b.emit(Reshape, [value, shape], result))


def _split_at(b: Builder, shape: Value, axis: int) -> list[Value]:
    return b.op(SplitAt, [shape, _size(b, axis)], [shape.type, shape.type]).results


def _size(b: Builder, number: int) -> Value:
    value = b.constant(number, index)
    value.type = INDEX
    return value


@dataclass(frozen=True)
class LowerQuantOps(Pass):
    """Lowers every quant.qcast and quant.dcast, also inside of other ops. UnsupportedError for an expressed type of 8
    bits.

    dialect: `core`, to arith, math, tensor, shape and linalg, as the `quant` dialect specifies; `tosa`, to tosa where
    it has the op, saturating as TFLite's kernels do.
    rounding: of the quotient, in casts that say none. By default `tosa` rounds half to even, as a cast without a
    rounding is defined; `core` rounds the sum with the zero point towards zero, as the specification's code does.
    """

    name: ClassVar[str] = "lower-quant-ops"
    makes: ClassVar[Literal["any"]] = "any"
    dialect: Literal["core", "tosa"] = "core"
    rounding: Literal["", "half_even", "half_away", "half_up", "toward_zero"] = ""

    def run(self, module: Module) -> PassResult:
        return PassResult(module, rewrite_all_ops(module, self._lowered))

    def _lowered(self, op: Op) -> list[Op] | None:
        if not isinstance(op, (Qcast, Dcast)):
            return None
        ops: list[Op] = []
        replace_result(self._value(op, ops), op.result)
        return ops

    def _value(self, op: Qcast | Dcast, ops: list[Op]) -> Value:
        if self.dialect == "tosa":
            return lowered(op, ops, self.rounding or "half_even")
        b = Emitter(ops)
        b.location = op.location
        return quantize(b, op, self.rounding or None) if isinstance(op, Qcast) else dequantize(b, op)
