"""Laws of AVG_POOL2D and MAX_POOL2D (TOSA 1.0, section 2.2): exact division, zero points, level limits."""

from __future__ import annotations

from tflq.dialects.tosa.pooling import AvgPool2D, Pool
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, of_rank, result_is, zero_point
from tflq.tosa.laws.windows import divides

__all__: list[str] = []


@law(Pool)
def pool(op: Pool, c: Context) -> Violations:
    if wrong := list(of_rank(op, 4)):
        yield from wrong
        return
    kernel, pad = op.kernel, op.pad
    yield from bounds("a kernel", kernel, 1, c.limits.kernel)
    yield from bounds("a stride", op.stride, 1, c.limits.stride)
    yield from bounds("a pad", pad, 0, c.limits.kernel)
    for size, *ends in zip(kernel, pad[::2], pad[1::2], strict=True):
        if max(ends) >= size:
            yield f"a pad of {max(ends)} is not smaller than the kernel's {size}"
    yield from divides(dims(op.input)[1:3], pad, kernel, op.stride)
    yield from result_is(op)
    if isinstance(op, AvgPool2D):
        yield from zero_point(op, "input_zp", op.input)
        yield from zero_point(op, "output_zp", op.result)
