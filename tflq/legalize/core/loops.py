"""linalg.generic along parallel iterators: its body on whole tensors, each operand with its dims where the iterators
are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.linalg.generic import Generic, Index
from tflq.dialects.tfl.movement import BroadcastTo
from tflq.errors import Refused
from tflq.evaluate import held_array
from tflq.ir.affine import applied, dim_of
from tflq.ir.attributes import AffineMap
from tflq.ir.core import Op, Value
from tflq.ir.types import Shape, TensorType, i32, i64
from tflq.legalize.core.registry import form, of_tensors
from tflq.legalize.core.translation import Translation

__all__: list[str] = []


@of_tensors(Generic)
def _generic(op: Generic, t: Translation) -> list[Value]:
    if any(kind != "parallel" for kind in op.iterators or ()):
        raise Refused("no builtin reduces in the order of its points", "write the reduction in ops of stablehlo or tfl")
    space = _space(op)
    block = op.regions[0].block
    for value, where, argument in zip(op.values, op.indexing_maps, block.arguments, strict=True):
        if any(argument in inner.operands for inner in block.ops):
            t.become(argument, _aligned(t, value, where, space))
    for inner in block.ops[:-1]:
        _check(inner)
        if isinstance(inner, Index):
            t.become(inner.result, _places(t, inner.dim, space))
        else:
            t.translate([inner])
    yielded = [v for v in block.ops[-1].operands if v is not None]
    maps = op.indexing_maps[len(op.inputs) :]
    return [_out(t, t.value(v), where, space) for v, where in zip(yielded, maps, strict=True)]


def _check(op: Op) -> None:
    if not isinstance(op, Index) and form.get(type(op)) is None:
        raise Refused(f"its body has {op.name}, which is not computed element by element", "take it out of the body")


def _space(op: Generic) -> Shape:
    """The sizes of the iterators, None where the operands' types do not say it."""
    known: dict[int, int | None] = {}
    for where, value in zip(op.indexing_maps, op.values, strict=True):
        for result, size in enumerate(value.type.shape or ()):
            dim = dim_of(where, result)
            if dim is not None:
                known[dim] = known.get(dim) or size
    count = len(op.iterators or ())
    if len(known) < count:
        raise Refused("one of its dims is that of no operand", "give it an operand with that dim")
    return tuple(known[dim] for dim in range(count))


def _places(t: Translation, dim: int, space: Shape) -> Value:
    """Where each point is along an iterator."""
    assert space is not None
    size = space[dim]
    if size is None:
        raise Refused("linalg.index needs the size of its dim", "state it")
    row = np.arange(size, dtype=np.int64).reshape([-1 if d == dim else 1 for d in range(len(space))])
    return t.constant(row, TensorType(row.shape, i64))


def _aligned(t: Translation, value: Value, where: AffineMap, space: Shape) -> Value:
    """An operand as it is taken at each point: it broadcasts to the space."""
    assert space is not None
    now = t.value(value)
    if now.type.shape == ():
        return now
    dims = [dim_of(where, result) for result in range(len(where.results))]
    if None in dims or len(set(dims)) < len(dims):
        return _taken(t, value, where, space)
    x = t.whole(value)
    order = sorted(range(len(dims)), key=lambda place: dims[place] or 0)
    shape = [x.type.shape[dims.index(d)] if d in dims else 1 for d in range(len(space))]  # type: ignore[index]
    if x.is_constant:
        return t.constant(held_array(x).transpose(order).reshape([n or 0 for n in shape]), x.type)
    reach = t.b.reach(x)
    if order != list(range(len(order))):
        x = t.b.transpose(x, order)
    if len(dims) < len(space):
        if shape.count(None) > 1:
            raise Refused("more than one dim of an operand is not known", "state the dims")
        x = t.b.reshape(x, shape)
    return t.b.within(x, reach)


def _taken(t: Translation, value: Value, where: AffineMap, space: Sequence[int | None]) -> Value:
    """A constant's elements as a map that computes places picks them."""
    array = t.known(value)
    if array is None or None in space:
        raise Refused(
            f"{where.text} computes places of what is not known before the model runs", "pick dims as they are"
        )
    grids = np.ogrid[tuple(slice(0, n) for n in space)]
    return t.constant(np.asarray(array[applied(where, list(grids))]), value.type)


def _out(t: Translation, made: Value, where: AffineMap, space: Shape) -> Value:
    """What is yielded, with its dims where the result has them."""
    assert space is not None
    dims = [dim_of(where, result) for result in range(len(where.results))]
    if sorted(d for d in dims if d is not None) != list(range(len(space))) or len(dims) != len(space):
        raise Refused(f"{where.text} writes to places that it computes, or more than once", "write each place once")
    if dims == sorted(dims, key=lambda d: d or 0) or made.type.shape == ():
        return made
    if made.type.shape != space:
        if None in space:
            raise Refused("a dim of its result is not known", "state the dims")
        made = t.b.emit(
            BroadcastTo, [made, t.b.constant(np.array(space, np.int32), i32)], made.type.with_element(made.type.element)
        )
        made.type = TensorType(space, made.type.element)
    return t.b.transpose(made, [d or 0 for d in dims])
