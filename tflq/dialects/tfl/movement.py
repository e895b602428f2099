"""Elements in another order, place or number."""

from __future__ import annotations

from typing import Any

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.tfl.versions import Needs
from tflq.dialects.traits.constants import Axes, Axis, Counts, NonNegative, NoZeros, Permutation
from tflq.dialects.traits.effects import Undescribed
from tflq.dialects.traits.kernels import AsksSameScale, LacksKernel, Misreads
from tflq.dialects.traits.memory import ComputedEarly, KeptIfConstant, SizedBy, View
from tflq.dialects.traits.movement import MovesElements
from tflq.dialects.traits.quantization import ParametersUnread, QuantizedTogether, SameScale
from tflq.dialects.traits.types import OnePerDim, SameElementType, SameShape
from tflq.ir.core import Value
from tflq.ir.types import f32, i1, i4, i8, i16, i32, i64, ui8, ui32

__all__ = [
    "BatchToSpaceND",
    "BroadcastTo",
    "Concatenation",
    "Densify",
    "DepthToSpace",
    "Dilate",
    "ExpandDims",
    "MirrorPad",
    "Pack",
    "Pad",
    "PadV2",
    "Reshape",
    "ReverseSequence",
    "ReverseV2",
    "Slice",
    "SpaceToBatchND",
    "SpaceToDepth",
    "Split",
    "SplitV",
    "Squeeze",
    "StridedSlice",
    "Tile",
    "Transpose",
    "Unpack",
]


class Reshape(Operator, name="tfl.reshape"):
    """The same elements in another shape. Source: kernels/reshape.cc."""

    __slots__ = ()
    input: Value = operand()
    shape: Value | None = operand(optional=True, indices=True)
    output: Value = result()
    new_shape: Any = attribute(default=None)
    traits = (
        SameScale(input, output),
        Undescribed(),
        SameElementType(input, output),
        Misreads("copied"),
        View(input),
        ParametersUnread(input, output),
        MovesElements(input),
        SizedBy(shape),
        ComputedEarly(),
    )


class Squeeze(Operator, name="tfl.squeeze"):
    """Without dims of size 1. Source: kernels/squeeze.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    squeeze_dims: Any = attribute(default=None)
    traits = (
        SameScale(input, output),
        SameElementType(input, output),
        Misreads("copied"),
        View(input),
        MovesElements(input),
    )


class ExpandDims(Operator, name="tfl.expand_dims"):
    """With one more dim of size 1. Source: kernels/expand_dims.cc."""

    __slots__ = ()
    input: Value = operand()
    axis: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        SameElementType(input, output),
        Misreads("copied"),
        View(input),
        AsksSameScale(i8, ui8, i16),
        MovesElements(input),
        SizedBy(axis),
    )


class Transpose(Operator, name="tfl.transpose", newest=8):
    """Dims in another order. Source: kernels/transpose.cc."""

    __slots__ = ()
    input: Value = operand()
    perm: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        Permutation(perm, input),
        SameElementType(input, output),
        Misreads("copied"),
        MovesElements(input),
        SizedBy(perm),
    )
    versions = (
        Needs(8, rank=7),
        Needs(7, input, i4),
        Needs(6, rank=6),
        Needs(5, input, i16),
        Needs(4, rank=5),
        Needs(3, input, i1),
        Needs(2, input, i8),
    )


class Concatenation(Operator, name="tfl.concatenation", newest=7):
    """Operands one after the other along an axis. Source: kernels/concatenation.cc."""

    __slots__ = ()
    values: list[Value | None] = operand(variadic=True)
    output: Value = result()
    axis: int = attribute(default=0)
    fused_activation_function: str = attribute(default="NONE")
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


class Split(Operator, name="tfl.split", newest=5):
    """Equal parts along an axis. Source: kernels/split.cc."""

    __slots__ = ()
    axis: Value = operand(indices=True)
    input: Value = operand()
    outputs: list[Value] = result(variadic=True)
    num_splits: int = attribute(default=0)
    traits = (
        SameScale(input, outputs),
        Axes(axis, input),
        Counts(num_splits, outputs),
        SameElementType(input, outputs),
        Misreads("copied"),
        MovesElements(input),
        SizedBy(axis),
    )
    versions = (Needs(4, input, i16), Needs(3, input, i32), Needs(2, input, i8))


class SplitV(Operator, name="tfl.split_v", newest=3):
    """Parts of given sizes along an axis. Source: kernels/split_v.cc."""

    __slots__ = ()
    input: Value = operand()
    sizes: Value = operand(indices=True)
    axis: Value = operand(indices=True)
    outputs: list[Value] = result(variadic=True)
    num_splits: int = attribute(default=0)
    traits = (
        SameScale(input, outputs),
        Axes(axis, input),
        Counts(num_splits, outputs),
        SameElementType(input, outputs),
        Misreads("copied"),
        MovesElements(input),
        SizedBy(sizes, axis),
    )
    versions = (Needs(2, input, i8),)


class Pack(Operator, name="tfl.pack", newest=5):
    """Operands along a new axis. Source: kernels/pack.cc."""

    __slots__ = ()
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


class Unpack(Operator, name="tfl.unpack", newest=6):
    """Each index of an axis by itself. Source: kernels/unpack.cc."""

    __slots__ = ()
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


class Pad(Operator, name="tfl.pad", newest=6):
    """Zeros around the input. Source: kernels/pad.cc."""

    __slots__ = ()
    input: Value = operand()
    paddings: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        NonNegative(paddings),
        SameElementType(input, output),
        OnePerDim(paddings, input, pairs=True),
        MovesElements(input),
        SizedBy(paddings),
    )
    versions = (Needs(5, input, i1), Needs(4, rank=5), Needs(3, input, i16), Needs(2, input, i8))


class PadV2(Operator, name="tfl.padv2", newest=6):
    """A value around the input. Source: kernels/pad.cc."""

    __slots__ = ()
    input: Value = operand()
    paddings: Value = operand(indices=True)
    value: Value = operand()
    output: Value = result()
    traits = (
        SameScale(input, value, output),
        NonNegative(paddings),
        SameElementType(input, value, output),
        OnePerDim(paddings, input, pairs=True),
        MovesElements(input, value),
        SizedBy(paddings),
    )
    versions = (Needs(5, input, i1), Needs(4, rank=5), Needs(3, input, i16), Needs(2, input, i8))


class MirrorPad(Operator, name="tfl.mirror_pad", newest=3):
    """The input's own elements, mirrored, around it. Source: kernels/mirror_pad.cc."""

    __slots__ = ()
    input: Value = operand()
    paddings: Value = operand(indices=True)
    output: Value = result()
    mode: str = attribute(default="REFLECT")
    traits = (
        SameScale(input, output),
        NonNegative(paddings),
        SameElementType(input, output),
        OnePerDim(paddings, input, pairs=True),
        AsksSameScale(i8, ui8, i16),
        MovesElements(input),
        SizedBy(paddings),
    )
    versions = (Needs(3, input, i16), Needs(2, input, i8))


class Slice(Operator, name="tfl.slice", newest=8):
    """A block of the input. Source: kernels/slice.cc."""

    __slots__ = ()
    input: Value = operand()
    begin: Value = operand(indices=True)
    size: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        NonNegative(begin),
        SameElementType(input, output),
        OnePerDim(begin, input),
        OnePerDim(size, input),
        Misreads("copied"),
        MovesElements(input),
        SizedBy(begin, size),
    )
    versions = (Needs(6, input, ui32), Needs(5, rank=5), Needs(4, input, i16), Needs(2, input, i8))


class StridedSlice(Operator, name="tfl.strided_slice", newest=4):
    """A block of the input in steps, with masks as numpy's slices. Source: kernels/strided_slice.cc."""

    __slots__ = ()
    input: Value = operand()
    begin: Value = operand(indices=True)
    end: Value = operand(indices=True)
    strides: Value = operand(indices=True)
    output: Value = result()
    begin_mask: int = attribute(default=0)
    end_mask: int = attribute(default=0)
    ellipsis_mask: int = attribute(default=0)
    new_axis_mask: int = attribute(default=0)
    shrink_axis_mask: int = attribute(default=0)
    offset: bool = attribute(default=False)
    traits = (
        SameScale(input, output),
        NoZeros(strides),
        SameElementType(input, output),
        Misreads("copied"),
        ParametersUnread(input, output, both=False),
        MovesElements(input),
        SizedBy(begin, end, strides),
        ComputedEarly(),
    )
    versions = (Needs(4, rank=5), Needs(3, input, i1), Needs(2, input, i8))


class Tile(Operator, name="tfl.tile", newest=2):
    """The input, repeated. Source: kernels/tile.cc."""

    __slots__ = ()
    input: Value = operand()
    multiples: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        NonNegative(multiples),
        SameElementType(input, output),
        OnePerDim(multiples, input),
        Misreads("copied"),
        MovesElements(input),
        SizedBy(multiples),
        ComputedEarly(),
    )
    versions = (Needs(3, input, i8),)


class BroadcastTo(Operator, name="tfl.broadcast_to", newest=4):
    """The input in a shape that it broadcasts to. Source: kernels/broadcast_to.cc."""

    __slots__ = ()
    input: Value = operand()
    shape: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        NonNegative(shape),
        SameElementType(input, output),
        Misreads("packed"),
        MovesElements(input),
        SizedBy(shape),
    )
    versions = (
        Needs(3, input, i8),
        Needs(3, input, i16),
        Needs(2, input, i32),
        Needs(2, input, i64),
        Needs(2, input, f32),
    )


class ReverseV2(Operator, name="tfl.reverse_v2", newest=4):
    """The input, backwards along axes. Source: kernels/reverse.cc."""

    __slots__ = ()
    input: Value = operand()
    axes: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        Axes(axes, input),
        SameElementType(input, output),
        SameShape(input, output),
        Misreads("copied"),
        ParametersUnread(input, output),
        MovesElements(input),
    )
    versions = (Needs(3, input, i8), Needs(2, input, i1))


class ReverseSequence(Operator, name="tfl.reverse_sequence"):
    """The first elements of each row, backwards. Source: kernels/reverse_sequence.cc."""

    __slots__ = ()
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
        SameShape(input, output, strict=False),
    )


class SpaceToDepth(Operator, name="tfl.space_to_depth", newest=2):
    """Blocks of height and width as channels. Source: kernels/space_to_depth.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    block_size: int = attribute(default=0, positive=True)
    traits = (SameScale(input, output), SameElementType(input, output), LacksKernel(i16), MovesElements(input))
    versions = (Needs(2, input, i8),)


class DepthToSpace(Operator, name="tfl.depth_to_space"):
    """Channels as blocks of height and width. Source: kernels/depth_to_space.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    block_size: int = attribute(default=0, positive=True)
    traits = (SameScale(input, output), SameElementType(input, output), LacksKernel(i16), MovesElements(input))
    versions = (Needs(2, input, i8),)


class SpaceToBatchND(Operator, name="tfl.space_to_batch_nd", newest=4):
    """Blocks of the spatial dims as batches, after padding. Source: kernels/space_to_batch_nd.cc."""

    __slots__ = ()
    input: Value = operand()
    block: Value = operand(indices=True)
    paddings: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        NonNegative(block, paddings),
        NoZeros(block),
        SameElementType(input, output),
        AsksSameScale(i8, ui8, i16),
        MovesElements(input),
        SizedBy(block, paddings),
    )
    versions = (Needs(4, input, i16), Needs(2, input, i8))


class BatchToSpaceND(Operator, name="tfl.batch_to_space_nd", newest=4):
    """Batches as blocks of the spatial dims, then cropped. Source: kernels/batch_to_space_nd.cc."""

    __slots__ = ()
    input: Value = operand()
    block: Value = operand(indices=True)
    crops: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        NonNegative(block, crops),
        NoZeros(block),
        SameElementType(input, output),
        AsksSameScale(i8, ui8, i16),
        MovesElements(input),
        SizedBy(block, crops),
    )
    versions = (Needs(4, input, i16), Needs(2, input, i8))


class Dilate(Operator, name="tfl.dilate"):
    """The input with a padding value between its elements. Source: kernels/dilate.cc."""

    __slots__ = ()
    input: Value = operand()
    dilations: Value = operand(indices=True)
    value: Value = operand()
    output: Value = result()
    traits = (
        NoZeros(dilations),
        NonNegative(dilations),
        Misreads("packed"),
        MovesElements(input, value),
        SizedBy(dilations),
    )


class Densify(Operator, name="tfl.densify"):
    """A sparse constant, spread. Source: kernels/densify.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (SameScale(input, output), SameShape(input, output, strict=False), KeptIfConstant(input))
