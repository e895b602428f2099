"""The scale that constant weights are stored with, symmetric around 0: three methods.

    minmax  s = max|w| / q, q the largest that is stored
    mse     of 100 fractions of that, 0.01 to 1, the one with the least Σ (w - s · stored)²
    octav   s = c / q, c the clip with the least expected squared error:
            c = Σ{|w| > c} |w| / (4^-bits / 3 · #{|w| <= c} + #{|w| > c}), by iteration from 0

Sources: minmax as in ai-edge-quantizer; octav from "Optimal Clipping and Magnitude-aware Differentiation for Improved
Quantization-aware Training" (arXiv 2206.06501), equation 6. A clip is never beyond the largest magnitude.
"""

from __future__ import annotations

from typing import Final

import numpy as np

WEIGHT_RANGES: Final = ("minmax", "mse", "octav")
GPTQ: Final = "gptq"
"""The range of minmax, and weights rounded by what they are multiplied with (`second_order`)."""
WEIGHT_METHODS: Final = (*WEIGHT_RANGES, GPTQ)
_FRACTIONS: Final = np.arange(100, 0, -1) / 100
_STEPS: Final = 100
"""Iterations of octav at most; it settles in about ten."""
_LEAST: Final = 1e-9
"""The least magnitude, so that weights that are all 0 have a scale."""


def clips(weights: np.ndarray, axes: tuple[int, ...], bits: int, method: str) -> np.ndarray:
    """The magnitude that the largest stored number stands for, of all weights along some axes: float64, with dims of 1
    in their places. bits: what weights are stored in, 4 or 8. method: of `WEIGHT_METHODS`."""
    magnitudes = np.abs(weights.astype(np.float64))
    largest = magnitudes.max(axis=axes, keepdims=True)
    if method == "mse":
        largest = _least_squared_error(weights.astype(np.float64), largest, axes, bits)
    elif method == "octav":
        largest = np.minimum(_optimal_clip(magnitudes, axes, bits), largest)
    return np.maximum(largest, _LEAST)


def stored_weights(weights: np.ndarray, scales: np.ndarray, bits: int) -> np.ndarray:
    """Weights of 4 bits as int8: round half even(w / s) in float32, clamped to [-8, 7]; of 8 to [-127, 127]."""
    least, largest = bounds(bits)
    return np.clip(np.rint(weights / scales.astype(np.float32)), least, largest).astype(np.int8)


def bounds(bits: int) -> tuple[int, int]:
    """The least and the largest number that is stored. Kernels of 8 bits count on -128 not being there."""
    largest = (1 << (bits - 1)) - 1
    return (-largest if bits == 8 else -largest - 1), largest


def block_scales(scales: np.ndarray) -> np.ndarray:
    """Scales of blocks, float16 with 8 bits of precision: rounded to bfloat16, half to even, then to float16."""
    raw = np.clip(scales, np.finfo(np.float16).tiny, np.finfo(np.float16).max).astype(np.float32).view(np.uint32)
    rounded = (raw + np.uint32(0x7FFF) + ((raw >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.minimum(rounded.view(np.float32), np.float32(65280)).astype(np.float16)


def _least_squared_error(weights: np.ndarray, largest: np.ndarray, axes: tuple[int, ...], bits: int) -> np.ndarray:
    low, high = bounds(bits)
    best, least = largest, np.full(largest.shape, np.inf)
    for fraction in _FRACTIONS:
        scale = np.maximum(largest * fraction, _LEAST) / high
        steps = np.clip(np.rint(weights / scale), low, high)
        error = ((steps * scale - weights) ** 2).sum(axis=axes, keepdims=True)
        best = np.where(error < least, largest * fraction, best)
        least = np.minimum(error, least)
    return best


def _optimal_clip(magnitudes: np.ndarray, axes: tuple[int, ...], bits: int) -> np.ndarray:
    weight = 4.0**-bits / 3
    clip = np.zeros_like(magnitudes.max(axis=axes, keepdims=True))
    for _ in range(_STEPS):
        beyond = magnitudes > clip
        total = np.where(beyond, magnitudes, 0).sum(axis=axes, keepdims=True)
        count = beyond.sum(axis=axes, keepdims=True)
        inside = (~beyond).sum(axis=axes, keepdims=True)
        made = total / (weight * inside + count)
        if np.array_equal(made, clip):
            break
        clip = made
    return clip
