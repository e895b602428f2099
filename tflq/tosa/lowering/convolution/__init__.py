"""Convolutions: of integers, of floats."""

from tflq.tosa.lowering.convolution import floats, integers

__all__ = ["floats", "integers"]
