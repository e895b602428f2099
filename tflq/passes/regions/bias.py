"""Scales under which a constant bias fits its storage."""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.ir.types import ElementType, UniformQuantizedPerAxisType, UniformQuantizedType, element_storage

_LARGEST: Final = {32: (2**31 - 1) // 2, 64: 2**34}
"""Of a stored bias, by its bits: half of what an accumulator holds; and of int64 what leaves less than 4 steps of a
result where its multiplier is below 2^-32, which kernels take for 0 (`fixed_point.quantize_multiplier`)."""


def fitted(
    x: ElementType, weights: ElementType, bias: ElementType, values: np.ndarray
) -> tuple[ElementType, ElementType] | None:
    """Wider scales of weights of 8 bits and of a constant bias, of 32 bits or of 64 for 16 bits of input, under which
    the bias fits its storage, with room for the accumulator; None if they are wide enough, or of other types.

    If a bias would exceed half of the largest int32, or 2^34, under its scale, the product of the two others, its scale
    becomes |b| / that, and that of the weights follows: scale of the bias / scale of the input. `values`: the
    bias, one real for each scale, or any number for a single one. Source: TensorFlow Lite's quantization driver,
    SetBiasParamsWithAdjustments.
    """
    if not isinstance(x, UniformQuantizedType) or not isinstance(
        bias, (UniformQuantizedType, UniformQuantizedPerAxisType)
    ):
        return None
    bits = x.storage.bits, element_storage(weights).bits, bias.storage.bits
    if type(weights) is not type(bias) or bits not in ((8, 8, 32), (16, 8, 64)):
        return None
    most = _LARGEST[bias.storage.bits]
    largest = np.abs(values.reshape(-1).astype(np.float64))
    if isinstance(bias, UniformQuantizedType):
        largest = largest.max(initial=0.0, keepdims=True)
    before, others = (
        np.atleast_1d(np.asarray(kind.scale if isinstance(kind, UniformQuantizedType) else kind.scales, np.float64))
        for kind in (bias, weights)
    )
    if before.shape != largest.shape or before.shape != others.shape or not np.isfinite(largest).all() or not x.scale:
        return None
    wide = largest > before * most
    if not wide.any():
        return None
    scales = np.where(wide, largest / most, before)
    return _scaled(weights, np.where(wide, scales / x.scale, others)), _scaled(bias, scales)


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
