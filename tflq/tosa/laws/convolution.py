"""Laws of what slides a window or multiplies (TOSA 1.0, sections 2.2 and 2.10.1): biases, exact division, zero points,
limits of the level."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.inference import product, text
from tflq.dialects.tosa.convolution import (
    AvgPool2D,
    Conv2D,
    Conv3D,
    Convolution,
    DepthwiseConv2D,
    MatMul,
    Pool,
    TransposeConv2D,
)
from tflq.dialects.tosa.movement import Resize
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, same, zero_point

_LARGEST_IMAGE = 16384
_LARGEST_NUMERATOR = 1 << 11


@law(MatMul)
def matmul(op: MatMul, _: Context) -> Violations:
    for value in (op.input1, op.input2):
        if len(dims(value)) != 3:
            yield f"operand '{value.name}' {text(dims(value))} is not of rank 3"
            return
    a, b = dims(op.input1), dims(op.input2)
    yield from zero_point(op, "a_zp", op.input1)
    yield from zero_point(op, "b_zp", op.input2)
    if not all(same(x[0], y[0]) for x, y in ((a, b), (a, dims(op.output)), (b, dims(op.output)))):
        yield f"batches of {a[0]} and {b[0]}"


@law(Resize)
def resize(op: Resize, c: Context) -> Violations:
    shape, found = dims(op.input), dims(op.result)
    numerators, denominators = op.scale[::2], op.scale[1::2]
    yield from bounds("a scale", op.scale, 1)
    yield from bounds("a scale's numerator", numerators, None, _LARGEST_NUMERATOR)
    for i, axis in enumerate("yx"):
        n, d = numerators[i], denominators[i]
        offset, border = op.offset[i], op.border[i]
        if n < 1 or d < 1:
            return
        if d >= 16 * n:
            yield f"the scale {n}/{d} of {axis} is not greater than 1/16"
        if n // d > c.limits.scale:
            yield f"the scale {n}/{d} of {axis} is greater than the level's {c.limits.scale}"
        yield from bounds(f"an offset of {axis}", [offset], -n, 16 * n - 1)
        yield from bounds(f"a border of {axis}", [border], -16 * n, n - 1)
        size = shape[1 + i]
        if size is None:
            continue
        if ((size - 1) * n - offset + border) % d:
            yield f"((size - 1) * {n} - {offset} + {border}) of {axis}, size {size}, is not divisible by {d}"
            return
    sizes = [d for d in (*shape[1:3], *found[1:3]) if d is not None]
    yield from bounds("a height or width", sizes, None, _LARGEST_IMAGE - 1)
    taken, made = op.input.type.storage, op.result.type.storage
    if taken.is_integer and (taken == made) != (op.mode == "NEAREST_NEIGHBOR"):
        yield f"{op.mode} from {taken} to {made}, {text(shape)}"


def divides(
    sizes: Sequence[int | None], pads: Sequence[int], windows: Sequence[int | None], strides: Sequence[int]
) -> Violations:
    """Windows use up what they slide over: size + pads - window is a multiple of the stride in each spatial dim.
    `pads`: before and after the first dim, then the next."""
    for i, (size, window, stride) in enumerate(zip(sizes, windows, strides, strict=True)):
        added = sum(pads[2 * i : 2 * i + 2])
        if size is not None and window is not None and stride >= 1 and (size + added - window) % stride:
            yield f"{size} + {added} of padding - a window of {window} is not divisible by {stride}"


def _common(op: Convolution, channels: int | None) -> Violations:
    """What holds for all convolutions: zero points, and a bias for each channel of the result or one for all."""
    yield from zero_point(op, "input_zp", op.input)
    yield from zero_point(op, "weight_zp", op.weight)
    bias = dims(op.bias)
    if len(bias) != 1:
        yield f"operand '{op.bias.name}' {text(bias)} is not of rank 1"
    elif bias != (1,) and not same(bias[0], channels):
        yield f"{bias[0]} biases for the channels, where there are {channels}"


@law(Conv2D, Conv3D, DepthwiseConv2D)
def conv(op: Conv2D | Conv3D | DepthwiseConv2D, c: Context) -> Violations:
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
    yield from bounds("an out_pad", op.out_pad, None, c.limits.kernel)
    yield from bounds("a stride", op.stride, 1, c.limits.stride)
    for i, kernel in enumerate(dims(op.weight)[1:3]):
        if kernel is not None:
            yield from bounds("an out_pad", op.out_pad[2 * i : 2 * i + 2], 1 - kernel)
            yield from bounds("a kernel", [kernel], 1, c.limits.kernel)
    yield from _common(op, dims(op.weight)[0])


@law(Pool)
def pool(op: Pool, c: Context) -> Violations:
    kernel, pad = op.kernel, op.pad
    yield from bounds("a kernel", kernel, 1, c.limits.kernel)
    yield from bounds("a stride", op.stride, 1, c.limits.stride)
    yield from bounds("a pad", pad, 0, c.limits.kernel)
    for size, *ends in zip(kernel, pad[::2], pad[1::2], strict=True):
        if max(ends) >= size:
            yield f"a pad of {max(ends)} is not smaller than the kernel's {size}"
    yield from divides(dims(op.input)[1:3], pad, kernel, op.stride)
    if isinstance(op, AvgPool2D):
        yield from zero_point(op, "input_zp", op.input)
        yield from zero_point(op, "output_zp", op.result)
