"""The rules of products of matrices: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.matmul import BatchMatMul, FullyConnected
from tflq.legalize.real import blocks, products, sums
from tflq.legalize.reference import fully_connected, matmul, reinterpreted
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

RULES: Final[Rules] = {
    FullyConnected: (fully_connected.fully_connected, reinterpreted.reinterpreted, blocks.blocks, sums.real_sum),
    BatchMatMul: (matmul.batch_matmul, products.real_product),
}
