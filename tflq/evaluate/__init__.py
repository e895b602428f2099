"""Numpy evaluator: what each op computes on arrays. For folding, tables, known sizes, tests."""

from tflq.evaluate.held import held_array, held_dtype
from tflq.evaluate.registry import Run, evaluate_function, evaluate_op, evaluator, running

__all__ = ["Run", "evaluate_function", "evaluate_op", "evaluator", "held_array", "held_dtype", "running"]
