"""FAKE_QUANT in float32: the nearest of 2^bits steps between two bounds, one of which is moved so that 0 is a step.

    scale = (max - min) / (greatest - least)          least = 1 with narrow_range, else 0; greatest = 2^bits - 1
    zero  = round(least - min / scale), clamped to the steps
    low, high = (least - zero) scale, (greatest - zero) scale
    result = round((clamp(x, low, high) - low) (1 / scale)) scale + low

Sources: kernels/fake_quant.cc, kernels/internal/quantization_util.cc (NudgeQuantizationRange, FakeQuantizeArray). The
kernel does not take narrow_range: there it is TensorFlow's.
"""

from __future__ import annotations

import numpy as np

from tflq.numerics.tables import FloatFunction

__all__ = ["fake_quant"]

_f = np.float32


def fake_quant(minimum: float, maximum: float, bits: int, *, narrow_range: bool = False) -> FloatFunction:
    """The function of an array, computed in float32. ValueError unless minimum <= 0 <= maximum, minimum < maximum and
    there are 2 to 16 bits."""
    if not minimum <= 0 <= maximum or minimum == maximum or not 2 <= bits <= 16:
        raise ValueError(f"min {minimum:g}, max {maximum:g} and {bits} bits are not a range around 0 in 2 to 16 bits")
    least, greatest = _f(1 if narrow_range else 0), _f((1 << bits) - 1)
    scale = (_f(maximum) - _f(minimum)) / (greatest - least)
    zero = np.clip(np.floor(least - _f(minimum) / scale + _f(0.5)), least, greatest)
    low, high = (least - zero) * scale, (greatest - zero) * scale
    inverse = _f(1) / scale

    def function(x: np.ndarray) -> np.ndarray:
        steps = (np.minimum(high, np.maximum(low, x.astype(np.float32))) - low) * inverse
        whole = np.trunc(steps)
        return np.where(steps - whole >= 0.5, whole + _f(1), whole) * scale + low

    return function
