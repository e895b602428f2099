"""Images in another size, as reference kernels compute it."""
