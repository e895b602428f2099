"""AVG_POOL2D and MAX_POOL2D, and L2_POOL_2D: the root of the mean of squares.

TOSA's average of integers with zero points 0 is TFLite's: the mean of the elements inside, half away from zero
(`tflq.numerics.pooling` has the proof and its limit). uint8, here int8 less 128, averages with zero points of -128.
Sources: kernels/pooling.cc, internal/reference/pooling.h; TOSA 1.0 specification, AVG_POOL2D, MAX_POOL2D.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.tfl.pooling import AveragePool2D, L2Pool2D
from tflq.dialects.tfl.pooling import MaxPool2D as TflMaxPool2D
from tflq.dialects.tosa.pooling import AvgPool2D, MaxPool2D
from tflq.ir.core import Op, Value
from tflq.ir.types import Shape, TensorType, i8, i16
from tflq.numerics.pooling import average_is_exact
from tflq.tosa.lowering.floats.arithmetic import float_activation, need_float
from tflq.tosa.lowering.floats.quotient import reciprocal
from tflq.tosa.lowering.registry import Refused, Tosa, lowering
from tflq.tosa.lowering.window import fitted, same_or_valid

__all__: list[str] = []


@lowering(AvgPool2D, MaxPool2D)
def pool(op: AvgPool2D | MaxPool2D, t: Tosa) -> Value:
    a = op.attributes
    sizes = (op.result.type.shape or (None,) * 4)[1:3]
    return _pooled(op, t, t.value(op.input), op.name, a["kernel"], a["stride"], a["pad"], sizes)


@lowering(AveragePool2D, TflMaxPool2D)
def kernel_pool(op: AveragePool2D | TflMaxPool2D, t: Tosa) -> Value:
    """Of float32, or of plain integers without an activation."""
    a, x = op.attributes, op.input
    kernel, stride = (a["filter_height"], a["filter_width"]), (a["stride_h"], a["stride_w"])
    if x.type.storage.is_float:
        need_float(t, op.name.removeprefix("tfl.").upper())
    elif a["fused_activation_function"] != "NONE":
        raise Refused("an activation of integers without quantization parameters")
    pad, sizes = same_or_valid(t.value(x), kernel, stride, a["padding"])
    name = "tosa.max_pool2d" if isinstance(op, TflMaxPool2D) else "tosa.avg_pool2d"
    pooled = _pooled(op, t, t.value(x), name, kernel, stride, pad, sizes)
    return float_activation(t, pooled, a["fused_activation_function"])


@lowering(L2Pool2D)
def l2_pool(op: L2Pool2D, t: Tosa) -> Value:
    need_float(t, "L2_POOL_2D")
    a, x = op.attributes, t.value(op.input)
    kernel, stride = (a["filter_height"], a["filter_width"]), (a["stride_h"], a["stride_w"])
    pad, sizes = same_or_valid(x, kernel, stride, a["padding"])
    mean = _pooled(op, t, t.mul(x, x), "tosa.avg_pool2d", kernel, stride, pad, sizes)
    return float_activation(t, reciprocal(t, t.unary("rsqrt", mean)), a["fused_activation_function"])


def _pooled(
    op: Op,
    t: Tosa,
    x: Value,
    name: str,
    kernel: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    sizes: Sequence[int | None],
) -> Value:
    """The pool of what the windows read of x."""
    source = op.operand(0)
    if x.type.shape is None or len(x.type.shape) != 4:
        raise Refused("the rank is not known to be 4")
    storage = x.type.storage
    if storage == i16:
        t.need("int16", "pooling of int16")
    elif storage != i8 and not storage.is_float:
        raise Refused(f"TOSA does not pool {storage}")
    x, pad = fitted(t, x, kernel, stride, pad, sizes)
    shape: Shape = ((x.type.shape or ())[0], *sizes, (x.type.shape or ())[3])
    options: dict[str, object] = {"kernel": tuple(kernel), "stride": tuple(stride), "pad": tuple(pad)}
    if name == "tosa.avg_pool2d":
        zero_point = t.zero_point(source, op.attributes.get("input_zp", 0))
        if not storage.is_float and not average_is_exact(kernel, storage.minimum, storage.maximum, zero_point):
            raise Refused(f"the mean of {kernel[0]} x {kernel[1]} elements is not exact in TOSA")
        options["input_zp"], options["output_zp"] = (
            zero_point,
            t.zero_point(source, op.attributes.get("output_zp", 0)),
        )
    return t.emit(name, [x], TensorType(shape, storage), **options)
