"""Tools of an operator's `infer`: the shapes of its operands, arithmetic of dims, words for misfits.

    class Transpose(Operator, name="tosa.transpose"):
        def infer(self, site: DeclaredShapes) -> Shape:
            dims = site.dims(self.input)
            return tuple(dims[p] for p in self.perms)

`infer` answers the result's shape, or a list with one for each result. A dim is None where it is not known, a shape is
None where not even its rank is. Emitters give results their types by it, TOSA's laws compare with it, and shape
inference is a walk over it (`transforms.shape_inference`); so it may rely on what the op's results state only where
nothing else says it, as of a reshape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from tflq.base.errors import Refused
from tflq.ir.ops import Value
from tflq.ir.types import Shape
from tflq.numerics.convolution import window

if TYPE_CHECKING:
    import numpy as np


Dims: TypeAlias = tuple[int | None, ...]


class NotInferred(Refused):
    """Result shapes do not follow from the operands; the reason is a clause that says why."""


class Misfit(Refused):
    """No interpreter runs the operator on operands of these shapes."""


def constant_array(value: Value, *, stored: bool = False) -> np.ndarray | None:
    """The elements of a constant of plain numbers that no variable may change; None of another value. stored: the
    stored integers of a quantized constant, too, which kernels read as indices."""
    if not value.is_constant or (value.type.quantized and not stored):
        return None
    if not value.type.storage.numpy or not value.type.is_static:
        return None
    return None if value.info.get("sparsity") or value.info.get("is_variable") else value.array


class DeclaredShapes:
    """The types of values, and the elements of constants.

    `shape_inference.Site` knows more: elements that the model computes from shapes, functions that an op calls,
    variables.
    """

    __slots__ = ()

    def shape(self, value: Value) -> Shape:
        return value.type.shape

    def dims(self, value: Value | None, rank: int | None = None, least: int = 0) -> Dims:
        """The shape of an operand, which must have this rank, or at least so many dims."""
        if value is None:
            raise NotInferred("an operand is missing")
        shape = self.shape(value)
        if shape is None:
            raise NotInferred(f"the rank of '{value.name}' is not known")
        if rank is not None and len(shape) != rank:
            raise Misfit(f"'{value.name}' is {text(shape)}, not of rank {rank}")
        if len(shape) < least:
            raise Misfit(f"'{value.name}' is {text(shape)}, and must have at least {least} dims")
        return shape

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from 0."""
        if not -rank <= axis < rank:
            raise Misfit(f"axis {axis} is outside a rank of {rank}")
        return axis % rank

    def common(self, values: Sequence[Value | None]) -> Dims:
        """The one shape of all these."""
        first = self.dims(values[0])
        for value in values[1:]:
            other = self.dims(value, len(first))
            if other != first:
                first = tuple(agree(a, b, "dims of its operands") for a, b in zip(first, other, strict=True))
        return first

    def joined(self, values: Sequence[Value | None], axis: int) -> Dims:
        """All values one after the other along an axis."""
        first = self.dims(values[0] if values else None)
        along = self.axis(axis, len(first))
        out = list(first)
        for value in values[1:]:
            for i, dim in enumerate(self.dims(value, len(first))):
                out[i] = plus(out[i], dim) if i == along else agree(out[i], dim, f"dim {i} of its operands")
        return tuple(out)

    def broadcast(self, values: Sequence[Value]) -> Dims:
        """The shape that these broadcast to."""
        shapes = [shape for shape in map(self.shape, values) if shape != ()]
        if not shapes:
            return ()
        first = shapes[0]
        if first is not None and shapes.count(first) == len(shapes):
            return first
        return broadcast(*(map(self.dims, values) if None in shapes else shapes)) or ()

    def array(self, value: Value) -> np.ndarray | None:
        """All elements of an operand; None if one is not known before the model runs."""
        return constant_array(value)

    def elements(self, value: Value) -> list[int | None] | None:
        """The elements of an operand as integers, None for one that is not known; None if none is."""
        array = self.array(value)
        return None if array is None else [int(v) for v in array.reshape(-1).tolist()]

    def ints(self, value: Value | None, count: int | None = None) -> list[int | None]:
        """The elements of an operand that holds sizes, axes or indices, None for one that is not known.

        `count`: how many there must be.
        """
        if value is None:
            raise NotInferred("an operand is missing")
        elements = self.elements(value)
        if elements is None and (array := constant_array(value, stored=True)) is not None:
            elements = array.reshape(-1).tolist()
        if elements is None:
            total = product(self.dims(value))
            if total is None:
                raise NotInferred(f"the elements of '{value.name}' are not known before the model runs")
            elements = [None] * total
        if count is not None and len(elements) != count:
            raise Misfit(f"'{value.name}' has {len(elements)} elements, where {count} are expected")
        return elements

    def check_indices(self, value: Value, dims: Sequence[int | None], what: str) -> None:
        """Misfit if an operand of known elements has an index outside of the dims; a tuple of indices if these are
        several. `what`: whose dims these are."""
        array = self.array(value)
        array = constant_array(value, stored=True) if array is None else array
        if array is None or not array.size or not dims:
            return
        rows = array.reshape(-1, len(dims))
        for place, (low, high, dim) in enumerate(zip(rows.min(0).tolist(), rows.max(0).tolist(), dims, strict=True)):
            if low < 0 or (dim is not None and high >= dim):
                size = f"dim {place} of {what}, of {'unknown size' if dim is None else dim}"
                raise Misfit(f"'{value.name}' has the index {low if low < 0 else high}, outside {size}")

    def whole(self, value: Value, count: int | None = None) -> list[int]:
        """The elements of such an operand, if all are known."""
        elements = self.ints(value, count)
        known = [v for v in elements if v is not None]
        if len(known) != len(elements):
            raise NotInferred(f"the elements of '{value.name}' are not known before the model runs")
        return known

    def chosen_axis(self, value: Value, rank: int) -> int | None:
        """The axis that an operand holds, counted from 0; None if it is not known. Misfit for a scalar."""
        (axis,) = self.ints(value, 1)
        return None if axis is None and rank else self.axis(axis or 0, rank)

    def branches(self, _functions: Sequence[int], _arguments: Sequence[Value | None], /) -> list[Shape]:
        """The shapes that hold of the results of all these functions of the module on the same arguments."""
        raise NotInferred("the results of the functions that it calls are not known")

    def loop(self, _condition: int, _body: int, _arguments: Sequence[Value | None], /) -> list[Shape]:
        """The shapes that hold of the values that a function goes on with, as long as another says so."""
        raise NotInferred("the results of the functions that it calls are not known")

    def variable(self, _handle: Value, _value: Value, _written: bool, /) -> Shape:
        """The shape of the variable that a handle stands for, by an op that reads or writes a value."""
        raise NotInferred("what shape the variable has is not known")


DECLARED_SHAPES: Final = DeclaredShapes()


@lru_cache(maxsize=4096)
def broadcast(*shapes: Shape) -> Shape:
    """numpy's broadcast of shapes; an unknown dim meets 1 as itself, and a known dim other than 1 as that dim."""
    known = [s for s in shapes if s is not None]
    if len(known) != len(shapes):
        return None
    out: list[int | None] = []
    for i in range(max(map(len, known))):
        dims = {s[-1 - i] for s in known if i < len(s)} - {1}
        sizes = dims - {None}
        if len(sizes) > 1:
            raise Misfit(f"its operands {' and '.join(map(text, known))} do not broadcast")
        out.append(sizes.pop() if sizes else (None if dims else 1))
    return tuple(reversed(out))


def product(dims: Iterable[int | None]) -> int | None:
    """The number of elements; None if a dim is not known."""
    total = 1
    for dim in dims:
        if dim is None:
            return None
        total *= dim
    return total


def plus(*terms: int | None) -> int | None:
    """The sum; None if a term is not known."""
    known = [t for t in terms if t is not None]
    return sum(known) if len(known) == len(terms) else None


def check_sizes(dims: Shape, below: int = 1 << 63) -> None:
    """Misfit if a shape has a dim that is negative or not below a bound."""
    for d in dims or ():
        if d is not None and (d < 0 or d >= below):
            raise Misfit(f"its result would have a dim of {d}")


def agree(one: int | None, other: int | None, what: str) -> int | None:
    """The dim that both must be."""
    if one is not None and other is not None and one != other:
        raise Misfit(f"{what}: {one} and {other} differ")
    return other if one is None else one


def text(dims: Shape) -> str:
    return "of unknown rank" if dims is None else f"[{', '.join('?' if d is None else str(d) for d in dims)}]"


# The arithmetic of shapes. A dim is None where it is not known.


def permuted(dims: Dims, perms: Sequence[int | None]) -> Dims:
    """Dim i is dim perms[i] of `dims`, counted from either end; all are open where a place is not known."""
    rank, known = len(dims), [p for p in perms if p is not None]
    if len(perms) != rank:
        raise Misfit(f"a permutation of {len(perms)} dims for {text(dims)}")
    if len(known) != rank:
        return (None,) * rank
    if sorted(p % rank for p in known) != list(range(rank)) or not all(-rank <= p < rank for p in known):
        raise Misfit(f"{known} is not a permutation of the dims of {text(dims)}")
    return tuple(dims[p] for p in known)


def reduced(dims: Dims, axes: Collection[int], *, keep: bool = False) -> Dims:
    """Without axes, counted from 0; with `keep` they stay, of size 1."""
    if keep:
        return tuple(1 if i in axes else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in axes)


def with_dim(dims: Dims, at: int, size: int | None) -> Dims:
    """With one more dim, which is then at a place."""
    return (*dims[:at], size, *dims[at:])


def without_dim(dims: Dims, at: int) -> Dims:
    return (*dims[:at], *dims[at + 1 :])


def replaced(dims: Dims, at: int, size: int | None) -> Dims:
    """With another size of one dim."""
    return (*dims[:at], size, *dims[at + 1 :])


def padded(
    dims: Sequence[int | None],
    low: Sequence[int | None],
    high: Sequence[int | None],
    between: Sequence[int] | None = None,
) -> Dims:
    """With elements before and after each dim, and `between` two elements."""
    inner = [0] * len(dims) if between is None else between
    rows = zip(dims, low, high, inner, strict=True)
    return tuple(plus(d, a, b, None if d is None else max(d - 1, 0) * n) for d, a, b, n in rows)


def mirrored(dims: Dims, low: Sequence[int | None], high: Sequence[int | None], edge: int) -> Dims:
    """With elements of its own before and after each dim, mirrored. `edge`: how many of a dim are not repeated.

    Source: `Prepare` in kernels/mirror_pad.cc.
    """
    for axis, (dim, *sides) in enumerate(zip(dims, low, high, strict=True)):
        most = None if dim is None else dim - edge
        for side in sides:
            if most is not None and side is not None and side > most:
                raise Misfit(f"{side} mirrored elements beside dim {axis} of {text(dims)}, which has {max(most, 0)}")
    return padded(dims, low, high)


def fitting(dims: Dims, block: Dims, what: str) -> Dims:
    """The dims, if a block of the same rank fits into them."""
    if any(a is not None and b is not None and a < b for a, b in zip(dims, block, strict=True)):
        raise Misfit(f"{what} {text(block)} is larger than {text(dims)}")
    return dims


def reshaped(dims: Dims, wanted: Sequence[int | None]) -> Dims:
    """A wanted shape for the elements of `dims`: one -1, or else one unknown dim, is what is left."""
    total, left = product(dims), [i for i, d in enumerate(wanted) if d == -1]
    unknown = [i for i, d in enumerate(wanted) if d is None]
    if len(left) > 1:
        raise Misfit(f"the shape {text(tuple(wanted))} leaves more than one dim open")
    if not left and not unknown:
        if total is not None and product(wanted) != total:
            raise Misfit(f"{text(dims)} does not have as many elements as the shape {text(tuple(wanted))}")
        return tuple(wanted)
    free = unknown or left
    rest = product(d for i, d in enumerate(wanted) if i not in free)
    if len(left) + len(unknown) > 1 or total is None or not rest:
        return tuple(None if d == -1 else d for d in wanted)
    if total % rest:
        raise Misfit(f"{text(dims)} does not fill the shape {text(tuple(wanted))}")
    return tuple(total // rest if i in free else d for i, d in enumerate(wanted))


def matrix_product(a: Dims, b: Dims) -> Dims:
    """[..., M, K] times [..., K, N]; the dims before the last two broadcast."""
    if len(a) < 2 or len(b) < 2:
        raise Misfit(f"{text(a)} and {text(b)} are not matrices")
    agree(a[-1], b[-2], "the dims that are multiplied")
    return (*(broadcast(a[:-2], b[:-2]) or ()), a[-2], b[-1])


def divided(dim: int | None, block: int | None) -> int | None:
    """The number of blocks of a dim."""
    if dim is None or block is None:
        return None
    if not block or dim % block:
        raise Misfit(f"{dim} is not a multiple of the block's {block}")
    return dim // block


def cut(dims: Dims, starts: Sequence[int | None], counts: Sequence[int | None]) -> Dims:
    """A block from the starts on; a count of -1 is the rest of a dim."""
    out: list[int | None] = []
    for dim, start, count in zip(dims, starts, counts, strict=True):
        if count == -1:
            out.append(None if dim is None or start is None else dim - start)
            continue
        if dim is not None and start is not None and count is not None and start + count > dim:
            raise Misfit(f"{count} elements from {start} on are not within {text(dims)}")
        out.append(count)
    return tuple(out)


def subscripted(
    dims: Dims,
    begin: Sequence[int | None],
    end: Sequence[int | None],
    strides: Sequence[int | None],
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Dims:
    """The shape of a block that subscripts choose as Python's do. The masks have a bit for each: its begin or end is
    left out; it is an ellipsis, a new dim, or one index.

    An ellipsis stands for one dim at least; what then exceeds the rank is disregarded; dims not named are whole.
    Source: `BuildStridedSliceParams` in kernels/strided_slice.cc.
    """
    count = len(begin)
    added = (new_axis_mask & ~ellipsis_mask & ((1 << count) - 1)).bit_count()
    places: list[int] = []  # of each dim and new dim its subscript
    for i in range(count):
        places += [i] * (max(1, len(dims) + added - count + 1) if ellipsis_mask >> i & 1 else 1)
    left, out = list(dims), list[int | None]()
    for i in places[: len(dims) + added]:
        bit = 1 << i
        if new_axis_mask & ~ellipsis_mask & bit:
            out.append(1)
            continue
        if not left:
            raise Misfit("it names more dims than its input has")
        dim = left.pop(0)
        if ellipsis_mask & bit:
            out.append(dim)
        elif not shrink_axis_mask & bit:
            out.append(_steps(dim, begin[i], end[i], strides[i], not begin_mask & bit, not end_mask & bit))
    return (*out, *left)


def _steps(
    dim: int | None, begin: int | None, end: int | None, stride: int | None, has_begin: bool, has_end: bool
) -> int | None:
    """The number of elements of a slice of a dim."""
    if not has_begin and not has_end and stride in (1, -1):
        return dim
    if dim is None or stride is None or (begin is None and has_begin) or (end is None and has_end):
        return None
    if not stride:
        raise Misfit("a stride is 0")
    return len(range(*slice(begin if has_begin else None, end if has_end else None, stride).indices(dim)))


# Windows: the spatial sizes that convolutions, pools and reductions over windows give.


def slide(
    sizes: Sequence[int | None],
    kernel: Sequence[int | None],
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] | None = None,
) -> Dims:
    """Sizes of the results of windows over spatial dims that are padded as TFLite does: SAME or VALID.

    Source: `ComputeOutSize` in kernels/padding.h.
    """
    out: list[int | None] = []
    for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations or (1,) * len(sizes), strict=True):
        if extent is None:
            raise NotInferred("the size of its filter is not known")
        windows = window(size, extent, stride, dilation, padding)
        output = None if windows is None else windows.output
        if output is not None and output < 0:
            raise Misfit(f"a filter of {extent} does not fit into {size}")
        out.append(output)
    return tuple(out)


def pooled(sizes: Sequence[int | None], kernel: Sequence[int], strides: Sequence[int], padding: str) -> Dims:
    """Height and width of pools: `slide`, but no windows where the kernel does not fit into the input.

    The interpreter computes the width first, and leaves both at 0 if that does not fit. Source:
    `ComputePaddingHeightWidth` in kernels/padding.h of LiteRT 2.3; LiteRT 2.1 refuses such a pool.
    """
    windows = [window(*dim, 1, padding) for dim in zip(sizes, kernel, strides, strict=True)]
    height, width = (None if each is None else each.output for each in windows)
    if width is not None and width < 0:
        return (0, 0)
    return (None if height is None else max(height, 0), width)


def places(size: int | None, window: int | None, stride: int | None, dilation: int | None = 1) -> int | None:
    """The number of windows that fit into one dim, padding included; elements that the last step leaves over are
    not used."""
    if size is None or window is None or stride is None or stride < 1 or dilation is None:
        return None
    reach = (window - 1) * dilation + 1
    return 0 if size < reach else (size - reach) // stride + 1


def convolved(
    sizes: Sequence[int | None],
    kernel: Sequence[int | None],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int] | None = None,
) -> Dims:
    """Sizes of the results of windows over padded spatial dims: `pads` has the elements before and after the first dim,
    then those of the next."""
    padded = map(plus, sizes, pads[::2], pads[1::2])
    return tuple(map(places, padded, kernel, strides, dilations or (1,) * len(strides)))
