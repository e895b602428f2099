"""Elementwise arithmetic of two tensors, as reference kernels compute it."""
