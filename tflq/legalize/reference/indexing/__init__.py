"""Elements by index, as reference kernels look them up."""
