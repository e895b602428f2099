"""Law of MATMUL (TOSA 1.0, section 2.2)."""

from __future__ import annotations

from tflq.dialects.tosa.matmul import MatMul
from tflq.tosa.laws.registry import Context, Violations, dims, law, of_rank, result_is, same, zero_point

__all__: list[str] = []


@law(MatMul)
def matmul(op: MatMul, _: Context) -> Violations:
    if wrong := list(of_rank(op, 3, 3)):
        yield from wrong
        return
    a, b = dims(op.input1), dims(op.input2)
    yield from zero_point(op, "a_zp", op.input1)
    yield from zero_point(op, "b_zp", op.input2)
    if not all(same(x[0], y[0]) for x, y in ((a, b), (a, dims(op.output)), (b, dims(op.output)))):
        yield f"batches of {a[0]} and {b[0]}"
    yield from result_is(op)
