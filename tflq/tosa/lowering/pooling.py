"""AVG_POOL2D and MAX_POOL2D, and L2_POOL_2D: the root of the mean of squares.

TOSA's average of integers with zero points 0 is TFLite's: the mean of the elements inside, half away from zero
(`tflq.numerics.pooling` has the proof and its limit). uint8, here int8 less 128, averages with zero points of -128.
Sources: kernels/pooling.cc, internal/reference/pooling.h; TOSA 1.0 specification, AVG_POOL2D, MAX_POOL2D.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.tfl.pooling import AveragePool2D, L2Pool2D
from tflq.dialects.tfl.pooling import MaxPool2D as TflMaxPool2D
from tflq.dialects.tosa.activation import Rsqrt
from tflq.dialects.tosa.pooling import AvgPool2D, MaxPool2D
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import Shape, TensorType, i8, i16
from tflq.numerics.pooling import average_is_exact
from tflq.tosa.lowering.floats.arithmetic import float_activation, need_float
from tflq.tosa.lowering.floats.quotient import reciprocal
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.windows import fitted, same_or_valid

__all__: list[str] = []

_Pool = AvgPool2D | MaxPool2D


@lowering(AvgPool2D, MaxPool2D)
def pool(op: AvgPool2D | MaxPool2D, t: Tosa) -> Value:
    sizes = (op.result.type.shape or (None,) * 4)[1:3]
    zero_points = (op.input_zp, op.output_zp) if isinstance(op, AvgPool2D) else (0, 0)
    return _pooled(op, t, t.value(op.input), type(op), op.kernel, op.stride, op.pad, sizes, zero_points)


@lowering(AveragePool2D, TflMaxPool2D)
def kernel_pool(op: AveragePool2D | TflMaxPool2D, t: Tosa) -> Value:
    """Of float32, or of plain integers without an activation."""
    x = t.value(op.input)
    if op.input.type.storage.is_float:
        need_float(t, op)
    elif op.fused_activation_function != "NONE":
        raise Refused("an activation of integers without quantization parameters")
    return _windowed(op, t, x, MaxPool2D if isinstance(op, TflMaxPool2D) else AvgPool2D)


@lowering(L2Pool2D)
def l2_pool(op: L2Pool2D, t: Tosa) -> Value:
    need_float(t, op)
    x = t.value(op.input)
    mean = _windowed(op, t, t.mul(x, x), AvgPool2D, activation="NONE")
    return float_activation(t, reciprocal(t, t.emit(Rsqrt, [mean])), op.fused_activation_function)


def _windowed(
    op: AveragePool2D | TflMaxPool2D | L2Pool2D, t: Tosa, x: Value, kind: type[_Pool], *, activation: str | None = None
) -> Value:
    """The pool of x by the operator's windows, and its activation, or another one."""
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    pad, sizes = same_or_valid(x, kernel, stride, op.padding)
    pooled = _pooled(op, t, x, kind, kernel, stride, pad, sizes)
    return float_activation(t, pooled, op.fused_activation_function if activation is None else activation)


def _pooled(
    op: _Pool | AveragePool2D | TflMaxPool2D | L2Pool2D,
    t: Tosa,
    x: Value,
    kind: type[_Pool],
    kernel: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    sizes: Sequence[int | None],
    zero_points: tuple[int, int] = (0, 0),
) -> Value:
    """The pool of what the windows read of x."""
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
    if kind is AvgPool2D:
        taken, made = (t.zero_point(op.input, zero_point) for zero_point in zero_points)
        if not storage.is_float and not average_is_exact(kernel, storage.minimum, storage.maximum, taken):
            raise Refused(f"the mean of {kernel[0]} x {kernel[1]} elements is not exact in TOSA")
        options |= {"input_zp": taken, "output_zp": made}
    return t.emit(kind, [x], TensorType(shape, storage), **options)
