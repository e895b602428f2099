"""Core dialects of MLIR, and fxpmath."""
