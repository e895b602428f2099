"""The rules of convolutions: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.convolution import Conv2D, Conv3D, Conv3DTranspose, DepthwiseConv2D, TransposeConv
from tflq.legalize.real.generic import sums
from tflq.legalize.reference.convolution import convolution, transpose_conv
from tflq.legalize.reference.generic import reinterpreted
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

RULES: Final[Rules] = {
    Conv2D: (convolution.convolution, reinterpreted.reinterpreted, sums.real_sum),
    DepthwiseConv2D: (convolution.convolution, reinterpreted.reinterpreted, sums.real_sum),
    TransposeConv: (transpose_conv.transpose_conv, sums.real_sum),
    Conv3D: (sums.real_sum,),
    Conv3DTranspose: (sums.real_sum,),
}
