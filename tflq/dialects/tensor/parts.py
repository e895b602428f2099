"""Parts of tensors: elements, slices, sizes; and tensors put together of others.

A slice is said by offsets, sizes and strides, one for each dim: in `static_offsets` and so on, where -2^63 stands for
one that an operand gives. The operands are those of the offsets, then of the sizes, then of the strides.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tflq.dialects.core_rules import INDEX, all_tensors, scalars
from tflq.dialects.declare import Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.rules import agree, integers
from tflq.ir.core import Value
from tflq.ir.op_checks import constraint
from tflq.ir.types import BareType, Shape

__all__ = ["GIVEN", "Concat", "Dim", "Extract", "ExtractSlice", "Insert", "InsertSlice", "Pad", "Rank", "places"]

GIVEN: Final = -(1 << 63)
"""What stands in a list of numbers for one that an operand gives."""


@constraint
def _one_index_each(op: Extract | Insert) -> bool:
    """there must be one index for each dim of the tensor, and the scalar must be of its element type"""
    tensor = op.tensor.type if isinstance(op, Extract) else op.dest.type
    scalar = op.result.type if isinstance(op, Extract) else op.scalar.type
    return tensor.rank in (None, len(op.indices)) and scalar == BareType.of(tensor.element)


@constraint
def _as_dest(op: Insert | InsertSlice) -> bool:
    """the result must be of the type of the tensor that is written to"""
    return op.dest.type == op.result.type


@constraint
def _joined(op: Concat) -> bool:
    """the tensors must be of one element type and rank, and agree but for 'dim', along which the result is their sum"""
    shapes = [v.type.shape for v in op.inputs]
    made, dim = op.result.type.shape, op.dim
    if made is None or not shapes or not 0 <= dim < len(made) or any(s is None or len(s) != len(made) for s in shapes):
        return False
    if any(v.type.element != op.result.type.element for v in op.inputs):
        return False
    rest = [(*s[:dim], None, *s[dim + 1 :]) for s in shapes if s is not None]
    sizes = [s[dim] for s in shapes if s is not None]
    fits = all(agree(shape, made) for shape in rest)
    return fits and (made[dim] is None or None in sizes or sum(n or 0 for n in sizes) == made[dim])


def places(op: Operator, key: str) -> tuple[int, ...]:
    """The numbers of an attribute `static_*`, GIVEN where an operand says it."""
    return integers(op, key, ()) or ()


def _sliced(op: Any) -> str | None:
    """offsets, sizes and strides must be given for each dim of the tensor, and be within it; the slice's type drops
    dims of size 1 at most"""
    whole = op.operand(0).type if isinstance(op, ExtractSlice) else op.dest.type
    part = op.result.type if isinstance(op, ExtractSlice) else op.source.type
    listed = [places(op, f"static_{kind}") for kind in ("offsets", "sizes", "strides")]
    if whole.shape is None or part.shape is None or {len(s) for s in listed} != {len(whole.shape)}:
        return _sliced.__doc__
    if sum(numbers.count(GIVEN) for numbers in listed) != len(op.given) or whole.element != part.element:
        return _sliced.__doc__
    for offset, size, stride, dim in zip(*listed, whole.shape, strict=True):
        known = GIVEN not in (offset, size, stride)
        if (known and min(offset, size) < 0) or (
            known and dim is not None and size and not 0 <= offset + (size - 1) * stride < dim
        ):
            return _sliced.__doc__
    return None if _drops_ones([None if n == GIVEN else n for n in listed[1]], part.shape) else _sliced.__doc__


def _drops_ones(sizes: list[int | None], made: Shape) -> bool:
    """Whether a shape is that of a slice, dims of size 1 left out."""
    rest = list(made or ())
    for size in sizes:
        if rest and (rest[0] is None or size is None or rest[0] == size):
            rest.pop(0)
        elif size not in (1, None):
            return False
    return not rest


@constraint
def _padded(op: Pad) -> bool:
    """'static_low' and 'static_high' must have a number for each dim, and the sizes be those of the result"""
    low, high = places(op, "static_low"), places(op, "static_high")
    given, made = op.source.type.shape, op.result.type.shape
    if given is None or made is None or not len(low) == len(high) == len(given) == len(made):
        return False
    if low.count(GIVEN) + high.count(GIVEN) != len(op.given) or op.source.type.element != op.result.type.element:
        return False
    rows = zip(low, high, given, made, strict=True)
    return all(GIVEN in (a, b) or None in (g, m) or a + b + (g or 0) == m for a, b, g, m in rows)


@constraint
def _pad_body(op: Pad) -> bool:
    """there must be one block, with an index for each dim, that ends with tensor.yield"""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    block = op.regions[0].block
    ended = bool(block.ops) and block.ops[-1].name == "tensor.yield"
    return ended and len(block.arguments) == op.result.type.rank


class Dim(Operator, name="tensor.dim"):
    """The size of the dim `index` of source."""

    __slots__ = ()
    source: Value = operand()
    index: Value = operand(INDEX)
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("source"), scalars("index", "result"))


class Rank(Operator, name="tensor.rank"):
    """How many dims a tensor has."""

    __slots__ = ()
    tensor: Value = operand()
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("tensor"), scalars("result"))


class Extract(Operator, name="tensor.extract"):
    """The element at the indices."""

    __slots__ = ()
    tensor: Value = operand()
    indices: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, all_tensors("tensor"), scalars("indices", "result"), _one_index_each)


class Insert(Operator, name="tensor.insert"):
    """dest, with scalar at the indices."""

    __slots__ = ()
    scalar: Value = operand()
    dest: Value = operand()
    indices: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, all_tensors("dest", "result"), scalars("scalar", "indices"), _one_index_each, _as_dest)


class Concat(Operator, name="tensor.concat"):
    """The tensors, one after the other along `dim`."""

    __slots__ = ()
    inputs: list[Value] = operand(variadic=True)
    result: Value = result_()
    dim: int = attribute()
    constraints = (declared, all_tensors("inputs", "result"), _joined)


class ExtractSlice(Operator, name="tensor.extract_slice"):
    """The elements of source from the offsets on, in steps of the strides."""

    __slots__ = ()
    source: Value = operand()
    given: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    static_offsets: np.ndarray = attribute()
    static_sizes: np.ndarray = attribute()
    static_strides: np.ndarray = attribute()
    constraints = (declared, all_tensors("source", "result"), scalars("given"), _sliced)


class InsertSlice(Operator, name="tensor.insert_slice"):
    """dest, with the elements of source from the offsets on, in steps of the strides."""

    __slots__ = ()
    source: Value = operand()
    dest: Value = operand()
    given: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    static_offsets: np.ndarray = attribute()
    static_sizes: np.ndarray = attribute()
    static_strides: np.ndarray = attribute()
    constraints = (declared, all_tensors("source", "dest", "result"), scalars("given"), _sliced, _as_dest)


class Pad(Operator, name="tensor.pad"):
    """source, with elements before and after it in each dim, which the body yields of their places."""

    __slots__ = ()
    source: Value = operand()
    given: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    static_low: np.ndarray = attribute()
    static_high: np.ndarray = attribute()
    constraints = (declared, all_tensors("source", "result"), scalars("given"), _padded, _pad_body)
