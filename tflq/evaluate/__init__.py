"""Numpy evaluator: constant folding, table building, tests."""

from tflq.evaluate.registry import Run, control, evaluate_function, evaluate_op, evaluator

__all__ = ["Run", "control", "evaluate_function", "evaluate_op", "evaluator"]
