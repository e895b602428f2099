"""Operators that compute in float on quantized constants, and the kernels that take them (hybrid kernels).

A hybrid kernel quantizes the activations as it runs, or dequantizes its weights. Where there is none for the weights at
hand, the constants become float ones.

Sources: kernels/conv.cc, depthwise_conv.cc (whose hybrid kernel reads a scale per channel), transpose_conv.cc,
fully_connected.cc, batch_matmul.cc.
"""

from __future__ import annotations

from collections.abc import Mapping

from tflq.ir.core import Op
from tflq.ir.forms import KEPT
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedSubChannelType

__all__ = ["computes_in_float", "without_kernel"]

_WEIGHTS: Mapping[str, frozenset[str]] = {
    "tfl.batch_matmul": frozenset({"i8"}),
    "tfl.conv_2d": frozenset({"i4", "i8", "ui8"}),
    "tfl.depthwise_conv_2d": frozenset({"i8"}),
    "tfl.fully_connected": frozenset({"i2", "i4", "i8", "ui8"}),
    "tfl.transpose_conv": frozenset({"i8"}),
}
"""Types of operand 1 that hybrid kernels take."""

_BLOCKWISE = ("tfl.fully_connected", "i4")
"""The one that takes weights with a scale per block."""


def computes_in_float(op: Op) -> bool:
    """Whether an op computes in float on quantized constants."""
    if op.name == "tfl.dequantize" or any(v.type.quantized for v in op.results):
        return False
    quantized = [v for v in op.operands if v is not None and v.type.quantized]
    activations = [v for v in op.operands if v is not None and not v.is_constant]
    return all(v.is_constant for v in quantized) and any(v.type.storage.is_float for v in activations)


def without_kernel(op: Op) -> str:
    """Why no kernel computes such an op on its constants as they are; empty if one does."""
    if op.name in KEPT:
        return ""
    kernel, weights = op.name[4:].upper(), _WEIGHTS.get(op.name, frozenset())
    for place, value in enumerate(op.operands):
        if value is None or not value.type.quantized:
            continue
        blocks = isinstance(value.type.element, UniformQuantizedSubChannelType)
        if blocks and (op.name, str(value.type.storage)) != _BLOCKWISE:
            return f"{kernel} has no kernel for float activations with {value.type.storage} blockwise constants"
        if place != 1 or str(value.type.storage) not in weights:
            return f"{kernel} has no kernel for float activations with {value.type.storage} constants"
        one_scale = not isinstance(value.type.element, UniformQuantizedPerAxisType)
        if op.name == "tfl.depthwise_conv_2d" and one_scale and value.type.shape and value.type.shape[-1] != 1:
            return f"{kernel} on float activations reads a scale per channel, and there is one"
    return ""
