"""Scales under which a constant bias fits its storage, with room for the accumulator.

Source: TensorFlow Lite's quantization driver, SetBiasParamsWithAdjustments.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.ir.types import ElementType, UniformQuantizedPerAxisType, UniformQuantizedType

__all__ = ["fitted"]

_LARGEST: Final = (2**31 - 1) // 2


def fitted(
    x: ElementType, weights: ElementType, bias: ElementType, values: np.ndarray
) -> tuple[ElementType, ElementType] | None:
    """Wider scales of weights and bias, of 8 and 32 bits; None if none is needed, or they are of other types.

    A scale of the bias, the product of the two others, under which an integer would exceed half of the largest becomes
    |b| / half of the largest, and that of the weights follows: scale of the bias / scale of the input. `values`: the
    bias, one real for each scale, or any number for a single one.
    """
    if not isinstance(x, UniformQuantizedType) or not isinstance(
        bias, (UniformQuantizedType, UniformQuantizedPerAxisType)
    ):
        return None
    if type(weights) is not type(bias) or (x.storage.bits, weights.storage.bits, bias.storage.bits) != (8, 8, 32):
        return None
    largest = np.abs(values.reshape(-1).astype(np.float64))
    if isinstance(bias, UniformQuantizedType):
        largest = largest.max(initial=0.0, keepdims=True)
    before, others = (
        np.atleast_1d(np.asarray(kind.scale if isinstance(kind, UniformQuantizedType) else kind.scales, np.float64))
        for kind in (bias, weights)
    )
    if before.shape != largest.shape or before.shape != others.shape or not np.isfinite(largest).all() or not x.scale:
        return None
    wide = largest > before * _LARGEST
    if not wide.any():
        return None
    made = np.where(wide, largest / _LARGEST, before)
    return _scaled(weights, np.where(wide, made / x.scale, others)), _scaled(bias, made)


def _scaled(kind: ElementType, scales: np.ndarray) -> ElementType:
    """A type with other scales."""
    if isinstance(kind, UniformQuantizedType):
        return UniformQuantizedType.of(
            kind.storage,
            float(scales[0]),
            kind.zero_point,
            expressed=kind.expressed,
            storage_min=kind.storage_min,
            storage_max=kind.storage_max,
        )
    assert isinstance(kind, UniformQuantizedPerAxisType)
    return UniformQuantizedPerAxisType.of(
        kind.storage,
        kind.axis,
        scales,
        kind.zero_points,
        expressed=kind.expressed,
        storage_min=kind.storage_min,
        storage_max=kind.storage_max,
    )
