"""linalg.generic: its body on whole arrays along the parallel iterators, in order along those of reductions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.linalg.generic import Generic
from tflq.evaluate.core.bodies import Body
from tflq.evaluate.registry import Run, running
from tflq.ir.affine import applied, dim_of

__all__: list[str] = []


@running(Generic)
def _generic(op: Generic, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    sizes, kinds = _sizes(op, arrays), op.iterators or ()
    reduced = [axis for axis, kind in enumerate(kinds) if kind != "parallel"]
    shape = tuple(1 if axis in reduced else size for axis, size in enumerate(sizes))
    inputs, outs = arrays[: len(op.inputs)], [np.array(a) for a in arrays[len(op.inputs) :]]
    body = Body(op, run)
    for point in np.ndindex(*(sizes[axis] for axis in reduced)):
        places = _places(shape, dict(zip(reduced, point, strict=True)))
        maps = [tuple(_grid(p, shape) for p in applied(where, places)) for where in op.indexing_maps]
        given = [a[where] for a, where in zip((*inputs, *outs), maps, strict=True)]
        for out, where, made in zip(outs, maps[len(inputs) :], body.of(given, shape, places), strict=True):
            out[where] = np.broadcast_to(made, shape) if where else np.broadcast_to(made, shape).reshape(-1)[-1]
    return outs


def _sizes(op: Generic, arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    """The sizes of the iteration space, from the operands of which a dim is one of its. NotImplementedError if there is
    none for one."""
    known: dict[int, int] = {}
    for where, array in zip(op.indexing_maps, arrays, strict=True):
        for result, size in enumerate(array.shape):
            dim = dim_of(where, result)
            if dim is not None and known.setdefault(dim, size) != size:
                raise ValueError(f"dim {dim} of linalg.generic is {known[dim]} by one operand, and {size} by another")
    count = len(op.iterators or ())
    if len(known) < count:
        raise NotImplementedError("linalg.generic with a dim that is no operand's own has no evaluator")
    return tuple(known[dim] for dim in range(count))


def _places(shape: tuple[int, ...], fixed: dict[int, int]) -> list[np.ndarray]:
    """The place along each iterator, of every point: arrays that broadcast to the shape."""
    rank = len(shape)
    return [
        np.full((1,) * rank, fixed[axis])
        if axis in fixed
        else np.arange(size).reshape([-1 if i == axis else 1 for i in range(rank)])
        for axis, size in enumerate(shape)
    ]


def _grid(place: np.ndarray | int, shape: tuple[int, ...]) -> np.ndarray:
    """Places for every point."""
    return np.broadcast_to(place, shape)
