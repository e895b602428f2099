"""The `linalg` dialect of MLIR, as far as it is a loop over elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflq.dialects.core_rules import INDEX, scalars
from tflq.dialects.declare import INT, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.traits.operands import Impure
from tflq.ir.attributes import AffineMap, Opaque
from tflq.ir.core import Value
from tflq.ir.types import BareType
from tflq.ir.verifier import constraint

# A body that is computed at every point of an iteration space: maps say which elements of the operands it takes
# there, and which elements of the outs it yields.
#
# The space has a dim for each iterator. Along "parallel" ones the points do not depend on each other; along
# "reduction" ones the body takes what it yielded at the point before.


def _operands(op: Any) -> str | None:
    """'operandSegmentSizes' must say how many operands are inputs and how many are outs, of which there is one for each
    result, of its type"""
    sizes = op.segments
    outs = op.outs if sizes is not None and sum(sizes) == len(op.operands) else None
    if outs is None or [v.type for v in outs] != [v.type for v in op.results]:
        return _operands.__doc__
    return None


@constraint
def _iterated(op: Generic) -> bool:
    """'iterator_types' must be a list of "parallel", "reduction" and "window" """
    return op.iterators is not None


@constraint
def _mapped(op: Generic) -> bool:
    """'indexing_maps' must be affine maps of the iterators, one for each operand, with a result for each of its dims"""
    maps: Any = op.indexing_maps
    iterators = op.iterators or ()
    if not isinstance(maps, (list, tuple)) or len(maps) != len(op.operands):
        return False
    for where, value in zip(maps, op.values, strict=True):
        if not isinstance(where, AffineMap) or len(where.dims) != len(iterators):
            return False
        if value.type.rank is not None and len(where.results) != value.type.rank:
            return False
    return True


@constraint
def _sized(op: Generic) -> bool:
    """what two operands say of the size of a dim must be the same"""
    known: dict[str, int] = {}
    for where, value in zip(op.indexing_maps, op.values, strict=True):
        for name, size in zip(where.results, value.type.shape or (), strict=False):
            if name in where.dims and size is not None:
                place = f"d{where.dims.index(name)}"
                if known.setdefault(place, size) != size:
                    return False
    return True


@constraint
def _body(op: Generic) -> bool:
    """there must be one block, whose arguments are of the operands' element types, that ends with linalg.yield of
    values of the outs' element types"""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    block = op.regions[0].block
    taken = [BareType.of(v.type.element) for v in op.values]
    yielded = [BareType.of(v.type.element) for v in op.results]
    if [v.type for v in block.arguments] != taken or not block.ops or not isinstance(block.ops[-1], Yield):
        return False
    return [v.type for v in block.ops[-1].values] == yielded


class Generic(Operator, name="linalg.generic"):
    """results = the outs, of which the elements that the maps say are what the body yields at each point."""

    values: list[Value] = operand(variadic=True)
    outputs: list[Value] = result_(variadic=True)
    indexing_maps: list[AffineMap] = attribute()
    iterator_types: list[Any] = attribute()
    segment_sizes: np.ndarray = attribute(key="operandSegmentSizes")
    constraints = (declared, _operands, _iterated, _mapped, _sized, _body)

    @property
    def segments(self) -> tuple[int, int] | None:
        """How many inputs there are, and how many outs; None if it is not said."""
        sizes = np.asarray(self.attributes.get("operandSegmentSizes"))
        return (int(sizes[0]), int(sizes[1])) if sizes.shape == (2,) and sizes.dtype.kind == "i" else None

    @property
    def inputs(self) -> Sequence[Value]:
        """The operands that are only read."""
        return self.values[: (self.segments or (0, 0))[0]]

    @property
    def outs(self) -> Sequence[Value]:
        """The operands that the results begin as."""
        return self.values[(self.segments or (0, 0))[0] :]

    @property
    def iterators(self) -> tuple[str, ...] | None:
        """The kinds of the iterators, in order; None if one is of none."""
        given = self.attributes.get("iterator_types")
        if not isinstance(given, (list, tuple)):
            return None
        words = tuple(_word(item) for item in given)
        return words if {"parallel", "reduction", "window"}.issuperset(words) else None


def _word(item: Any) -> str:
    """`parallel` of "parallel" or of #linalg.iterator_type<parallel>."""
    return item.text.partition("<")[2][:-1] if isinstance(item, Opaque) else str(item)


class Index(Operator, name="linalg.index"):
    """Where the body is computed: the point's place along the iterator `dim`."""

    result: Value = result_(INDEX)
    dim: int = attribute(INT)
    constraints = (declared, scalars("result"))


class Yield(Operator, name="linalg.yield"):
    """Ends the body of `linalg.generic`."""

    values: list[Value] = operand(variadic=True)
    traits = (Impure(),)
    constraints = (declared, scalars("values"))
