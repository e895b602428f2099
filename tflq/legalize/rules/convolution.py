"""The rules of convolutions: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.convolution import Conv2D, Conv3D, Conv3DTranspose, DepthwiseConv2D, TransposeConv
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

sums = later("real.generic.sums")
convolution = later("reference.convolution.convolution")
transpose_conv = later("reference.convolution.transpose_conv")
reinterpreted = later("reference.generic.reinterpreted")

RULES: Final[Rules] = {
    Conv2D: (convolution.convolution, reinterpreted.reinterpreted, sums.real_sum),
    DepthwiseConv2D: (convolution.convolution, reinterpreted.reinterpreted, sums.real_sum),
    TransposeConv: (transpose_conv.transpose_conv, sums.real_sum),
    Conv3D: (sums.real_sum,),
    Conv3DTranspose: (sums.real_sum,),
}
