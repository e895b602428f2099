"""Laws of elementwise operators (TOSA 1.0, sections 2.3 to 2.8): equal ranks, broadcasting; axes."""

from __future__ import annotations

from tflq.dialects.traits.types import Broadcasts, Elementwise
from tflq.ir.core import Op
from tflq.tosa.laws.registry import Context, Dims, Violations, dims, law, result_is, show

__all__ = ["axis_of", "broadcasting", "unary", "without"]


@law(Elementwise)
def unary(op: Op, _: Context) -> Violations:
    (value,) = op.operands
    assert value is not None
    yield from result_is(op, dims(value))


@law(Broadcasts)
def broadcasting(op: Op, _: Context) -> Violations:
    shapes = [dims(v) for v in op.operands if v is not None]
    listed = " and ".join(map(show, shapes))
    if len(set(map(len, shapes))) > 1:
        yield f"operands of unequal ranks: {listed}"
        return
    out: list[int | None] = []
    for column in zip(*shapes, strict=True):
        sizes = set(column) - {1, None}
        if len(sizes) > 1:
            yield f"operands {listed} do not broadcast"
            return
        out.append(sizes.pop() if sizes else None if None in column else 1)
    yield from result_is(op, tuple(out))


def without(shape: Dims, axis: int) -> Dims:
    """A shape less one dim."""
    return shape[:axis] + shape[axis + 1 :]


def axis_of(axis: int, rank: int) -> Violations:
    """An axis among the dims."""
    if not 0 <= axis < rank:
        yield f"axis {axis} of a tensor of rank {rank}"
