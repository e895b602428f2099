"""Products of matrices, as reference kernels compute it."""
