"""Convolutions, as reference kernels compute it."""
