"""Numpy evaluator of the integer form: constant folding, table building, tests."""

from tflq.evaluate import (
    arg,
    bits,
    control,
    convolution,
    elementwise,
    floats,
    layout,
    lookup,
    matmul,
    movement,
    pooling,
    reduction,
    requantize,
    resize,
)
from tflq.evaluate.registry import CONTROL, EVALUATORS, Run, evaluate_function, evaluate_op, evaluator

__all__ = [
    "CONTROL",
    "EVALUATORS",
    "Run",
    "arg",
    "bits",
    "control",
    "convolution",
    "elementwise",
    "evaluate_function",
    "evaluate_op",
    "evaluator",
    "floats",
    "layout",
    "lookup",
    "matmul",
    "movement",
    "pooling",
    "reduction",
    "requantize",
    "resize",
]
