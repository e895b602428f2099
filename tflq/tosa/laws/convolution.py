"""Laws of convolutions (TOSA 1.0, section 2.2): shapes, exact division, zero points, level limits."""

from __future__ import annotations

from tflq.dialects.inference import Dims
from tflq.dialects.tosa.convolution import Conv2D, Conv3D, Convolution, DepthwiseConv2D, TransposeConv2D
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, of_rank, same, shape_is, zero_point
from tflq.tosa.laws.windows import Sizes

__all__: list[str] = []


def _channels(found: int | None, expected: int | None, what: str) -> Violations:
    if not same(found, expected):
        yield f"{found} {what}, where there are {expected}"


def _bias(op: Convolution, channels: int | None) -> Violations:
    bias = dims(op.bias)[0]
    if bias != 1:
        yield from _channels(bias, channels, "biases for the channels")


def _convolution(
    op: Conv2D | Conv3D | DepthwiseConv2D, c: Context, spatial: Dims, kernel: Dims
) -> tuple[Dims, list[str]]:
    """The result's spatial dims and what attributes and division violate."""
    pad, stride, dilation = op.pad, op.stride, op.dilation
    faults = [
        *bounds("a pad", pad, 0, c.limits.kernel),
        *bounds("a stride", stride, 1, c.limits.stride),
        *bounds("a dilation", dilation, 1, c.limits.kernel),
        *bounds("a dilated kernel", [d * k for d, k in zip(dilation, kernel, strict=True) if k], 1, c.limits.kernel),
        *zero_point(op, "input_zp", op.input),
        *zero_point(op, "weight_zp", op.weight),
    ]
    sizes = Sizes()
    for i, (size, k) in enumerate(zip(spatial, kernel, strict=True)):
        window = None if k is None else (k - 1) * dilation[i] + 1
        sizes.add(size, pad[2 * i : 2 * i + 2], window, stride[i])
    return tuple(sizes.out), faults + sizes.faults


@law(Conv2D, Conv3D)
def conv(op: Conv2D | Conv3D, c: Context) -> Violations:
    rank = 4 if isinstance(op, Conv2D) else 5
    if wrong := list(of_rank(op, rank, rank, 1)):
        yield from wrong
        return
    shape, weights = dims(op.input), dims(op.weight)
    spatial, faults = _convolution(op, c, shape[1:-1], weights[1:-1])
    yield from faults
    yield from _channels(weights[-1], shape[-1], "channels of the weights for those of the input")
    yield from _bias(op, weights[0])
    yield from shape_is(op, (shape[0], *spatial, weights[0]))


@law(DepthwiseConv2D)
def depthwise(op: DepthwiseConv2D, c: Context) -> Violations:
    if wrong := list(of_rank(op, 4, 4, 1)):
        yield from wrong
        return
    shape, weights = dims(op.input), dims(op.weight)
    spatial, faults = _convolution(op, c, shape[1:3], weights[:2])
    yield from faults
    yield from _channels(weights[2], shape[3], "channels of the weights for those of the input")
    made = None if weights[2] is None or weights[3] is None else weights[2] * weights[3]
    yield from _bias(op, made)
    yield from shape_is(op, (shape[0], *spatial, made))


@law(TransposeConv2D)
def transpose_conv2d(op: TransposeConv2D, c: Context) -> Violations:
    if wrong := list(of_rank(op, 4, 4, 1)):
        yield from wrong
        return
    shape, weights = dims(op.input), dims(op.weight)
    pad, stride = op.out_pad, op.stride
    yield from bounds("an out_pad", pad, None, c.limits.kernel)
    yield from bounds("a stride", stride, 1, c.limits.stride)
    yield from zero_point(op, "input_zp", op.input)
    yield from zero_point(op, "weight_zp", op.weight)
    spatial: list[int | None] = []
    for i in range(2):
        size, kernel, ends = shape[1 + i], weights[1 + i], pad[2 * i : 2 * i + 2]
        if kernel is not None:
            yield from bounds("an out_pad", ends, 1 - kernel)
            yield from bounds("a kernel", [kernel], 1, c.limits.kernel)
        known = size is not None and kernel is not None
        spatial.append((size - 1) * stride[i] + sum(ends) + kernel if known else None)  # type: ignore[operator]
    yield from _channels(weights[3], shape[3], "channels of the weights for those of the input")
    yield from _bias(op, weights[0])
    yield from shape_is(op, (shape[0], *spatial, weights[0]))
