"""Elements in another order, place or number; tensors one after the other, and in parts."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from tflq.dialects import inference as sizes
from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit, NotInferred, agree, plus, product, text
from tflq.dialects.parameters import (
    AsksSameScale,
    LacksKernel,
    Misreads,
    ParametersUnread,
    QuantizedTogether,
    SameScale,
)
from tflq.dialects.tfl import Needs
from tflq.dialects.traits import (
    Axes,
    Axis,
    ComputedEarly,
    Counts,
    Indexed,
    MovesElements,
    NonNegative,
    NoZeros,
    OneElement,
    OnePerDim,
    Permutation,
    PersistentIfConstant,
    RankWithin,
    SameElementType,
    SameShape,
    SizedBy,
    Surrounded,
    Undescribed,
    View,
)
from tflq.ir.ops import Value
from tflq.ir.types import Shape, f32, i1, i4, i8, i16, i32, i64, ui8, ui32


class Moved(Operator):
    """The elements of one tensor, in another order, place or number."""

    input: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (
        SameScale(input, output),
        SameElementType(input, output),
        MovesElements(input),
    )


_COPIED: Final = (*Moved.traits, Misreads("copied"))
"""Of kernels that copy packed elements as bytes."""


class Reshape(Moved, name="tfl.reshape"):
    """The elements of a tensor in another shape. Source: kernels/reshape.cc."""

    shape: Value | None = operand(optional=True, indices=True)
    new_shape: Any = attribute(default=None)
    traits = (
        *_COPIED,
        Undescribed(),
        View(Moved.input),
        ParametersUnread(Moved.input, Moved.output),
        SizedBy(shape),
        ComputedEarly(),
    )

    @property
    def dims(self) -> Value | None:
        """The operand if kernels read it: a vector of int32. None if the option counts."""
        shape = self.shape
        return shape if shape is not None and shape.type.storage is i32 and shape.type.rank in (None, 1) else None

    @property
    def option(self) -> list[int]:
        """The dims of the option, in which [0] stands for a scalar."""
        dims = [] if self.new_shape is None else [int(d) for d in self.new_shape]
        return [] if dims == [0] else dims

    def infer(self, site: DeclaredShapes) -> Dims:
        if self.shape is not None and self.shape.type.storage is i32:
            dims = site.shape(self.shape)
            if dims is None or len(dims) == 1:
                return sizes.reshaped(site.dims(self.input), site.ints(self.shape))
        return sizes.reshaped(site.dims(self.input), self.option)


class Squeeze(Moved, name="tfl.squeeze"):
    """Without dims of size 1. Source: kernels/squeeze.cc."""

    squeeze_dims: Any = attribute(default=None)
    traits = (
        *_COPIED,
        View(Moved.input),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        """The dims named, or every dim of 1."""
        dims, named = site.dims(self.input), self.squeeze_dims
        if named is None or not len(named):
            if None in dims:
                raise NotInferred(f"which dims of {text(dims)} are 1 is not known")
            return tuple(d for d in dims if d != 1)
        gone = {site.axis(int(a), len(dims)) for a in named}
        for axis in gone:
            agree(dims[axis], 1, f"dim {axis} that is squeezed")
        return sizes.reduced(dims, gone)


class ExpandDims(Moved, name="tfl.expand_dims"):
    """With one more dim of size 1. Source: kernels/expand_dims.cc."""

    axis: Value = operand(indices=True)
    traits = (
        *_COPIED,
        View(Moved.input),
        AsksSameScale(i8, ui8, i16),
        OneElement(axis),
        SizedBy(axis),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        (axis,) = site.whole(self.axis, 1)
        return sizes.with_dim(dims, site.axis(axis, len(dims) + 1), 1)


class Transpose(Moved, name="tfl.transpose", newest=8):
    """Dims in another order. Source: kernels/transpose.cc."""

    perm: Value = operand(indices=True)
    traits = (
        *_COPIED,
        Permutation(perm, Moved.input),
        RankWithin(Moved.input, 0, 8),
        SizedBy(perm),
    )
    versions = (
        Needs(8, rank=7),
        Needs(7, Moved.input, i4),
        Needs(6, rank=6),
        Needs(5, Moved.input, i16),
        Needs(4, rank=5),
        Needs(3, Moved.input, i1),
        Needs(2, Moved.input, i8),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        return sizes.permuted(dims, site.ints(self.perm, len(dims)))


class Padding(Moved):
    """Elements around the input: so many before and after each dim."""

    paddings: Value = operand(indices=True)
    traits: ClassVar[tuple[Trait, ...]] = (
        *Moved.traits,
        NonNegative(paddings),
        OnePerDim(paddings, Moved.input, pairs=True),
        SizedBy(paddings),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        sides = site.ints(self.paddings, 2 * len(dims))
        return sizes.padded(dims, sides[::2], sides[1::2])


_PAD_VERSIONS: Final = (
    Needs(5, Moved.input, i1),
    Needs(4, rank=5),
    Needs(3, Moved.input, i16),
    Needs(2, Moved.input, i8),
)


class Pad(Padding, name="tfl.pad", newest=6):
    """Zeros around the input. Source: kernels/pad.cc."""

    traits = (*Padding.traits, RankWithin(Moved.input, 0, 5), Surrounded(zero_point=True))
    versions = _PAD_VERSIONS


class PadV2(Padding, name="tfl.padv2", newest=6):
    """A value around the input. Source: kernels/pad.cc."""

    value: Value = operand()
    traits = (
        SameScale(Moved.input, value, Moved.output),
        NonNegative(Padding.paddings),
        SameElementType(Moved.input, value, Moved.output),
        OneElement(value),
        OnePerDim(Padding.paddings, Moved.input, pairs=True),
        RankWithin(Moved.input, 0, 5),
        MovesElements(Moved.input, value),
        SizedBy(Padding.paddings),
    )
    versions = _PAD_VERSIONS


class MirrorPad(Padding, name="tfl.mirror_pad", newest=3):
    """The input's own elements, mirrored, around it. Source: kernels/mirror_pad.cc."""

    mode: str = attribute(default="REFLECT")
    traits = (*Padding.traits, AsksSameScale(i8, ui8, i16))
    versions = (Needs(3, Moved.input, i16), Needs(2, Moved.input, i8))

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        sides = site.ints(self.paddings, 2 * len(dims))
        return sizes.mirrored(dims, sides[::2], sides[1::2], int(self.mode == "REFLECT"))


class Slice(Moved, name="tfl.slice", newest=8):
    """A block of the input. Source: kernels/slice.cc."""

    begin: Value = operand(indices=True)
    size: Value = operand(indices=True)
    traits = (
        *_COPIED,
        NonNegative(begin),
        OnePerDim(begin, Moved.input),
        OnePerDim(size, Moved.input),
        SizedBy(begin, size),
    )
    versions = (Needs(6, Moved.input, ui32), Needs(5, rank=5), Needs(4, Moved.input, i16), Needs(2, Moved.input, i8))

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        return sizes.cut(dims, site.ints(self.begin, len(dims)), site.ints(self.size, len(dims)))


class StridedSlice(Moved, name="tfl.strided_slice", newest=4):
    """A block of the input in steps, with masks as numpy's slices. Source: kernels/strided_slice.cc."""

    begin: Value = operand(indices=True)
    end: Value = operand(indices=True)
    strides: Value = operand(indices=True)
    begin_mask: int = attribute(default=0)
    end_mask: int = attribute(default=0)
    ellipsis_mask: int = attribute(default=0)
    new_axis_mask: int = attribute(default=0)
    shrink_axis_mask: int = attribute(default=0)
    offset: bool = attribute(default=False)
    traits = (
        *_COPIED,
        NoZeros(strides),
        Indexed(begin, strides, shrink_axis_mask, Moved.input, begin_mask, ellipsis_mask, new_axis_mask),
        ParametersUnread(Moved.input, Moved.output, both=False),
        SizedBy(begin, end, strides),
        ComputedEarly(),
    )
    versions = (Needs(4, rank=5), Needs(3, Moved.input, i1), Needs(2, Moved.input, i8))

    def infer(self, site: DeclaredShapes) -> Dims:
        for vector in (self.begin, self.end, self.strides):
            site.dims(vector, 1)
        begin = site.ints(self.begin)
        end, strides = (site.ints(vector, len(begin)) for vector in (self.end, self.strides))
        ends = list(map(plus, begin, end)) if self.offset else end
        masks = (self.begin_mask, self.end_mask, self.ellipsis_mask, self.new_axis_mask, self.shrink_axis_mask)
        return sizes.subscripted(site.dims(self.input), begin, ends, strides, *masks)


class Tile(Moved, name="tfl.tile", newest=2):
    """The input, repeated. Source: kernels/tile.cc."""

    multiples: Value = operand(indices=True)
    traits = (
        *_COPIED,
        NonNegative(multiples),
        OnePerDim(multiples, Moved.input),
        SizedBy(multiples),
        ComputedEarly(),
    )
    versions = (Needs(3, Moved.input, i8),)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        return tuple(map(product, zip(dims, site.ints(self.multiples, len(dims)), strict=True)))


class BroadcastTo(Moved, name="tfl.broadcast_to", newest=4):
    """The input in a shape that it broadcasts to. Source: kernels/broadcast_to.cc."""

    shape: Value = operand(indices=True)
    traits = (
        *Moved.traits,
        NonNegative(shape),
        Misreads("packed"),
        SizedBy(shape),
    )
    versions = (
        Needs(3, Moved.input, i8),
        Needs(3, Moved.input, i16),
        Needs(2, Moved.input, i32),
        Needs(2, Moved.input, i64),
        Needs(2, Moved.input, f32),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        dims, wanted = site.dims(self.input), site.ints(self.shape)
        if len(dims) > len(wanted):
            raise Misfit(f"{text(dims)} has more dims than the shape {text(tuple(wanted))}")
        for dim, want in zip(reversed(dims), reversed(wanted), strict=False):
            if dim != 1:
                agree(dim, want, f"{text(dims)} does not broadcast to {text(tuple(wanted))}")
        return tuple(wanted)


class ReverseV2(Moved, name="tfl.reverse_v2", newest=4):
    """The input, backwards along axes. Source: kernels/reverse.cc."""

    axes: Value = operand(indices=True)
    traits = (
        *_COPIED,
        Axes(axes, Moved.input),
        SameShape(Moved.input, Moved.output),
        ParametersUnread(Moved.input, Moved.output),
    )
    versions = (Needs(3, Moved.input, i8), Needs(2, Moved.input, i1))

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        elements = site.elements(self.axes) or ()
        axes = sorted(site.axis(axis, len(dims)) for axis in elements if axis is not None)
        if axes and len(axes) == len(elements) and axes != list(range(axes[0], axes[0] + len(axes))):
            raise Misfit(f"axes {axes} do not follow one another, which the kernel asks for")
        if not dims and site.shape(self.axes) != (0,):
            raise Misfit("a scalar has no axis")
        return dims


class ReverseSequence(Operator, name="tfl.reverse_sequence"):
    """The first elements of each row, backwards. Source: kernels/reverse_sequence.cc."""

    input: Value = operand()
    lengths: Value = operand(indices=True)
    output: Value = result()
    seq_dim: int = attribute(default=0)
    batch_dim: int = attribute(default=0)
    traits = (
        SameScale(input, output),
        Axis(seq_dim, input),
        Axis(batch_dim, input),
        NonNegative(lengths),
        LacksKernel(i8),
        MovesElements(input),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        """A length for each index of `batch_dim`, none greater than `seq_dim` is long."""
        dims = site.dims(self.input)
        along, batch = site.axis(self.seq_dim, len(dims)), site.axis(self.batch_dim, len(dims))
        if along == batch:
            raise Misfit(f"seq_dim and batch_dim are both {along}")
        agree(site.dims(self.lengths, 1)[0], dims[batch], f"lengths and dim {batch} of the input")
        longest, size = max((n for n in site.elements(self.lengths) or () if n is not None), default=0), dims[along]
        if size is not None and longest > size:
            raise Misfit(f"'{self.lengths.name}' has the length {longest}, and dim {along} of the input is {size}")
        return dims


class DepthBlocks(Moved):
    """Between blocks of height and width, and channels."""

    block_size: int = attribute(default=0, positive=True)
    traits: ClassVar[tuple[Trait, ...]] = (
        *Moved.traits,
        LacksKernel(i16),
    )
    versions = (Needs(2, Moved.input, i8),)


class SpaceToDepth(DepthBlocks, name="tfl.space_to_depth", newest=2):
    """Blocks of height and width as channels. Source: kernels/space_to_depth.cc."""

    def infer(self, site: DeclaredShapes) -> Dims:
        (n, h, w, c), block = site.dims(self.input, 4), self.block_size
        return (n, sizes.divided(h, block), sizes.divided(w, block), product((c, block * block)))


class DepthToSpace(DepthBlocks, name="tfl.depth_to_space"):
    """Channels as blocks of height and width. Source: kernels/depth_to_space.cc."""

    def infer(self, site: DeclaredShapes) -> Dims:
        (n, h, w, c), block = site.dims(self.input, 4), self.block_size
        return (n, product((h, block)), product((w, block)), sizes.divided(c, block * block))


class SpatialBlocks(Moved):
    """Between blocks of the spatial dims, and batches."""

    block: Value = operand(indices=True)
    traits: ClassVar[tuple[Trait, ...]] = (
        *Moved.traits,
        RankWithin(Moved.input, 3, 4),
        NoZeros(block),
        AsksSameScale(i8, ui8, i16),
    )
    versions = (Needs(4, Moved.input, i16), Needs(2, Moved.input, i8))

    def sides(self, site: DeclaredShapes, margins: Value) -> tuple[Dims, list[int | None], list[int | None]]:
        """The input's dims, the blocks of the spatial ones, and what is padded or cropped before and after each."""
        dims = site.dims(self.input, least=2)
        return dims, site.ints(self.block, len(dims) - 2), site.ints(margins, 2 * (len(dims) - 2))


class SpaceToBatchND(SpatialBlocks, name="tfl.space_to_batch_nd", newest=4):
    """Blocks of the spatial dims as batches, after padding. Source: kernels/space_to_batch_nd.cc."""

    paddings: Value = operand(indices=True)
    traits = (
        *SpatialBlocks.traits,
        NonNegative(SpatialBlocks.block, paddings),
        SizedBy(SpatialBlocks.block, paddings),
        Surrounded(zero_point=True),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        (n, *spatial, c), blocks, sides = self.sides(site, self.paddings)
        padded = sizes.padded(spatial, sides[::2], sides[1::2])
        return (product((n, *blocks)), *map(sizes.divided, padded, blocks), c)


class BatchToSpaceND(SpatialBlocks, name="tfl.batch_to_space_nd", newest=4):
    """Batches as blocks of the spatial dims, then cropped. Source: kernels/batch_to_space_nd.cc."""

    crops: Value = operand(indices=True)
    traits = (*SpatialBlocks.traits, NonNegative(SpatialBlocks.block, crops), SizedBy(SpatialBlocks.block, crops))

    def infer(self, site: DeclaredShapes) -> Dims:
        (n, *spatial, c), blocks, sides = self.sides(site, self.crops)
        crops = [None if s is None else -s for s in sides]
        whole = [product(pair) for pair in zip(spatial, blocks, strict=True)]
        return (sizes.divided(n, product(blocks)), *sizes.padded(whole, crops[::2], crops[1::2]), c)


class Dilate(Operator, name="tfl.dilate"):
    """The input with a padding value between its elements. Source: kernels/dilate.cc."""

    input: Value = operand()
    dilations: Value = operand(indices=True)
    value: Value = operand()
    output: Value = result()
    traits = (
        NoZeros(dilations),
        NonNegative(dilations),
        OneElement(value),
        Misreads("packed"),
        MovesElements(input, value),
        SizedBy(dilations),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        factors = site.ints(self.dilations, len(dims))
        return tuple(None if d is None or f is None else (d - 1) * f + 1 for d, f in zip(dims, factors, strict=True))


class Densify(Operator, name="tfl.densify"):
    """A sparse constant, spread. Source: kernels/densify.cc."""

    input: Value = operand()
    output: Value = result()
    traits = (SameScale(input, output), SameShape(input, output, strict=False), PersistentIfConstant(input))


# Tensors one after the other, and a tensor in parts.


class Concatenation(Operator, name="tfl.concatenation", newest=7):
    """Operands one after the other along an axis. Source: kernels/concatenation.cc."""

    values: list[Value | None] = operand(variadic=True)
    output: Value = result()
    axis: int = attribute(default=0)
    fused_activation_function: str = attribute(default="NONE", among=("NONE",))
    traits = (
        QuantizedTogether(values, output),
        Axis(axis, output),
        SameElementType(values, output),
        Misreads("copied"),
        AsksSameScale(i8),
        MovesElements(values),
        ComputedEarly(),
    )
    versions = (Needs(4, values, ui32), Needs(3, values, i16), Needs(2, values, i8))

    def infer(self, site: DeclaredShapes) -> Dims:
        return site.joined(self.values, self.axis)


def _divides(input: Any, outputs: Any, axis: Any, count: Any) -> tuple[Trait, ...]:
    """Traits of operators that divide a tensor along an axis into `count` parts."""
    return (
        SameScale(input, outputs),
        Axes(axis, input),
        Counts(count, outputs),
        SameElementType(input, outputs),
        Misreads("copied"),
        MovesElements(input),
    )


class Split(Operator, name="tfl.split", newest=5):
    """Equal parts along an axis. Source: kernels/split.cc."""

    axis: Value = operand(indices=True)
    input: Value = operand()
    outputs: list[Value] = result(variadic=True)
    num_splits: int = attribute(default=0)
    traits = (*_divides(input, outputs, axis, num_splits), SizedBy(axis))
    versions = (Needs(4, input, i16), Needs(3, input, i32), Needs(2, input, i8))

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        dims, count = site.dims(self.input), len(self.outputs)
        axis = site.chosen_axis(self.axis, len(dims))
        if axis is None:
            return [(None,) * len(dims)] * count
        size = dims[axis]
        if size is not None and size % count:
            raise Misfit(f"{size} does not divide into {count} parts")
        return [sizes.replaced(dims, axis, None if size is None else size // count)] * count


class SplitV(Operator, name="tfl.split_v", newest=3):
    """Parts of given sizes along an axis. Source: kernels/split_v.cc."""

    input: Value = operand()
    sizes: Value = operand(indices=True)
    axis: Value = operand(indices=True)
    outputs: list[Value] = result(variadic=True)
    num_splits: int = attribute(default=0)
    traits = (*_divides(input, outputs, axis, num_splits), SizedBy(sizes, axis))
    versions = (Needs(2, input, i8),)

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        """At most one size is -1: what is left."""
        dims = site.dims(self.input)
        counts = site.ints(self.sizes, len(self.outputs))
        if counts.count(-1) > 1:
            raise Misfit(f"sizes {counts} leave more than one part open")
        axis = site.chosen_axis(self.axis, len(dims))
        if axis is None:
            return [(None,) * len(dims)] * len(counts)
        rest = plus(dims[axis], *(None if n is None else -max(n, 0) for n in counts))
        if rest is not None and (rest < 0 or (rest and -1 not in counts)):
            raise Misfit(f"sizes {counts} do not add up to {dims[axis]}")
        return [sizes.replaced(dims, axis, rest if n == -1 else n) for n in counts]


class Pack(Operator, name="tfl.pack", newest=5):
    """Operands along a new axis. Source: kernels/pack.cc."""

    values: list[Value | None] = operand(variadic=True)
    output: Value = result()
    values_count: int = attribute(default=0)
    axis: int = attribute(default=0)
    traits = (
        SameScale(values, output),
        Axis(axis, values, more=1),
        Counts(values_count, values),
        SameElementType(values, output),
        Misreads("copied"),
        AsksSameScale(i8, ui8, i16),
        MovesElements(values),
    )
    versions = (Needs(4, values, ui32), Needs(3, values, i16), Needs(2, values, i8))

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.common(self.values)
        return sizes.with_dim(dims, site.axis(self.axis, len(dims) + 1), len(self.values))


class Unpack(Operator, name="tfl.unpack", newest=6):
    """Each index of an axis by itself. Source: kernels/unpack.cc."""

    input: Value = operand()
    outputs: list[Value] = result(variadic=True)
    num: int = attribute(default=0)
    axis: int = attribute(default=0)
    traits = (
        SameScale(input, outputs),
        Axis(axis, input),
        Counts(num, outputs),
        SameElementType(input, outputs),
        Misreads("copied"),
        AsksSameScale(i8, ui8, i16),
        MovesElements(input),
    )
    versions = (Needs(2, input, i8), Needs(2, input, ui8), Needs(3, input, i1), Needs(4, input, i16))

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        dims = site.dims(self.input)
        axis = site.axis(self.axis, len(dims))
        agree(dims[axis], len(self.outputs), "the dim that is unpacked and the results")
        return [sizes.without_dim(dims, axis)] * len(self.outputs)
