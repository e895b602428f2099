"""Data movement that is one operator of TOSA, or a few: reshapes, transposes, tiles.

The integers are moved as they are; a uint8 value is moved as the int8 it has become. Sources: the kernels of these
names.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.tfl.movement import BroadcastTo, ExpandDims, Squeeze
from tflq.dialects.tfl.movement import Reshape as TflReshape
from tflq.dialects.tfl.movement import Tile as TflTile
from tflq.dialects.tfl.movement import Transpose as TflTranspose
from tflq.dialects.tosa.movement import Reshape, Tile, Transpose
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import Shape
from tflq.tosa.lowering.known import constant_of, dims_of, known_elements
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import reshaped
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []


@lowering(Reshape, Squeeze, ExpandDims)
def reshape_to_result(op: Reshape | Squeeze | ExpandDims, t: Tosa) -> Value:
    """The same elements in the shape of the result."""
    return reshaped(t, narrow(op.input, t), op.result.type.shape)


@lowering(TflReshape)
def reshape(op: TflReshape, t: Tosa) -> Value:
    """The same elements in the shape that the operand, the option or the result states; one dim may be left open."""
    x = narrow(op.input, t)
    return reshaped(t, x, _stated_shape(op, x.type.shape))


def _stated_shape(op: TflReshape, source: Shape) -> Shape:
    """The result's dims, each as known as it gets."""
    result = op.result.type.shape
    shape = op.shape
    if shape is None:
        return result
    known = known_elements(shape)
    if known is None:
        raise Refused(f"its shape '{shape.name}' is computed when the model runs, and TOSA 1.0 has no run-time shapes")
    dims = [None if d is None or d < 0 else d for d in known.elements()]
    if dims.count(None) > 1 and result is not None and len(result) == len(dims):
        dims = [r if d is None else d for d, r in zip(dims, result, strict=True)]
    if source is not None and None not in source and dims.count(None) == 1:
        rest = int(np.prod([d for d in dims if d is not None]))
        dims[dims.index(None)] = int(np.prod([d or 0 for d in source])) // rest if rest else 0
    return tuple(dims)


@lowering(Transpose)
def transpose_by_attribute(op: Transpose, t: Tosa) -> Value:
    return _transposed(t, narrow(op.input, t), op.perms)


@lowering(TflTranspose)
def transpose(op: TflTranspose, t: Tosa) -> Value:
    x = narrow(op.input, t)
    rank = len(dims_of(x))
    return _transposed(t, x, [int(p) % rank for p in constant_of(op.perm, "permutation").reshape(-1)])


def _transposed(t: Tosa, x: Value, perms: Sequence[int]) -> Value:
    return x if list(perms) == sorted(perms) else t.transpose(x, perms)


@lowering(Tile)
def tile_by_attribute(op: Tile, t: Tosa) -> Value:
    return t.tile(narrow(op.input1, t), op.multiples)


@lowering(TflTile)
def tile(op: TflTile, t: Tosa) -> Value:
    x = narrow(op.input, t)
    multiples = [int(m) for m in constant_of(op.multiples, "multiples").reshape(-1)]
    if 0 in multiples:
        raise Refused("a result without elements has no form in TOSA")
    return t.tile(x, multiples)


@lowering(BroadcastTo)
def broadcast_to(op: BroadcastTo, t: Tosa) -> Value:
    """TILE of the dims of 1."""
    x = narrow(op.input, t)
    shape = [int(d) for d in constant_of(op.shape, "shape").reshape(-1)]
    x = t.ranked(x, len(shape))
    dims = zip(dims_of(x), shape, strict=True)
    if any(d is None and s != 1 for d, s in dims):
        raise Refused("a dim that is not known cannot be broadcast")
    return t.spread(x, shape)
