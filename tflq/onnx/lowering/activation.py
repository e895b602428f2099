"""Activations and normalizations of float32: what the float fallback computes between casts.

Sources: kernels/activations.cc, l2norm.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Final

from tflq.dialects.declare import Operator
from tflq.dialects.onnx import elementwise as onnx
from tflq.dialects.onnx.movement import ReduceMax, ReduceSum
from tflq.dialects.tfl import activation as tfl
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import f32
from tflq.onnx.lowering.arithmetic import activated
from tflq.onnx.lowering.context import Onnx, lowering
from tflq.onnx.lowering.held import Held

CLAMPS: Final[dict[type[Operator], str]] = {
    tfl.Relu: "RELU",
    tfl.Relu6: "RELU6",
    tfl.ReluN1To1: "RELU_N1_TO_1",
    tfl.Relu0To1: "RELU_0_TO_1",
}


@lowering(*CLAMPS)
def clamp(op: tfl.ScaledActivation, t: Onnx) -> Held:
    return _of_floats(t, op, lambda x: activated(t, x, CLAMPS[type(op)]))


@lowering(tfl.LeakyRelu)
def leaky_relu(op: tfl.LeakyRelu, t: Onnx) -> Held:
    return _of_floats(t, op, lambda x: t.where(t.below_zero(x), t.mul(x, t.like(op.alpha, x)), x))


@lowering(tfl.Prelu)
def prelu(op: tfl.Prelu, t: Onnx) -> Held:
    _need_float(op)
    return t.elementwise(lambda x, alpha: t.where(t.below_zero(x), t.mul(x, alpha), x), [op.input, op.alpha], op.result)


@lowering(tfl.Elu, tfl.Logistic, tfl.Tanh)
def function(op: tfl.ScaledActivation, t: Onnx) -> Held:
    kinds: dict[type[Operator], type[Operator]] = {tfl.Elu: onnx.Elu, tfl.Logistic: onnx.Sigmoid}
    return _of_floats(t, op, lambda x: t.emit(kinds.get(type(op), onnx.Tanh), [x]))


@lowering(tfl.HardSwish)
def hard_swish(op: tfl.HardSwish, t: Onnx) -> Held:
    def emit(x: Value) -> Value:
        return t.mul(t.mul(x, t.clip(t.add(x, t.like(3, x)), 0, 6)), t.like(1 / 6, x))

    return _of_floats(t, op, emit)


@lowering(tfl.Gelu)
def gelu(op: tfl.Gelu, t: Onnx) -> Held:
    def emit(x: Value) -> Value:
        if op.approximate:
            cube = t.mul(t.mul(x, x), x)
            inner = t.mul(t.add(x, t.mul(cube, t.like(0.044715, x))), t.like(sqrt(2 / pi), x))
            share = t.emit(onnx.Tanh, [inner])
        else:
            share = t.emit(onnx.Erf, [t.mul(x, t.like(sqrt(0.5), x))])
        return t.mul(t.mul(x, t.like(0.5, x)), t.add(share, t.like(1, x)))

    return _of_floats(t, op, emit)


@lowering(tfl.Softmax, tfl.LogSoftmax)
def softmax(op: tfl.Softmax | tfl.LogSoftmax, t: Onnx) -> Held:
    """Of the last dim, less its greatest element."""
    _need_float(op)
    x, last = t.value(op.input), [len(op.input.type.shape or ()) - 1]
    centred = t.sub(x, t.reduce(ReduceMax, x, last))
    if isinstance(op, tfl.LogSoftmax):
        total = t.reduce(ReduceSum, t.emit(onnx.Exp, [centred]), last)
        return t.made(t.sub(centred, t.emit(onnx.Log, [total])), op.result)
    powers = t.emit(onnx.Exp, [t.mul(centred, t.like(op.beta, x))])
    return t.made(t.div(powers, t.reduce(ReduceSum, powers, last)), op.result)


@lowering(tfl.L2Normalization)
def l2_normalization(op: tfl.L2Normalization, t: Onnx) -> Held:
    """Of the last dim, whose norm is at least 1e-6."""
    _need_float(op)
    x = t.value(op.input)
    squares = t.reduce(ReduceSum, t.mul(x, x), [len(op.input.type.shape or ()) - 1])
    norm = t.maximum(t.emit(onnx.Sqrt, [squares]), t.like(1e-6, x))
    return t.made(activated(t, t.div(x, norm), op.fused_activation_function), op.result)


def _of_floats(t: Onnx, op: Operator, emit: Callable[[Value], Value]) -> Held:
    _need_float(op)
    return t.elementwise(emit, op.reads, op.result)


def _need_float(op: Operator) -> None:
    if op.result.type.storage != f32:
        raise Refused(f"{op.short_name.upper()} of {op.result.type.storage}")
