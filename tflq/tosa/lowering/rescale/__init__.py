"""Integers of one scale as those of another."""

from tflq.tosa.lowering.rescale import doubles, integers, low_word

__all__ = ["doubles", "integers", "low_word"]
