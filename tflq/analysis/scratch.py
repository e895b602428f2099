"""The scratch memory that kernels ask the memory planner for, beside their operands and results.

Sizes are those of the optimized kernels with one thread and without delegate. Source: `Prepare` in tflite/kernels/
conv.cc, depthwise_conv.cc, conv3d.cc, transpose_conv.cc, batch_matmul.cc, fully_connected.cc, reduce.cc, add_n.cc and
svdf.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from tflq.dialects.declare import Operator
from tflq.dialects.tfl.arithmetic import AddN
from tflq.dialects.tfl.control import Custom
from tflq.dialects.tfl.convolution import Conv2D, Conv3D, Conv3DTranspose, DepthwiseConv2D, TransposeConv
from tflq.dialects.tfl.matmul import BatchMatMul, FullyConnected
from tflq.dialects.tfl.reduction import Mean, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, Sum
from tflq.dialects.traits.effects import Recurrent
from tflq.ir.core import Op, Value
from tflq.ir.registry import family
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, f32, i4, i8, i16, i32, i64, ui8
from tflq.light import dataclass

__all__ = ["Scratch", "bytes_of", "scratch_of"]

_MOST_IM2COL: Final = 1 << 30
"""A window matrix of so many bytes or more is not made (kMaxIm2colBufferSizeMobile)."""
_FILTER_WIDTH, _FILTER_DEPTH = 4, 32
"""From so many units and inputs on, int4 weights have a kernel whose scratch depends on the machine."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """Bytes of each tensor: `shared` ones live while the operator runs, `kept` ones as long as the interpreter."""

    shared: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()


_NONE: Final = Scratch()


def bytes_of(value: Value) -> int:
    """Bytes of a tensor as the file states its shape: an open dim is 1."""
    return _sized(value.type.shape or (), value.type.storage)


def scratch_of(op: Op) -> Scratch | None:
    """What an operator's kernel asks for; None if that is not known here."""
    size = _SIZES.get(type(op))
    if size is not None:
        return size(op)
    if isinstance(op, Operator) and op.has(Recurrent):
        return _recurrent(op)
    unknown = isinstance(op, (Custom, Conv3DTranspose)) or (family(op.name) == "signal" and _is_spectrum(op))
    return None if unknown else _NONE


def _dims(value: Value) -> tuple[int, ...]:
    return tuple(1 if dim is None else dim for dim in value.type.shape or ())


@lru_cache(maxsize=1024)
def _sized(dims: tuple[int | None, ...], element: ScalarType) -> int:
    bits = max(element.bits, 8) if element.bits == 1 else element.bits
    return -(-math.prod(1 if dim is None else dim for dim in dims) * bits // 8)


def _conv_2d(op: Conv2D) -> Scratch:
    (batch, height, width, channels), (_, *window), output = _dims(op.input), _dims(op.filter), _dims(op.output)
    element, weights = op.input.type.storage, op.filter.type.storage
    hybrid = element == f32 and weights in (i8, ui8, i4)
    strides = (op.stride_h, op.stride_w, op.dilation_h_factor, op.dilation_w_factor)
    shared: list[int] = []
    if max(*strides, *window[:2]) != 1:
        columns = _sized((*output[:3], *window), i8 if hybrid else element)
        if columns < _MOST_IM2COL or hybrid:
            shared.append(columns)
    if not hybrid:
        return Scratch(tuple(shared))
    rows = batch * height * width * (channels // window[2] if window[2] else 1)
    shared += [math.prod(_dims(op.input)), 4 * rows, 4 * math.prod(output)]
    if not isinstance(op.filter.type.element, UniformQuantizedPerAxisType):
        return Scratch(tuple(shared))
    return Scratch((*shared, 4 * rows), (4 * output[3],))


def _depthwise(op: DepthwiseConv2D) -> Scratch:
    if op.input.type.storage != f32 or op.filter.type.storage != i8:
        return Scratch()
    dims = _dims(op.input)
    return Scratch((math.prod(dims), 4 * dims[0], 4 * dims[0]))


def _conv_3d(op: Conv3D) -> Scratch:
    window, output = _dims(op.filter)[:4], _dims(op.output)
    strides = (op.stride_d, op.stride_h, op.stride_w, op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor)
    if max(*strides, *window[:3]) == 1:
        return Scratch()
    return Scratch((_sized((*output[:4], math.prod(window)), op.input.type.storage),))


def _transposed(op: TransposeConv) -> Scratch | None:
    (_, height, width, _), weights = _dims(op.input), _dims(op.filter)
    element = op.input.type.storage
    if element == f32 and op.filter.type.storage == i8:
        return None
    kept = [4 * height * width * math.prod(weights[:3]), bytes_of(op.filter)]
    if element != f32:
        bias = op.bias.type.storage if op.bias is not None else i64
        kept.append(_sized(_dims(op.output), bias if element == i16 else i32))
    return Scratch((), tuple(kept))


def _batch_matmul(op: BatchMatMul) -> Scratch:
    left, right = bytes_of(op.lhs), bytes_of(op.rhs)
    shared, kept = ([left], [right]) if op.rhs.is_constant else ([left, right], [])
    if op.lhs.type.storage == f32 and op.rhs.type.storage == i8:
        lhs, rhs = _dims(op.lhs), _dims(op.rhs)
        rows, units = lhs[-1] if op.adj_x else lhs[-2], rhs[-2] if op.adj_y else rhs[-1]
        factors = 4 * math.prod(lhs[:-2]) * rows
        shared += [math.prod(lhs), factors, 4 * units * rows, factors]
        kept.append(4 * math.prod(rhs[:-2]) * units)
    return Scratch(tuple(shared), tuple(kept))


def _fully_connected(op: FullyConnected) -> Scratch | None:
    weights = op.weights.type.storage
    if op.input.type.storage != f32 or weights == f32:
        return Scratch()
    units, depth = _dims(op.weights)
    if op.weights.info.get("sparsity") or (weights == i4 and units >= _FILTER_WIDTH and depth >= _FILTER_DEPTH):
        return None
    elements = math.prod(_dims(op.input))
    batch = elements // depth if depth else 0
    return Scratch((elements, 4 * batch, 4 * units * batch, 4 * batch), (4 * units,))


def _reduced(op: Any) -> Scratch:
    axes = 4 * math.prod(_dims(op.operand(1)))
    return Scratch((4 * len(_dims(op.operand(0))), axes))


def _summed(op: Any) -> Scratch:
    element, count = op.operand(0).type.storage, math.prod(_dims(op.result))
    wide = 8 if element in (i32, i64) else 4
    return Scratch((*_reduced(op).shared, wide * count))


def _recurrent(op: Op) -> Scratch | None:
    from tflq.dialects.tfl.recurrent import SVDF

    if not isinstance(op, SVDF) or op.input.type.storage != i8:
        return None
    batch, filters, units = _dims(op.input)[0], _dims(op.feature)[0], _dims(op.output)[-1]
    return Scratch((4 * batch * filters, 4 * batch * units))


def _is_spectrum(op: Op) -> bool:
    from tflq.dialects.tfl.signal import RFFT2D

    return isinstance(op, RFFT2D)


def _add_n(op: AddN) -> Scratch:
    return Scratch((bytes_of(op.operand(0)),))


_SIZES: Final[dict[type[Op], Callable[[Any], Scratch | None]]] = {
    Conv2D: _conv_2d,
    DepthwiseConv2D: _depthwise,
    Conv3D: _conv_3d,
    TransposeConv: _transposed,
    BatchMatMul: _batch_matmul,
    FullyConnected: _fully_connected,
    Mean: _summed,
    Sum: _summed,
    ReduceProd: _summed,
    **dict.fromkeys((ReduceMax, ReduceMin, ReduceAny, ReduceAll), _reduced),
    AddN: _add_n,
}
