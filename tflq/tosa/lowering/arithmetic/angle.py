"""ATAN2, which TOSA lacks: kernels/atan2.cc.

The arc tangent of r = min(|x|, |y|) / max(|x|, |y|) in [0, 1] is r P(r^2), P the polynomial of degree 8 with the least
greatest relative error, 1.6e-8; the rest is reflections. Zeros count as positive.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.arithmetic import Atan2
from tflq.dialects.tosa.arithmetic import Abs
from tflq.ir.core import Value
from tflq.tosa.lowering.floats.operators import floating
from tflq.tosa.lowering.floats.quotient import reciprocal, scalar
from tflq.tosa.lowering.registry import Tosa

__all__: list[str] = []

_ARC_TANGENT = (
    0.999999985,
    -0.333330733,
    0.199926194,
    -0.142036446,
    0.106409343,
    -0.0750429507,
    0.0426915243,
    -0.0160686314,
    0.00284989009,
)
"""Of 1, r^2, r^4, ..."""


@floating(Atan2)
def atan2(op: Atan2, t: Tosa, y: Value, x: Value) -> Value:
    zero, one = scalar(t, 0, x), scalar(t, 1, x)
    width, height = t.emit(Abs, [x]), t.emit(Abs, [y])
    large, small = t.maximum(width, height), t.minimum(width, height)
    diagonal = t.select(t.greater(large, zero), one, zero)
    ratio = t.select(t.equal(small, large), diagonal, t.mul(small, reciprocal(t, large)))
    angle = t.mul(ratio, _polynomial(t, t.mul(ratio, ratio)))
    angle = t.select(t.greater(height, width), t.sub(scalar(t, np.pi / 2, x), angle), angle)
    angle = t.select(t.greater(zero, x), t.sub(scalar(t, np.pi, x), angle), angle)
    return t.select(t.greater(zero, y), t.sub(zero, angle), angle)


def _polynomial(t: Tosa, x: Value) -> Value:
    """The polynomial at x, by Horner's rule."""
    value = scalar(t, _ARC_TANGENT[-1], x)
    for coefficient in reversed(_ARC_TANGENT[:-1]):
        value = t.add(t.mul(value, x), scalar(t, coefficient, x))
    return value
