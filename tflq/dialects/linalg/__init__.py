"""The `linalg` dialect of MLIR, as far as it is a loop over elements."""
