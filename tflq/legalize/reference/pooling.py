"""AVERAGE_POOL_2D and MAX_POOL_2D: of stored integers, whatever their parameters, then the activation's clamp.

The range of the activation is that of the result's parameters. Source: kernels/pooling.cc,
kernels/internal/reference/integer_ops/pooling.h, kernels/internal/reference/pooling.h.
"""

from __future__ import annotations

from tflq.dialects.tfl.pooling import AveragePool2D, MaxPool2D
from tflq.dialects.tosa import pooling as tosa
from tflq.ir.types import UniformQuantizedType, i8, i16, ui8
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder
from tflq.numerics.activation import bounds_undefined, real_range
from tflq.numerics.convolution import window

__all__: list[str] = []

_UNLIMITED = "a bound of {} leaves int32, which the kernel disregards: what it reads instead is left over in memory"
_RAW = "the result has other quantization parameters than its source: the kernel pools the integers as they are"


def pool(op: AveragePool2D | MaxPool2D, b: RuleBuilder) -> Answer:
    """result = clamp(mean or greatest stored integer of each window)."""
    x, result = op.input, op.output
    source, target = x.type.element, result.type.element
    storage = result.type.storage
    if x.type.storage != storage or storage not in (i8, ui8, i16):
        return NotApplicable(f"no kernel pools {x.type.storage} to {storage}")
    if x.type.shape is None or len(x.type.shape) != 4:
        return NotApplicable("the operand's rank is not known to be 4")
    activation, (low, high) = op.fused_activation_function, (storage.minimum, storage.maximum)
    if activation != "NONE":
        if not isinstance(target, UniformQuantizedType):
            return NotApplicable(f"the range of {activation} is not defined on several scales")
        low, high = real_range(activation, low, high, target.scale, target.zero_point)
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    sizes = zip(x.type.shape[1:3], kernel, stride, strict=True)
    rows, columns = (window(size, k, s, 1, op.padding) for size, k, s in sizes)
    plain, out = b.value(x), result.type.stripped()
    if rows is None or columns is None:  # the padding is found when the model runs, by the kernel
        pooled = b.op(op.name, [plain], [out], {**op.attributes, "fused_activation_function": "NONE"}).result
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
