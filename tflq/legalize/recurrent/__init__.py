"""Recurrent operators: the integer kernels' steps written out, and their state."""

from tflq.legalize.recurrent import (
    lstm,
    svdf,
)

__all__ = [
    "lstm",
    "svdf",
]
