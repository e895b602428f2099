"""The `arith` dialect of MLIR: arithmetic on scalars and, element by element, on tensors."""
