"""Laws of convolutions (TOSA 1.0, section 2.2): biases, exact division, zero points, level limits."""

from __future__ import annotations

from tflq.dialects.inference import product
from tflq.dialects.tosa.convolution import Conv2D, Conv3D, Convolution, DepthwiseConv2D, TransposeConv2D
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, of_rank, result_is, same, zero_point
from tflq.tosa.laws.windows import divides

__all__: list[str] = []


def _common(op: Convolution, channels: int | None) -> Violations:
    """What all of them are held to: zero points, and a bias for each channel of the result or one for all."""
    yield from zero_point(op, "input_zp", op.input)
    yield from zero_point(op, "weight_zp", op.weight)
    yield from result_is(op)
    bias = dims(op.bias)[0]
    if bias != 1 and not same(bias, channels):
        yield f"{bias} biases for the channels, where there are {channels}"


@law(Conv2D, Conv3D, DepthwiseConv2D)
def conv(op: Conv2D | Conv3D | DepthwiseConv2D, c: Context) -> Violations:
    rank = len(op.stride) + 2
    if wrong := list(of_rank(op, rank, rank, 1)):
        yield from wrong
        return
    pad, stride, dilation, weight = op.pad, op.stride, op.dilation, dims(op.weight)
    depthwise = isinstance(op, DepthwiseConv2D)
    kernel = weight[:2] if depthwise else weight[1:-1]
    reach = [None if k is None else (k - 1) * d + 1 for d, k in zip(dilation, kernel, strict=True)]
    dilated = [d * k for d, k in zip(dilation, kernel, strict=True) if k]
    yield from bounds("a pad", pad, 0, c.limits.kernel)
    yield from bounds("a stride", stride, 1, c.limits.stride)
    yield from bounds("a dilation", dilation, 1, c.limits.kernel)
    yield from bounds("a dilated kernel", dilated, 1, c.limits.kernel)
    yield from divides(dims(op.input)[1:-1], pad, reach, stride)
    yield from _common(op, product(weight[2:]) if depthwise else weight[0])


@law(TransposeConv2D)
def transpose_conv2d(op: TransposeConv2D, c: Context) -> Violations:
    if wrong := list(of_rank(op, 4, 4, 1)):
        yield from wrong
        return
    yield from bounds("an out_pad", op.out_pad, None, c.limits.kernel)
    yield from bounds("a stride", op.stride, 1, c.limits.stride)
    for i, kernel in enumerate(dims(op.weight)[1:3]):
        if kernel is not None:
            yield from bounds("an out_pad", op.out_pad[2 * i : 2 * i + 2], 1 - kernel)
            yield from bounds("a kernel", [kernel], 1, c.limits.kernel)
    yield from _common(op, dims(op.weight)[0])
