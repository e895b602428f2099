"""Integers and sums of one scale as those of another."""

from tflq.select.rescale import integer, mean, real

__all__ = ["integer", "mean", "real"]
