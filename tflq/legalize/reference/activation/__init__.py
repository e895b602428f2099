"""Activations, as reference kernels compute it."""
