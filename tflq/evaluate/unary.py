"""Evaluators of TFLite's functions of one plain number."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.unary import Abs, Ceil, Floor, Neg, Square, ZerosLike
from tflq.evaluate.registry import evaluator, of_arrays

__all__: list[str] = []


evaluator(Abs)(of_arrays(np.abs))
evaluator(Ceil)(of_arrays(np.ceil))
evaluator(Floor)(of_arrays(np.floor))
evaluator(Neg)(of_arrays(np.negative))
evaluator(Square)(of_arrays(np.square))
evaluator(ZerosLike)(of_arrays(np.zeros_like))
