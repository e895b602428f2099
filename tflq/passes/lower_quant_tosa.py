"""Quantization casts as ops of `tosa` on the stored integers, and the pass `lower-quant-ops`.

    qcast(x) = scast(cast(clamp(round(x / scale) + zero_point, storage_min, storage_max)))
    dcast(q) = (cast(scast(q)) - zero_point) * scale

The order is TFLite's (kernels/internal/reference/quantize.h and dequantize.h): the zero point is added after rounding,
and the clamp comes before the cast, so that what is out of range saturates. If the expressed type does not hold the
storage type's bound (i32 in f32), the clamp is to the next value inside.

Scales and zero points are constants that broadcast, of the rank of what is computed on, as TOSA asks; the shift of
`tosa.mul` is an operand, as in its text. What TOSA lacks is taken from MLIR's other dialects: the division of floats
(`arith`, along an axis in a `linalg.generic`) and roundings (`math`). The four cases of the dialect's specification
differ only in the shape that is computed on: a ranked tensor as it is; a scalar as a tensor of rank 0; an unranked
tensor flattened to one dim (per-layer) or to three around the channel (per-axis); sub-channel with each blocked dim
split in two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tflq.builder import Builder, Emitter
from tflq.contract import Pass, PassResult
from tflq.dialects.core_numbers import DivF, Floor, FPToSI, FPToUI, SIToFP, UIToFP
from tflq.dialects.core_tensors import (
    CollapseShape,
    ExpandShape,
    Extract,
    FromElements,
    NumElements,
    Reshape,
    ShapeOf,
    SplitAt,
)
from tflq.dialects.declare import Operator
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.tosa.elementwise import Add, GreaterEqual, Maximum, Minimum, Mul, Sub
from tflq.errors import Reason, UnsupportedError
from tflq.ir.attributes import AffineMap, TypedArray
from tflq.ir.core import Module, Op, Value
from tflq.ir.rewriting import stand_for
from tflq.ir.types import (
    BareType,
    QuantizedType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
    signless,
)
from tflq.passes.lower_quant_core import (
    INDEX,
    MATH,
    bounds,
    dense,
    dequantize,
    generic,
    open_dims,
    quantize,
    scalar,
    splat,
    uniform,
)

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
    stored = _rounded(b, _divided(b, work.value, scale), op.rounding or rounding)
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


def _rounded(b: Builder, x: Value, rounding: str) -> Value:
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
    rank = len(x.type.shape or ())
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
    factor = b.constant(_of_rank(scale, len(value.type.shape or ())), real.storage)
    product = b.emit(Mul, [value, factor, b.constant(np.zeros(1), i8)], value.type)
    return work.restore(product, op.result.type)


def _elementwise(
    b: Builder, kind: type[Operator], x: Value, parameter: np.ndarray, to: ScalarType | None = None
) -> Value:
    """An op on `x` and a constant of its rank that broadcasts to its shape."""
    element = x.type.element
    assert isinstance(element, ScalarType)
    with np.errstate(over="ignore"):  # a zero point that f16 does not hold
        full = _of_rank(parameter, len(x.type.shape or ())).astype(element.dtype)
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
        view = (-1, *([1] * (len(work.value.type.shape or ()) - 1 - work.channel)))
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
    for axis, dim in enumerate(x.type.shape or ()):
        parts = [(dim or 0) // sizes[axis], sizes[axis]] if axis in sizes else [dim or 0]
        groups.append(list(range(len(dims), len(dims) + len(parts))))
        dims += parts
    stated = {"reassociation": groups, "static_output_shape": TypedArray.of(np.array(dims, np.int64), i64)}
    split = b.emit(ExpandShape, [x], TensorType(tuple(dims), x.type.element), **stated)
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
        modified = False
        for function in module.functions:
            ops = self._ops(function.ops)
            modified |= ops is not function.ops
            function.ops = ops
        return PassResult(module, modified)

    def _ops(self, ops: list[Op]) -> list[Op]:
        """The ops with their casts lowered; the same list if there are none."""
        kept: list[Op] = []
        changed = False
        for op in ops:
            if isinstance(op, (Qcast, Dcast)):
                stand_for(self._lowered(op, kept), op.result)
                changed = True
                continue
            for region in op.regions:
                for block in region.blocks:
                    inside = self._ops(block.ops)
                    changed |= inside is not block.ops
                    block.ops = inside
            kept.append(op)
        return kept if changed else ops

    def _lowered(self, op: Qcast | Dcast, ops: list[Op]) -> Value:
        if self.dialect == "tosa":
            return lowered(op, ops, self.rounding or "half_even")
        b = Emitter(ops)
        b.location = op.location
        return quantize(b, op, self.rounding or None) if isinstance(op, Qcast) else dequantize(b, op)
