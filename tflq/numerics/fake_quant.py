"""Fake quantization: reals, rounded to the steps that quantization to a few bits would leave."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def simulated(
    x: np.ndarray, minimum: npt.ArrayLike, maximum: npt.ArrayLike, bits: int, *, narrow_range: bool = False
) -> np.ndarray:
    """What TensorFlow's fake_quant ops make of float32: the nearest of the steps between bounds, which broadcast to x
    and are moved so that 0 is a step.

        scale = (max - min) / (greatest - least)          least = 1 with narrow_range, else 0; greatest = 2^bits - 1
        zero  = round(least - min / scale), clamped to the steps
        low, high = (least - zero) scale, (greatest - zero) scale
        result = floor((clamp(x, low, high) - low) inverse - floor(1/2 - low inverse) + 1/2) scale
        where inverse = (greatest - least) / (max - min)

    Each step is rounded to float32. TFLite's kernel (`tables.fake_quant`) takes other steps from the bounds on: its
    results differ by the last bits. Source: tensorflow/core/kernels/fake_quant_ops_functor.h.
    """
    f = np.float32
    ends = np.asarray(minimum, f), np.asarray(maximum, f)
    least, greatest = f(1 if narrow_range else 0), f((1 << bits) - 1)
    scale = (ends[1] - ends[0]) / (greatest - least)
    inverse = (greatest - least) / (ends[1] - ends[0])
    zero = np.clip(np.floor(least - ends[0] / scale + f(0.5)), least, greatest)
    low, high = (least - zero) * scale, (greatest - zero) * scale
    shifted = np.minimum(high, np.maximum(low, np.asarray(x, f))) - low
    return np.asarray(np.floor(shifted * inverse - np.floor(f(0.5) - low * inverse) + f(0.5)) * scale, f)
