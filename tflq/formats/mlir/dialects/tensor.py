"""MLIR's `tensor`, which makes tensors, takes them apart and sees them in other shapes; and `shape`, which computes
shapes.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from tflq.dialects.constraints import INDEX, SIGNLESS, agree, all_tensors, integers, of_one_shape, scalars
from tflq.dialects.declare import Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.traits import Impure
from tflq.ir.ops import Value
from tflq.ir.types import BareType, Shape, index
from tflq.ir.verifier import constraint

# Tensors of elements that are given one by one, and of one number.


@constraint("there must be one size for each unknown dim of the result, which must be ranked")
def _sizes(op: Any) -> bool:
    shape = op.result.type.shape
    return shape is not None and len(op.dynamic_sizes) == shape.count(None)


@constraint("the result must be a tensor of the scalar's type")
def _of_scalar(op: Splat) -> bool:
    return op.result.type.element == op.input.type.element


@constraint("the result must be a tensor of the elements' type, of known shape, with as many elements as are given")
def _of_scalars(op: FromElements) -> bool:
    type = op.result.type
    count = 1
    for dim in type.shape or ():
        count *= dim or 0
    same = all(v.type.element == type.element for v in op.elements)
    return type.is_static and count == len(op.elements) and same


@constraint("there must be one block, with an index for each dim, that ends with tensor.yield of an element")
def _body(op: Generate) -> bool:
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    block, type = op.regions[0].block, op.result.type
    index_types = [isinstance(v.type, BareType) and v.type.element == index for v in block.arguments]
    ends = bool(block.ops) and isinstance(block.ops[-1], Yield)
    yielded = [None if v is None else v.type for v in block.ops[-1].operands] if ends else []
    return len(index_types) == type.rank and all(index_types) and yielded == [BareType.of(type.element)]


class Empty(Operator, name="tensor.empty"):
    """A tensor of a shape, whose elements are not said: something writes them before they are read."""

    dynamic_sizes: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, scalars("dynamic_sizes"), all_tensors("result"), _sizes)


class Splat(Operator, name="tensor.splat"):
    """A tensor whose elements are all `input`."""

    input: Value = operand()
    dynamic_sizes: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, scalars("input", "dynamic_sizes"), all_tensors("result"), _sizes, _of_scalar)


class FromElements(Operator, name="tensor.from_elements"):
    """The tensor of these elements, in row-major order."""

    elements: list[Value] = operand(variadic=True)
    result: Value = result_()
    constraints = (declared, scalars("elements"), all_tensors("result"), _of_scalars)


class Generate(Operator, name="tensor.generate"):
    """The tensor whose elements are what the body yields of their places."""

    dynamic_sizes: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, scalars("dynamic_sizes"), all_tensors("result"), _sizes, _body)


class Yield(Operator, name="tensor.yield"):
    """Ends the body of `tensor.generate` or `tensor.pad`."""

    value: Value = operand()
    traits = (Impure(),)
    constraints = (declared, scalars("value"))


# Parts of tensors: elements, slices, sizes; and tensors put together of others.
#
# A slice is said by offsets, sizes and strides, one for each dim: in `static_offsets` and so on, where -2^63 stands
# for one that an operand gives. The operands are those of the offsets, then of the sizes, then of the strides.


DYNAMIC: Final = -(1 << 63)
"""The place of a number that an operand gives, in a list of numbers."""


@constraint("there must be one index for each dim of the tensor, and the scalar must be of its element type")
def _one_index_each(op: Extract | Insert) -> bool:
    tensor = op.tensor.type if isinstance(op, Extract) else op.dest.type
    scalar = op.result.type if isinstance(op, Extract) else op.scalar.type
    return tensor.rank in (None, len(op.indices)) and scalar == BareType.of(tensor.element)


@constraint("the result must be of the type of the tensor that is written to")
def _as_dest(op: Insert | InsertSlice) -> bool:
    return op.dest.type == op.result.type


@constraint(
    "the tensors must be of one element type and rank, and equal except in 'dim', along which the result is the sum"
)
def _joined(op: Concat) -> bool:
    shapes = [v.type.shape for v in op.inputs]
    out, dim = op.result.type.shape, op.dim
    if out is None or not shapes or not 0 <= dim < len(out) or any(s is None or len(s) != len(out) for s in shapes):
        return False
    if any(v.type.element != op.result.type.element for v in op.inputs):
        return False
    rest = [(*s[:dim], None, *s[dim + 1 :]) for s in shapes if s is not None]
    sizes = [s[dim] for s in shapes if s is not None]
    fits = all(agree(shape, out) for shape in rest)
    return fits and (out[dim] is None or None in sizes or sum(n or 0 for n in sizes) == out[dim])


def places(op: Operator, key: str) -> tuple[int, ...]:
    """The numbers of an attribute `static_*`; DYNAMIC for one that an operand gives."""
    return integers(op, key, ()) or ()


@constraint(
    "offsets, sizes and strides must be given for each dim of the tensor, and be within it; the slice's type "
    "drops dims of size 1 at most"
)
def _sliced(op: Any) -> bool:
    whole = op.operand(0).type if isinstance(op, ExtractSlice) else op.dest.type
    part = op.result.type if isinstance(op, ExtractSlice) else op.source.type
    listed = [places(op, f"static_{kind}") for kind in ("offsets", "sizes", "strides")]
    if whole.shape is None or part.shape is None or {len(s) for s in listed} != {len(whole.shape)}:
        return False
    if sum(numbers.count(DYNAMIC) for numbers in listed) != len(op.given) or whole.element != part.element:
        return False
    for offset, size, stride, dim in zip(*listed, whole.shape, strict=True):
        known = DYNAMIC not in (offset, size, stride)
        if (known and min(offset, size) < 0) or (
            known and dim is not None and size and not 0 <= offset + (size - 1) * stride < dim
        ):
            return False
    return _drops_ones([None if n == DYNAMIC else n for n in listed[1]], part.shape)


def _drops_ones(sizes: list[int | None], shape: Shape) -> bool:
    """Whether a shape is that of a slice, dims of size 1 left out."""
    rest = list(shape or ())
    for size in sizes:
        if rest and (rest[0] is None or size is None or rest[0] == size):
            rest.pop(0)
        elif size not in (1, None):
            return False
    return not rest


@constraint("'static_low' and 'static_high' must have a number for each dim, and the sizes be those of the result")
def _padded(op: Pad) -> bool:
    low, high = places(op, "static_low"), places(op, "static_high")
    source, result = op.source.type.shape, op.result.type.shape
    if source is None or result is None or not len(low) == len(high) == len(source) == len(result):
        return False
    if low.count(DYNAMIC) + high.count(DYNAMIC) != len(op.given) or op.source.type.element != op.result.type.element:
        return False
    rows = zip(low, high, source, result, strict=True)
    return all(DYNAMIC in (a, b) or None in (g, m) or a + b + (g or 0) == m for a, b, g, m in rows)


@constraint("there must be one block, with an index for each dim, that ends with tensor.yield")
def _pad_body(op: Pad) -> bool:
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    block = op.regions[0].block
    ended = bool(block.ops) and block.ops[-1].name == "tensor.yield"
    return ended and len(block.arguments) == op.result.type.rank


class Dim(Operator, name="tensor.dim"):
    """The size of the dim `index` of source."""

    source: Value = operand()
    index: Value = operand(INDEX)
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("source"), scalars("index", "result"))


class Rank(Operator, name="tensor.rank"):
    """The number of a tensor's dims."""

    tensor: Value = operand()
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("tensor"), scalars("result"))


class Extract(Operator, name="tensor.extract"):
    """The element at the indices."""

    tensor: Value = operand()
    indices: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, all_tensors("tensor"), scalars("indices", "result"), _one_index_each)


class Insert(Operator, name="tensor.insert"):
    """dest, with scalar at the indices."""

    scalar: Value = operand()
    dest: Value = operand()
    indices: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    constraints = (declared, all_tensors("dest", "result"), scalars("scalar", "indices"), _one_index_each, _as_dest)


class Concat(Operator, name="tensor.concat"):
    """The tensors, one after the other along `dim`."""

    inputs: list[Value] = operand(variadic=True)
    result: Value = result_()
    dim: int = attribute()
    constraints = (declared, all_tensors("inputs", "result"), _joined)


class ExtractSlice(Operator, name="tensor.extract_slice"):
    """The elements of source from the offsets on, in steps of the strides."""

    source: Value = operand()
    given: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    static_offsets: np.ndarray = attribute()
    static_sizes: np.ndarray = attribute()
    static_strides: np.ndarray = attribute()
    constraints = (declared, all_tensors("source", "result"), scalars("given"), _sliced)


class InsertSlice(Operator, name="tensor.insert_slice"):
    """dest, with the elements of source from the offsets on, in steps of the strides."""

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

    source: Value = operand()
    given: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_()
    static_low: np.ndarray = attribute()
    static_high: np.ndarray = attribute()
    constraints = (declared, all_tensors("source", "result"), scalars("given"), _padded, _pad_body)


# The same elements, in the same order, in a tensor of another type or shape.


@constraint("operand and result must be of one element type")
def _same_element(op: Operator) -> bool:
    return op.operand(0).type.element == op.result.type.element


@constraint("the element types must be of one width")
def _as_wide(op: Bitcast) -> bool:
    return op.source.type.storage.bits == op.dest.type.storage.bits


@constraint("the shapes must agree: known dims are the same")
def _agreeing(op: Cast) -> bool:
    return agree(op.source.type.shape, op.dest.type.shape)


@constraint(
    "the shape must be a tensor of one dim, as long as the result has dims, which is unranked if that is not known"
)
def _shape_matches(op: Reshape) -> bool:
    shape, result_shape = op.shape.type.shape, op.result.type.shape
    if shape is None or len(shape) != 1:
        return False
    return result_shape is None if shape[0] is None else result_shape is not None and len(result_shape) == shape[0]


@constraint("the operand and the result must have as many elements")
def _as_many(op: Reshape) -> bool:
    return _counts_agree(op.source.type.shape, op.result.type.shape)


def _counts_agree(one: Any, other: Any) -> bool:
    if one is None or other is None or None in one or None in other:
        return True
    return prod(one) == prod(other)


def groups(op: Operator) -> list[list[int]] | None:
    """The attribute `reassociation`: for each dim of the smaller shape the dims of the larger. None if it is
    malformed."""
    lists = op.attributes.get("reassociation")
    if not isinstance(lists, (list, tuple)):
        return None
    dims = []
    for group in lists:
        array = np.asarray(group)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            return None
        dims.append([int(i) for i in array])
    return dims


@constraint(
    "'reassociation' must be lists of the larger shape's dims, in order, one for each dim of the smaller, whose "
    "size is the product of theirs"
)
def _reassociated(op: Any) -> bool:
    source, result = op.operand(0).type.shape, op.result.type.shape
    listed = groups(op)
    if source is None or result is None or listed is None:
        return False
    large, small = (source, result) if isinstance(op, CollapseShape) else (result, source)
    flat = [i for group in listed for i in group]
    if flat != list(range(len(large))) or (listed and len(listed) != len(small)):
        return False
    if not listed:  # the smaller one is a scalar in a tensor
        return not small and all(dim in (1, None) for dim in large)
    for dim, group in zip(small, listed, strict=True):
        sizes = [large[i] for i in group]
        if not group or (None in sizes) != (dim is None) or (dim is not None and prod(n or 0 for n in sizes) != dim):
            return False
    return True


class Cast(Operator, name="tensor.cast"):
    """source, of whose shape more or less is said."""

    source: Value = operand()
    dest: Value = result_()
    constraints = (declared, all_tensors("source", "dest"), _same_element, _agreeing)


class Bitcast(Operator, name="tensor.bitcast"):
    """The bits of source, as elements of another type of their width."""

    source: Value = operand()
    dest: Value = result_()
    constraints = (declared, all_tensors("source", "dest"), of_one_shape, _as_wide)


class Reshape(Operator, name="tensor.reshape"):
    """The elements of source, in row-major order, in a tensor of the shape given."""

    source: Value = operand()
    shape: Value = operand(SIGNLESS)
    result: Value = result_()
    constraints = (declared, all_tensors("source", "shape", "result"), _same_element, _shape_matches, _as_many)


class CollapseShape(Operator, name="tensor.collapse_shape"):
    """Neighbouring dims of source as one, as `reassociation` says."""

    source: Value = operand()
    result: Value = result_()
    reassociation: list[list[int]] = attribute()
    constraints = (declared, all_tensors("source", "result"), _same_element, _reassociated)


class ExpandShape(Operator, name="tensor.expand_shape"):
    """Dims of source as several, as `reassociation` says; `output_shape` are the sizes of those that are not known."""

    source: Value = operand()
    output_shape: list[Value] = operand(variadic=True)
    result: Value = result_()
    reassociation: list[list[int]] = attribute()
    constraints = (declared, all_tensors("source", "result"), _same_element, _reassociated)


# The `shape` dialect, on shapes as tensors of sizes (`tensor<?xindex>`).


@constraint("the result must be as long as the operand has dims, as far as both are known")
def _ranked_as(op: ShapeOf) -> bool:
    (length,) = op.result.type.shape or (None,)
    return op.arg.type.rank is None or length in (None, op.arg.type.rank)


@constraint("'shape' must be a list of sizes, as long as the result")
def _is_shape(op: ConstShape) -> bool:
    sizes = integers(op, "shape")
    return sizes is not None and op.result.type.shape in ((None,), (len(sizes),)) and min(sizes, default=0) >= 0


class ConstShape(Operator, name="shape.const_shape"):
    """The shape that `shape` says."""

    result: Value = result_(INDEX)
    shape: np.ndarray = attribute()
    constraints = (declared, all_tensors("result"), _is_shape)


class ShapeOf(Operator, name="shape.shape_of"):
    """The shape of a tensor."""

    arg: Value = operand()
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("arg", "result"), _ranked_as)


class NumElements(Operator, name="shape.num_elements"):
    """The number of elements of a tensor of a shape: the product of the sizes."""

    shape: Value = operand(INDEX)
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("shape"), scalars("result"))


class SplitAt(Operator, name="shape.split_at"):
    """head = the sizes before `index`, tail = those from it on; a negative one counts from the end."""

    shape: Value = operand(INDEX)
    index: Value = operand(SIGNLESS)
    head: Value = result_(INDEX)
    tail: Value = result_(INDEX)
    constraints = (declared, all_tensors("shape", "head", "tail"), scalars("index"))


class ShapeConcat(Operator, name="shape.concat"):
    """The sizes of lhs, then those of rhs."""

    lhs: Value = operand(INDEX)
    rhs: Value = operand(INDEX)
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("lhs", "rhs", "result"))


class Broadcast(Operator, name="shape.broadcast"):
    """The shape that all shapes broadcast to: dims are aligned at the end, and 1 becomes what the others have."""

    shapes: list[Value] = operand(INDEX, variadic=True)
    result: Value = result_(INDEX)
    constraints = (declared, all_tensors("shapes", "result"))


class GetExtent(Operator, name="shape.get_extent"):
    """The size at a place of a shape."""

    shape: Value = operand(INDEX)
    dim: Value = operand(SIGNLESS)
    extent: Value = result_(INDEX)
    constraints = (declared, all_tensors("shape"), scalars("dim", "extent"))


class ShapeDim(Operator, name="shape.dim"):
    """The size of the dim `index` of a tensor."""

    value: Value = operand()
    index: Value = operand(SIGNLESS)
    extent: Value = result_(INDEX)
    constraints = (declared, all_tensors("value"), scalars("index", "extent"))


class ShapeRank(Operator, name="shape.rank"):
    """The number of sizes in a shape."""

    shape: Value = operand(INDEX)
    rank: Value = result_(INDEX)
    constraints = (declared, all_tensors("shape"), scalars("rank"))
