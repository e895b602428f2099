"""Operators that compute in float on quantized constants, and the kernels that take them (hybrid kernels).

A hybrid kernel quantizes the activations as it runs, or dequantizes its weights, or rows of a table. Where there is
none for the weights at hand, the constants become float ones. None reads a zero point; some refuse one other than 0.

Sources: kernels/conv.cc, depthwise_conv.cc (whose hybrid kernel reads a scale per channel), transpose_conv.cc,
fully_connected.cc, batch_matmul.cc, embedding_lookup.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tflq.dialects.declare import trait_of
from tflq.dialects.forms import kept_reason
from tflq.dialects.tfl.convolution import DepthwiseConv2D
from tflq.dialects.tfl.indexing import EmbeddingLookup
from tflq.dialects.tfl.matmul import FullyConnected
from tflq.dialects.traits.kernels import HybridKernel
from tflq.ir.core import Op, Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, ui8
from tflq.legalize.scaling import kernel_name

__all__ = ["disregarded", "without_kernel"]

_SPARSE_BLOCK = 16
_NONE = HybridKernel(())


def _kernel(op: Op) -> HybridKernel:
    """The operator's hybrid kernel; one for no weights, if it has none."""
    return trait_of(op, HybridKernel) or _NONE


def disregarded(op: Op) -> str:
    """What the kernel of such an op disregards of its constants' parameters; empty if nothing."""
    for value in op.operands:
        if value is None or not value.type.quantized or kept_reason(op) is not None:
            continue
        if value.type.storage == ui8:
            return f"the kernel reads '{value.name}', which is uint8, as int8 without a zero point"
        blocks = isinstance(value.type.element, UniformQuantizedSubChannelType)
        if blocks and value.type.storage in _kernel(op).scaleless:
            return f"the kernel reads the scales of '{value.name}', one per block, as 0"
        if blocks and isinstance(op, FullyConnected):
            return (
                f"the reference kernels ignore the scales per block of '{value.name}', the optimized ones a fused "
                "activation"
            )
        if _zero_points(value).any():
            return f"the kernel ignores the zero points of '{value.name}', which are not 0"
    return ""


def _in_blocks(op: Op, sparsity: Mapping[str, Any]) -> bool:
    """Whether sparse weights are stored as the one hybrid kernel takes them that reads such."""
    blocks, levels = sparsity["block_map"], sparsity["dim_metadata"]
    whole = blocks is not None and len(blocks) == 1 and levels[-1]["dense_size"] == _SPARSE_BLOCK
    return isinstance(op, FullyConnected) and whole


def _zero_points(value: Value) -> np.ndarray:
    element = value.type.element
    return np.atleast_1d(getattr(element, "zero_points", getattr(element, "zero_point", 0)))


def without_kernel(op: Op, *, real: bool = False) -> str:
    """Why no kernel computes such an op on its constants as they are; empty if one does. `real`: what disregards
    parameters does not."""
    if kept_reason(op) is not None:
        return ""
    kernel, known = kernel_name(op), _kernel(op)
    for place, value in enumerate(op.operands):
        if value is None or not value.type.quantized:
            continue
        element, storage = value.type.element, value.type.storage
        blocks = isinstance(element, UniformQuantizedSubChannelType)
        if blocks and storage not in known.blockwise + known.scaleless:
            return f"{kernel} has no kernel for float activations with {storage} blockwise constants"
        if place != 1 or storage not in known.weights:
            return f"{kernel} has no kernel for float activations with {storage} constants"
        if "sparsity" in value.info and not _in_blocks(op, value.info["sparsity"]):
            return (
                f"{kernel} has no kernel for float activations with sparse constants but in blocks of {_SPARSE_BLOCK}"
            )
        one_scale = not isinstance(element, UniformQuantizedPerAxisType)
        if isinstance(op, DepthwiseConv2D) and one_scale and value.type.shape and value.type.shape[-1] != 1:
            return f"{kernel} on float activations reads a scale per channel, and there is one"
        zeros = _zero_points(value).reshape(-1)
        if (storage in known.symmetric and zeros.any()) or (isinstance(op, EmbeddingLookup) and zeros[0]):
            return f"{kernel} takes no zero point of '{value.name}' but 0"
        axis = getattr(element, "axis", 0)
        if isinstance(op, EmbeddingLookup) and axis:
            return f"{kernel} takes scales per row, and those of '{value.name}' are along dim {axis}"
        last = (value.type.shape or (0,))[-1] or 0
        shorter = isinstance(element, UniformQuantizedSubChannelType) and last % element.block_sizes[-1]
        if storage in known.blockwise and shorter:
            return f"{kernel} takes whole blocks, and the last of '{value.name}' is shorter"
    return disregarded(op) if real else ""
