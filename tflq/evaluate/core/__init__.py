"""Evaluators of MLIR's core dialects: arith, math, tensor, linalg, shape and func."""
