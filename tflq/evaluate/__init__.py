"""Numpy evaluator of the integer form: constant folding, table building, tests."""

from tflq.evaluate import arg, bits, convolution, elementwise, movement, pooling, resize
from tflq.evaluate.registry import EVALUATORS, evaluate_function, evaluate_op, evaluator

__all__ = ["EVALUATORS", "arg", "bits", "convolution", "elementwise", "evaluate_function", "evaluate_op", "evaluator", "movement", "pooling", "resize"]
