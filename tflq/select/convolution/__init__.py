"""Convolutions as products of bytes, or on the float builtins."""

from tflq.select.convolution import conv2d, conv3d, depthwise, transposed

__all__ = ["conv2d", "conv3d", "depthwise", "transposed"]
