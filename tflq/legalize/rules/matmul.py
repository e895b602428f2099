"""The rules of products of matrices: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.matmul import BatchMatMul, FullyConnected
from tflq.legalize.real.generic import sums
from tflq.legalize.real.matmul import batch_matmul as real_batch_matmul
from tflq.legalize.real.matmul import blocks
from tflq.legalize.reference.generic import reinterpreted
from tflq.legalize.reference.matmul import batch_matmul, fully_connected
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

RULES: Final[Rules] = {
    FullyConnected: (fully_connected.fully_connected, reinterpreted.reinterpreted, blocks.blocks, sums.real_sum),
    BatchMatMul: (batch_matmul.batch_matmul, real_batch_matmul.real_product),
}
