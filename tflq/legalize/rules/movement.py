"""The rules of operators that move elements: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.movement import (
    BatchToSpaceND,
    BroadcastTo,
    Concatenation,
    Densify,
    DepthToSpace,
    Dilate,
    ExpandDims,
    MirrorPad,
    Pack,
    Pad,
    PadV2,
    Reshape,
    ReverseSequence,
    ReverseV2,
    Slice,
    SpaceToBatchND,
    SpaceToDepth,
    Split,
    SplitV,
    Squeeze,
    StridedSlice,
    Tile,
    Transpose,
    Unpack,
)
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

movement = later("reference.generic.movement")
joining = later("reference.movement.joining")
padding = later("reference.movement.padding")

RULES: Final[Rules] = {
    Reshape: (movement.move,),
    Squeeze: (movement.move,),
    ExpandDims: (movement.move,),
    Transpose: (movement.move,),
    Concatenation: (joining.concatenation,),
    Split: (movement.move,),
    SplitV: (movement.move,),
    Pack: (movement.move,),
    Unpack: (movement.move,),
    Pad: (padding.pad,),
    PadV2: (padding.pad,),
    MirrorPad: (movement.move,),
    Slice: (movement.move,),
    StridedSlice: (movement.move,),
    Tile: (movement.move,),
    BroadcastTo: (movement.move,),
    ReverseV2: (movement.move,),
    ReverseSequence: (movement.move,),
    SpaceToDepth: (movement.move,),
    DepthToSpace: (movement.move,),
    SpaceToBatchND: (padding.space_to_batch,),
    BatchToSpaceND: (movement.move,),
    Dilate: (movement.move,),
    Densify: (movement.densify,),
}
