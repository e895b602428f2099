"""Numpy evaluator of the integer form: constant folding, table building, tests."""

from tflq.evaluate import (
    arg,
    bits,
    convolution,
    elementwise,
    floats,
    lookup,
    matmul,
    movement,
    pooling,
    requantize,
    resize,
)
from tflq.evaluate.registry import EVALUATORS, evaluate_function, evaluate_op, evaluator

__all__ = [
    "EVALUATORS",
    "arg",
    "bits",
    "convolution",
    "elementwise",
    "evaluate_function",
    "evaluate_op",
    "evaluator",
    "floats",
    "lookup",
    "matmul",
    "movement",
    "pooling",
    "requantize",
    "resize",
]
