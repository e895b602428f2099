"""Sums, products, quotients, extremes and powers."""

from tflq.tosa.lowering.arithmetic import angle, integers, kernels, power

__all__ = ["angle", "integers", "kernels", "power"]
