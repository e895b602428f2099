"""Reductions, and where the greatest and the least elements are."""

from tflq.tosa.lowering.reduction import arg, axes, cumulative, top_k

__all__ = ["arg", "axes", "cumulative", "top_k"]
