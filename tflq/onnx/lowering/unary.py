"""Functions of one number, in float32, and of whole numbers where they are whole. Sources: kernels/elementwise.cc,
exp.cc, floor.cc, ceil.cc, round.cc, neg.cc, zeros_like.cc.
"""

from __future__ import annotations

from typing import Final

from tflq.dialects.declare import Operator
from tflq.dialects.onnx import elementwise as onnx
from tflq.dialects.tfl import unary as tfl
from tflq.dialects.tosa import elementwise as tosa
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import f32, i32
from tflq.onnx.lowering.context import Onnx, lowering
from tflq.onnx.lowering.held import Held

_FUNCTIONS: Final[dict[type[Operator], type[Operator]]] = {
    tosa.Ceil: onnx.Ceil,
    tosa.Cos: onnx.Cos,
    tosa.Erf: onnx.Erf,
    tosa.Exp: onnx.Exp,
    tosa.Floor: onnx.Floor,
    tosa.Log: onnx.Log,
    tosa.Reciprocal: onnx.Reciprocal,
    tosa.Sigmoid: onnx.Sigmoid,
    tosa.Sin: onnx.Sin,
    tosa.Tanh: onnx.Tanh,
    tfl.Ceil: onnx.Ceil,
    tfl.Cos: onnx.Cos,
    tfl.Exp: onnx.Exp,
    tfl.Floor: onnx.Floor,
    tfl.Log: onnx.Log,
    tfl.Round: onnx.Round,
    tfl.Sign: onnx.Sign,
    tfl.Sin: onnx.Sin,
    tfl.Sqrt: onnx.Sqrt,
}


@lowering(*_FUNCTIONS)
def function(op: Operator, t: Onnx) -> Held:
    (x,) = op.reads
    _need_float(op, x)
    return t.elementwise(lambda v: t.emit(_FUNCTIONS[type(op)], [v]), [x], op.result)


@lowering(tosa.Rsqrt, tfl.Rsqrt)
def reciprocal_root(op: tosa.Rsqrt | tfl.Rsqrt, t: Onnx) -> Held:
    (x,) = op.reads
    _need_float(op, x)

    def emit(v: Value) -> Value:
        return t.emit(onnx.Reciprocal, [t.emit(onnx.Sqrt, [v])])

    return t.elementwise(emit, [x], op.result)


@lowering(tosa.Pow)
def power(op: tosa.Pow, t: Onnx) -> Held:
    return t.elementwise(lambda x, y: t.emit(onnx.Pow, [x, y]), [op.input1, op.input2], op.result)


@lowering(tfl.Abs, tfl.Neg, tfl.Square)
def arithmetic(op: tfl.Abs | tfl.Neg | tfl.Square, t: Onnx) -> Held:
    """Also of int32, which wraps."""
    if op.result.type.storage not in (f32, i32):
        raise Refused(f"{op.short_name.upper()} of {op.result.type.storage}")

    def emit(x: Value) -> Value:
        return t.mul(x, x) if isinstance(op, tfl.Square) else t.abs(x) if isinstance(op, tfl.Abs) else t.negative(x)

    return t.elementwise(emit, [op.input], op.result, op.result.type.storage)


@lowering(tfl.ZerosLike)
def zeros_like(op: tfl.ZerosLike, t: Onnx) -> Held:
    """x times 0, whatever x is, is an x of zeros where it is whole."""
    if op.result.type.storage.is_float:
        raise Refused("ZEROS_LIKE of floats, which may be infinite")
    return t.elementwise(lambda x: t.mul(x, t.like(0, x)), [op.input], op.result)


def _need_float(op: Operator, x: Value) -> None:
    if x.type.storage != f32:
        raise Refused(f"{op.short_name.upper()} of {x.type.storage}")
