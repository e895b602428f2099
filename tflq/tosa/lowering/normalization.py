"""L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION, in float, over the last dim.

    l2             x / max(sqrt(sum of squares), 1e-6)
    local response x (bias + alpha * sum of the squares of channels c - radius .. c + radius - 1)^-beta; the sums are
                   one MATMUL by a band of ones

Sources: kernels/internal/reference/l2normalization.h, reference_ops.h; l2norm.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.normalization import L2Normalization, LocalResponseNormalization
from tflq.dialects.tosa.activation import Rsqrt
from tflq.dialects.tosa.matmul import MatMul
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import TensorType, f32
from tflq.tosa.lowering.activation import last_dim
from tflq.tosa.lowering.arithmetic.power import positive_power
from tflq.tosa.lowering.floats.arithmetic import float_activation
from tflq.tosa.lowering.floats.operators import floating
from tflq.tosa.lowering.floats.quotient import scalar
from tflq.tosa.lowering.registry import Tosa

__all__: list[str] = []

_LEAST_NORM = 1e-6


@floating(L2Normalization)
def l2_normalization(op: L2Normalization, t: Tosa, x: Value) -> Value:
    if not x.type.shape:
        raise Refused(f"{x.type} has no last dim")
    inverse = t.emit(Rsqrt, [t.reduce("sum", t.mul(x, x), last_dim(x))])
    scaled = t.mul(x, t.minimum(inverse, scalar(t, 1 / _LEAST_NORM, x)))
    return float_activation(t, scaled, op.fused_activation_function)


@floating(LocalResponseNormalization)
def local_response_normalization(op: LocalResponseNormalization, t: Tosa, x: Value) -> Value:
    shape = x.type.shape
    if not shape or None in shape:
        raise Refused(f"LOCAL_RESPONSE_NORMALIZATION of a shape that is not known, {x.type}")
    depth, radius = shape[-1] or 0, op.radius
    distance = np.arange(depth)[:, None] - np.arange(depth)  # of the channel that is added, from the result's
    band = t.constant(((distance >= -radius) & (distance < radius))[None], f32)
    rows = t.reshape(t.mul(x, x), (1, int(np.prod([d or 0 for d in shape[:-1]])), depth))
    sums = t.emit(MatMul, [rows, band], TensorType(rows.type.shape, f32), a_zp=0, b_zp=0)
    base = t.add(t.mul(sums, scalar(t, op.alpha, sums)), scalar(t, op.bias, sums))
    factor = positive_power(t, base, scalar(t, -op.beta, base))
    return t.mul(x, t.reshape(factor, shape))
