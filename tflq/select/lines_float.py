"""Lines in float32 (`tflq.numerics.float_requantize`, `float_falling`, `float_split`) as builtins, operation by
operation. Each takes whole numbers in float32 and gives whole numbers.

    MUL, [RELU_N1_TO_1, MUL, ADD,] ADD with RELU6 or RELU_N1_TO_1, MUL, FLOOR
    SUB with RELU, MUL, ADD with RELU, FLOOR
    SUB, MAXIMUM, MINIMUM; MUL, FLOOR; MUL, SUB; MUL, ADD, MUL, ADD, FLOOR, ADD
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.activation import Relu, ReluN1To1
from tflq.dialects.tfl.unary import Floor
from tflq.ir.core import Value
from tflq.ir.types import f32
from tflq.numerics.float_falling import ClippedRequantization, FallingRequantization
from tflq.numerics.float_requantize import N1_TO_1, FloatRequantization
from tflq.numerics.float_split import SplitRequantization
from tflq.select.lowering import KernelBuilder


def stepped(
    k: KernelBuilder, x: Value, fit: FloatRequantization | ClippedRequantization | SplitRequantization
) -> Value:
    """`fit` of whole numbers in float32, less by its a; `bottom` of a clipped line is 0."""
    if isinstance(fit, ClippedRequantization):
        return stepped_down(k, k.sub(k.row(fit.h, f32), x, "RELU"), fit)
    if isinstance(fit, SplitRequantization):
        return split(k, k.sub(x, k.row(fit.h, f32)), fit)
    total, rest = k.mul(x, k.row(fit.m, f32)), k.row(fit.c, f32)
    if fit.e is not None:
        rest = k.add(k.mul(_sign(k, x, fit.a), k.row(fit.e, f32)), rest)
    total = k.add(total, rest, fit.clamp.activation)
    total = k.mul(total, k.row(fit.gain, f32))
    return k.emit(Floor, [total])


def stepped_down(k: KernelBuilder, u: Value, fit: FallingRequantization | ClippedRequantization) -> Value:
    """`fit` of relu(h - x), whole numbers in float32; levels are from 0 on."""
    total = k.add(k.mul(u, k.row(-fit.m, f32)), k.row(fit.c, f32), "RELU")
    return k.emit(Floor, [total])


def split(k: KernelBuilder, x: Value, fit: SplitRequantization) -> Value:
    """`fit` of x - h, whole numbers in float32."""
    u = k.minimum(k.maximum(x, k.row(fit.low, f32)), k.row(fit.high, f32))
    n = k.emit(Floor, [k.mul(u, k.row(fit.p, f32))])
    rest = k.row(fit.c, f32)
    if fit.e is not None:
        positive = k.minimum(k.emit(Relu, [n]), k.row(1, f32))
        rest = k.add(k.mul(positive, k.row(fit.e, f32)), rest)
    rest = k.add(k.mul(n, k.row(fit.d, f32)), rest)
    r = k.sub(u, k.mul(n, k.row(fit.step, f32)))
    return k.add(n, k.emit(Floor, [k.add(k.mul(r, k.row(fit.m, f32)), rest)]))


def _sign(k: KernelBuilder, x: Value, a: np.ndarray | None) -> Value:
    """The sign of x + a, whole numbers."""
    if a is not None and a.any():
        return k.add(x, k.row(a, f32), N1_TO_1.activation)
    return k.emit(ReluN1To1, [x])
