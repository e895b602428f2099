"""The rules of reductions: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.reduction import (
    ArgMax,
    ArgMin,
    Cumsum,
    Mean,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    SegmentSum,
    Sum,
    TopKV2,
    UnsortedSegmentMax,
    UnsortedSegmentMin,
    UnsortedSegmentSum,
)
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

functions = later("real.arithmetic.functions")
real_reduction = later("real.reduction.reduction")
segments = later("real.reduction.segments")
reference_reduction = later("reference.reduction")
movement = later("reference.generic.movement")

RULES: Final[Rules] = {
    Mean: (reference_reduction.mean_or_sum, real_reduction.mean_or_sum),
    Sum: (reference_reduction.mean_or_sum, real_reduction.mean_or_sum),
    ReduceProd: (reference_reduction.product, real_reduction.product),
    ReduceMax: (reference_reduction.extreme, real_reduction.extreme),
    ReduceMin: (reference_reduction.extreme, real_reduction.extreme),
    Cumsum: (functions.cumsum,),
    ArgMax: (reference_reduction.arg,),
    ArgMin: (reference_reduction.arg,),
    TopKV2: (movement.move,),
    SegmentSum: (segments.segment_sum,),
    UnsortedSegmentSum: (segments.segment_sum,),
    UnsortedSegmentMax: (segments.segment_extreme,),
    UnsortedSegmentMin: (segments.segment_extreme,),
}
