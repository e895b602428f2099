"""Operators whose reference kernels compute a quantized signature: their arithmetic, bit for bit."""
