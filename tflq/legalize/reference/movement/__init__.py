"""Data movement that computes something, as reference kernels compute it."""
