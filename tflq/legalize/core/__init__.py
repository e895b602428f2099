"""Ops of MLIR's core dialects (arith, math, tensor, linalg, shape, func), which text has, as ops that selection takes:
those of `tosa` on integers, TFLite's builtins on floats."""
