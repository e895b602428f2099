"""Laws of AVG_POOL2D and MAX_POOL2D (TOSA 1.0, section 2.2): shapes, exact division, zero points, level limits."""

from __future__ import annotations

from tflq.dialects.tosa.pooling import AvgPool2D, MaxPool2D
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, of_rank, shape_is, zero_point
from tflq.tosa.laws.windows import Sizes

__all__: list[str] = []


@law(AvgPool2D, MaxPool2D)
def pool(op: AvgPool2D | MaxPool2D, c: Context) -> Violations:
    if wrong := list(of_rank(op, 4)):
        yield from wrong
        return
    shape = dims(op.input)
    kernel, stride, pad = op.kernel, op.stride, op.pad
    yield from bounds("a kernel", kernel, 1, c.limits.kernel)
    yield from bounds("a stride", stride, 1, c.limits.stride)
    yield from bounds("a pad", pad, 0, c.limits.kernel)
    sizes = Sizes()
    for i in range(2):
        ends = pad[2 * i : 2 * i + 2]
        if max(ends) >= kernel[i]:
            yield f"a pad of {max(ends)} is not smaller than the kernel's {kernel[i]}"
        sizes.add(shape[1 + i], ends, kernel[i], stride[i])
    yield from sizes.faults
    yield from shape_is(op, (shape[0], *sizes.out, shape[3]))
    if isinstance(op, AvgPool2D):
        yield from zero_point(op, "input_zp", op.input)
        yield from zero_point(op, "output_zp", op.result)
