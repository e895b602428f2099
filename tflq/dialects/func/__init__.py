"""The `func` dialect of MLIR: calls of functions, and functions as values. Functions themselves are no ops here."""
