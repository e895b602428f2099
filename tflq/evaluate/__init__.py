"""Numpy evaluator of the integer form: constant folding, table building, tests."""

from tflq.evaluate import elementwise
from tflq.evaluate.registry import EVALUATORS, evaluate_function, evaluate_op, evaluator

__all__ = ["EVALUATORS", "elementwise", "evaluate_function", "evaluate_op", "evaluator"]
