"""Laws of MUL and NEGATE beyond those of elementwise operators (TOSA 1.0, section 2.4)."""

from __future__ import annotations

from tflq.dialects.tosa.arithmetic import Mul, Negate
from tflq.tosa.laws.generic import broadcasting
from tflq.tosa.laws.registry import Context, Violations, bounds, law, result_is, zero_point

__all__: list[str] = []


@law(Mul)
def mul(op: Mul, c: Context) -> Violations:
    yield from broadcasting(op, c)
    yield from bounds("shift", [op.shift], 0, 63 if op.input1.type.storage.name == "i32" else 0)


@law(Negate)
def negate(op: Negate, _: Context) -> Violations:
    yield from result_is(op)
    yield from zero_point(op, "input1_zp", op.input1)
    yield from zero_point(op, "output_zp", op.result)
