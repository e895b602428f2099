"""Law of MATMUL (TOSA 1.0, section 2.2)."""

from __future__ import annotations

from tflq.dialects.tosa.matmul import MatMul
from tflq.tosa.laws.registry import Context, Violations, dims, law, of_rank, same, shape_is, zero_point

__all__: list[str] = []


@law(MatMul)
def matmul(op: MatMul, _: Context) -> Violations:
    if wrong := list(of_rank(op, 3, 3)):
        yield from wrong
        return
    a, b = dims(op.input1), dims(op.input2)
    yield from zero_point(op, "a_zp", op.input1)
    yield from zero_point(op, "b_zp", op.input2)
    if not same(a[0], b[0]):
        yield f"batches of {a[0]} and {b[0]}"
    if not same(a[2], b[1]):
        yield f"{a[2]} columns times {b[1]} rows"
    yield from shape_is(op, (b[0] if a[0] is None else a[0], a[1], b[2]))
