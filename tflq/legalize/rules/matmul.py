"""The rules of products of matrices: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.matmul import BatchMatMul, FullyConnected
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

sums = later("real.generic.sums")
real_batch_matmul = later("real.matmul.batch_matmul")
blocks = later("real.matmul.blocks")
reinterpreted = later("reference.generic.reinterpreted")
batch_matmul = later("reference.matmul.batch_matmul")
fully_connected = later("reference.matmul.fully_connected")

RULES: Final[Rules] = {
    FullyConnected: (fully_connected.fully_connected, reinterpreted.reinterpreted, blocks.blocks, sums.real_sum),
    BatchMatMul: (batch_matmul.batch_matmul, real_batch_matmul.real_product),
}
