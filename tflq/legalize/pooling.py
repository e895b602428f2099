"""AVERAGE_POOL_2D, MAX_POOL_2D and REDUCE_WINDOW, windows of stored integers, whatever their parameters.

The range of a fused activation is that of the result's parameters. Source: kernels/pooling.cc, reduce_window.cc,
kernels/internal/reference/integer_ops/pooling.h, kernels/internal/reference/pooling.h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tflq.base import sized
from tflq.dialects.tfl import without_activation
from tflq.dialects.tfl.movement import StridedSlice
from tflq.dialects.tfl.pooling import AveragePool2D, MaxPool2D, ReduceWindow
from tflq.dialects.tosa import convolution as tosa
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.movement import COPIED, seen_by_kernel
from tflq.legalize.rule import FOLLOWS_PARAMETERS, Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.activation import bounds_undefined, real_range
from tflq.numerics.convolution import window

Combine = Callable[[RuleBuilder, Value, Value], Value]

COMBINE: Mapping[str, Combine] = {
    "ADD": RuleBuilder.add,
    "MUL": RuleBuilder.mul,
    "MINIMUM": RuleBuilder.minimum,
    "MAXIMUM": RuleBuilder.maximum,
}
_EXTREMES = ("MINIMUM", "MAXIMUM")
_REDUCED = "the kernel reduces the stored integers and ignores scales and zero points"
_UNLIMITED = "a bound of {} is outside of int32, which the kernel does not check: it uses whatever its memory holds"
_RAW = "the kernel pools the stored integers, though source and result have different quantization parameters"


@rule(AveragePool2D, MaxPool2D)
def pool(op: AveragePool2D | MaxPool2D, b: RuleBuilder) -> Answer:
    """result = clamp(mean or greatest stored integer of each window)."""
    x, result = op.input, op.output
    source, target = x.type.element, result.type.element
    storage = result.type.storage
    if x.type.storage != storage or storage not in (i8, ui8, i16):
        raise NotApplicable(f"no kernel pools {x.type.storage} to {storage}")
    if x.type.shape is None or len(x.type.shape) != 4:
        raise NotApplicable("the operand's rank is not known to be 4")
    activation, (low, high) = op.fused_activation_function, (storage.minimum, storage.maximum)
    if activation != "NONE":
        if not isinstance(target, UniformQuantizedType):
            raise NotApplicable(f"the range of {activation} is not defined on several scales")
        low, high = real_range(activation, low, high, target.scale, target.zero_point)
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    sizes = zip(x.type.shape[1:3], kernel, stride, strict=True)
    rows, columns = (window(size, k, s, 1, op.padding) for size, k, s in sizes)
    plain, out = b.value(x), result.type.stripped()
    if rows is None or columns is None:  # the padding is found when the model runs, by the kernel
        pooled = b.op(op.name, [plain], [out], without_activation(op)).result
    elif 0 in out.dims[1:3]:  # the window does not fit: a result without elements
        pooled = b.slice(plain, [0] * 4, [plain.type.dims[0], *out.dims[1:3], plain.type.dims[3]])
    else:
        pad = (rows.before, rows.after, columns.before, columns.after)
        attributes = {"kernel": kernel, "stride": stride, "pad": pad}
        if isinstance(op, AveragePool2D):
            pooled = b.emit(tosa.AvgPool2D, [plain], out, **attributes, input_zp=0, output_zp=0)
        else:
            pooled = b.emit(tosa.MaxPool2D, [plain], out, **attributes)
    warning, exception = _RAW if source != target and low < high else "", "disregarded"
    if isinstance(target, UniformQuantizedType) and bounds_undefined(activation, target.scale) and not b.real:
        warning, exception = "; ".join(w for w in (warning, _UNLIMITED.format(activation)) if w), "unsettled"
    return Rewritten([b.clamp(pooled, low, high)], warning=warning, exception=exception)


@rule(ReduceWindow)
def reduce_window(op: ReduceWindow, b: RuleBuilder) -> Answer:
    """result = the stored integers of each window, reduced."""
    x, init, result = op.input, op.init, op.result
    storage, function = result.type.storage, op.reduce_function
    numbers = [op.operand(i) for i in range(2, 5)]
    if x.type.storage != storage or storage not in (i8, ui8, i16, i32) or function not in COMBINE:
        raise NotApplicable(f"no form reduces {x.type.storage} to {storage} by {function}")
    if not x.type.is_static or not all(v.is_constant for v in numbers):
        raise NotApplicable(
            f"the shape of '{x.name}' or of the windows is not known", f"{_REDUCED}; {FOLLOWS_PARAMETERS}"
        )
    extreme = function in _EXTREMES
    wide = storage if extreme else i32
    y = b.cast(b.value(x), wide)
    windows = list(zip(*(v.array.reshape(-1).tolist() for v in numbers), strict=True))
    y = reduced(b, y, b.reshape(b.cast(b.value(init), wide), []), windows, COMBINE[function])
    same = extreme and len({v.type.element for v in (x, init, result)}) == 1 and seen_by_kernel(x) != (0.0, 0)
    return Rewritten([b.cast(y, storage)], warning="" if same else COPIED if extreme else _REDUCED)


def reduced(b: RuleBuilder, x: Value, start: Value, windows: Sequence[tuple[int, int, int]], combine: Combine) -> Value:
    """A scalar combined with the elements of each window: size, stride and dilation along each axis. An empty window
    leaves the scalar."""
    if any(size == 0 for size, _, _ in windows):
        shape = [_count(d or 0, *numbers) for d, numbers in zip(x.type.dims, windows, strict=True)]
        return b.cast(b.add(b.cast(start, i32), sized.zeros(shape, np.int32)), x.type.storage)
    for axis, numbers in enumerate(windows):
        x = over_windows(b, x, axis, *numbers, combine)
    return combine(b, start, x)


def _count(length: int, size: int, stride: int, dilation: int) -> int:
    """The number of windows along an axis."""
    return max((length - (size - 1) * dilation - 1) // stride + 1, 0)


def over_windows(b: RuleBuilder, x: Value, axis: int, size: int, stride: int, dilation: int, combine: Combine) -> Value:
    """Windows of a size, at least 1, along one axis, reduced."""
    count = _count(x.type.dims[axis] or 0, size, stride, dilation)
    if size == stride == 1:
        return x
    sized.need_few_parts(size)
    total = _strided(b, x, axis, 0, count, stride)
    for place in range(1, size):
        total = combine(b, total, _strided(b, x, axis, place * dilation, count, stride))
    return total


def _strided(b: RuleBuilder, x: Value, axis: int, start: int, count: int, stride: int) -> Value:
    """`count` elements along an axis, from a start on."""
    shape = x.type.sizes
    begin, end, strides = np.zeros(len(shape), np.int32), np.asarray(shape, np.int32), np.ones(len(shape), np.int32)
    start, last = min(start, i32.maximum), start + (count - 1) * stride + 1 if count else start
    begin[axis], end[axis], strides[axis] = start, min(last, i32.maximum), min(stride, i32.maximum)
    masks = {f"{mask}_mask": 0 for mask in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    operands = [x, *(b.constant(v) for v in (begin, end, strides))]
    type = TensorType((*shape[:axis], count, *shape[axis + 1 :]), x.type.element)
    return b.emit(StridedSlice, operands, type, **masks, offset=False)
