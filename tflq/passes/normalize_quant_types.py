"""normalize-quant-types: quantized types in their simplest form.

Sub-channel quantization whose blocks vary along one dim, one index each, is per-axis; sub-channel or per-axis
quantization with one scale and zero point for all elements is per-layer. The values expressed stay the same, so every
type of a module can be replaced at once.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from tflq.contract import Pass, PassResult
from tflq.ir.core import Module, Value
from tflq.ir.types import (
    ElementType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
)

__all__ = ["NormalizeQuantTypes", "normalized"]


class NormalizeQuantTypes(Pass):
    """Replaces quantized types by equivalent simpler ones."""

    name: ClassVar[str] = "normalize-quant-types"
    makes: ClassVar[Literal["any"]] = "any"

    def run(self, module: Module) -> PassResult:
        known: dict[TensorType, TensorType] = {}
        modified = False
        for function in module.functions:
            for value in dict.fromkeys((*function.values(), *function.tensors)):
                modified |= _normalize(value, known)
        return PassResult(module, modified)


def _normalize(value: Value, known: dict[TensorType, TensorType]) -> bool:
    old = value.type
    if not old.quantized:
        return False
    new = known.setdefault(old, old.with_element(normalized(old.element, old.shape)))
    value.type = new
    return new != old


def normalized(element: ElementType, shape: Shape) -> ElementType:
    """The simplest quantized type that gives a tensor of `shape` the same values."""
    if isinstance(element, UniformQuantizedSubChannelType):
        return _from_sub_channel(element, shape)
    if isinstance(element, UniformQuantizedPerAxisType):
        return _per_layer(element) or element
    return element


def _from_sub_channel(element: UniformQuantizedSubChannelType, shape: Shape) -> ElementType:
    layer = _per_layer(element)
    if layer is not None or shape is None or len(shape) != element.scales.ndim:
        return layer or element
    varying = [axis for axis, count in enumerate(element.scales.shape) if count > 1]
    if len(varying) != 1 or shape[varying[0]] != element.scales.size:
        return element
    return UniformQuantizedPerAxisType.of(
        element.storage,
        varying[0],
        element.scales.reshape(-1),
        element.zero_points.reshape(-1),
        expressed=element.expressed,
        storage_min=element.storage_min,
        storage_max=element.storage_max,
    )


def _per_layer(element: UniformQuantizedSubChannelType | UniformQuantizedPerAxisType) -> UniformQuantizedType | None:
    """Per-layer quantization by the first scale and zero point, if all are the same."""
    scales, zero_points = element.scales.reshape(-1), element.zero_points.reshape(-1)
    if not (np.all(scales == scales[0]) and np.all(zero_points == zero_points[0])):
        return None
    return UniformQuantizedType.of(
        element.storage,
        float(scales[0]),
        int(zero_points[0]),
        expressed=element.expressed,
        storage_min=element.storage_min,
        storage_max=element.storage_max,
    )
