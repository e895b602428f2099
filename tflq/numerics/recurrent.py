"""Numbers that the integer SVDF and LSTM kernels make of quantization parameters, in the float32 they use.

    gate         w * x / 2^-12        Q3.12, or the scale of an intermediate tensor before a layer norm
    peephole     2^c * w / 2^-12      the product in double; 2^c the scale of the cell state
    hidden       2^-15 / h * 2^-15    of an output gate times a tanh, both in Q0.15; h the hidden state's scale
    projection   w * h / s            s the output state's scale
    SVDF         x * f / s, s * t / y

Sources: kernels/unidirectional_sequence_lstm.cc and lstm.cc (PopulateQuantizedLstmParams8x8_16), kernels/svdf.cc
(Prepare), kernels/kernel_util.cc (CheckedLog2).
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["GATE_SCALE", "clip_bound", "hidden_scale", "peephole_scale", "power_of_two", "product_scale"]

GATE_SCALE = 2.0**-12


def product_scale(a: float, b: float, result: float) -> float:
    """a * b / result."""
    with np.errstate(all="ignore"):
        return float(np.float32(a) * np.float32(b) / np.float32(result))


def peephole_scale(cell_exponent: int, weights: float, gate: float = GATE_SCALE) -> float:
    return float(np.float32(2.0**cell_exponent * float(np.float32(weights)) / float(np.float32(gate))))


def hidden_scale(hidden: float) -> float:
    return float(np.float32(2.0**-15 / float(np.float32(hidden)) * 2.0**-15))


def power_of_two(scale: float) -> int:
    """The exponent of a scale that is a power of two, or nearly. ValueError for another."""
    logarithm = math.log(np.float32(scale)) if scale > 0 else -math.inf
    exponent = float(np.float32(logarithm) * (np.float32(1) / np.float32(math.log(2.0))))
    if not math.isfinite(exponent):
        raise ValueError(f"a cell state's scale is a power of two, and {scale} is none")
    rounded = round(exponent)
    if abs(exponent - rounded) >= 1e-3:
        raise ValueError(f"a cell state's scale is a power of two, and {scale} is none")
    return rounded


def clip_bound(clip: float, scale: float, most: int) -> int:
    """What a clip is in stored integers, 0 for none."""
    return int(min(np.float32(clip) / np.float32(scale), np.float32(most))) if clip > 0 else 0
