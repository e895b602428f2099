"""The rules of pooling: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.pooling import AveragePool2D, L2Pool2D, MaxPool2D, ReduceWindow
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

square_sums = later("real.generic.square_sums")
pooling = later("reference.pooling")

RULES: Final[Rules] = {
    AveragePool2D: (pooling.pool,),
    MaxPool2D: (pooling.pool,),
    L2Pool2D: (square_sums.l2_pool,),
    ReduceWindow: (pooling.reduce_window,),
}
