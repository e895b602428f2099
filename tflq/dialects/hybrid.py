"""Hybrid operators: float activations, quantized constants."""

from __future__ import annotations

from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.indexing import EmbeddingLookup
from tflq.ir.core import Op
from tflq.ir.types import f32

__all__ = ["is_hybrid"]


def is_hybrid(op: Op) -> bool:
    """Whether an op computes in float on quantized constants."""
    if isinstance(op, Dequantize) or any(v.type.quantized for v in op.results):
        return False
    quantized = [v for v in op.operands if v is not None and v.type.quantized]
    activations = [v for v in op.operands if v is not None and not v.is_constant]
    if isinstance(op, EmbeddingLookup):
        return all(v.is_constant for v in quantized) and op.result.type.storage == f32
    return all(v.is_constant for v in quantized) and any(v.type.storage.is_float for v in activations)
