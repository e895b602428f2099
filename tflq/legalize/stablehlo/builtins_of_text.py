"""Ops of `stablehlo` on floats, and hybrid ones, also of files, as TFLite's builtins; those on quantized tensors have
rules.

A hybrid op, of floating-point activations and quantized weights, becomes DEQUANTIZE of the weights and the float
operator: weight-only quantization. The weights stay quantized in the file. TFLite's own hybrid kernels are not used:
they quantize the activations as they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tflq.dialects.stablehlo import arithmetic, unary
from tflq.dialects.stablehlo.casts import UniformDequantize
from tflq.dialects.stablehlo.convolution import Convolution
from tflq.dialects.stablehlo.matmul import DotGeneral
from tflq.dialects.stablehlo.rules import integers
from tflq.dialects.tfl.stablehlo import StablehloConvolution, StablehloDotGeneral
from tflq.errors import Reason, Refused, UnsupportedError
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import f32
from tflq.legalize.decision import MARK
from tflq.legalize.stablehlo.contracting import Contraction, spread
from tflq.legalize.stablehlo.contractions import Contractions, Convolved

__all__ = ["stands_apart", "to_builtins"]

_NONE: Final = {"fused_activation_function": "NONE"}
_ELEMENTWISE: Final[Mapping[type[Op], tuple[str, Mapping[str, Any]]]] = {
    arithmetic.Add: ("tfl.add", _NONE),
    arithmetic.Subtract: ("tfl.sub", _NONE),
    arithmetic.Multiply: ("tfl.mul", _NONE),
    arithmetic.Divide: ("tfl.div", _NONE),
    arithmetic.Maximum: ("tfl.maximum", {}),
    arithmetic.Minimum: ("tfl.minimum", {}),
    unary.Abs: ("tfl.abs", {}),
    unary.Exponential: ("tfl.exp", {}),
    unary.Floor: ("tfl.floor", {}),
    unary.Logistic: ("tfl.logistic", {}),
    unary.Negate: ("tfl.neg", {}),
    unary.Rsqrt: ("tfl.rsqrt", {}),
    unary.Sqrt: ("tfl.sqrt", {}),
    unary.Tanh: ("tfl.tanh", {}),
}


def stands_apart(op: Op) -> bool:
    """Whether an op is one of `stablehlo`, or of a file and of those that no interpreter runs beside floats."""
    return op.name.startswith("stablehlo.") or isinstance(op, (StablehloDotGeneral, StablehloConvolution))


def to_builtins(module: Module, *, keep_weights: bool) -> None:
    """Replaces them in a module (changed in place). keep_weights: DEQUANTIZE of a constant is not folded.
    UnsupportedError lists every op that has no builtin."""
    refused: list[Reason] = []
    for index, function in enumerate(module.functions):
        if any(map(stands_apart, function.ops)):
            _function(function, index, keep_weights, refused)
    if refused:
        remedy = "write it in TFLite's operators, or dequantize its operands before it"
        raise UnsupportedError(f"{len(refused)} operator(s) cannot be converted:", refused, remedy=remedy)


def _function(function: Function, index: int, keep_weights: bool, refused: list[Reason]) -> None:
    ops: list[Op] = []
    replaced: dict[Value, Value] = {}
    for op in function.ops:
        b = _Floats(ops, keep_weights)
        b.location = op.location
        op.operands = [v if v is None else replaced.get(v, v) for v in op.operands]
        try:
            made = _of(op, b)
        except Refused as why:
            refused.append(why.within(f"function {index}, {op.name}", subgraph=index))
            continue
        if made is None:
            ops.append(op)
            continue
        made.name = op.result.name
        replaced[op.result] = made
    function.ops = ops
    function.outputs = [replaced.get(v, v) for v in function.outputs]


def _of(op: Op, b: _Floats) -> Value | None:
    """What computes a result; None for an op that stays as it is."""
    if isinstance(op, (StablehloDotGeneral, StablehloConvolution)):
        return _of_file(op, b)
    if not op.name.startswith("stablehlo."):
        return None
    quantized = [v for v in op.tensors if v.type.quantized]
    if isinstance(op, UniformDequantize) and op.input.is_constant:
        return b.weights(op.input)
    if isinstance(op, (DotGeneral, Convolution)):
        if op.result.type.quantized:
            raise Refused("products of quantized tensors, rounded once at the end, have no integer form: TFLite's do")
        if op.result.type.element != f32 or not all(v.type.is_static for v in op.tensors):
            what = f"of {op.result.type.storage}" if op.result.type.element != f32 else "of unknown shapes"
            raise Refused(f"TFLite has no float kernel {what} for it")
        if isinstance(op, DotGeneral):
            return b.dot(op.numbers, op.lhs, op.rhs, op.result.type)
        return b.convolution(_convolved(op), op.lhs, op.rhs, op.result.type)
    if quantized:
        return None
    if type(op) in _ELEMENTWISE:
        name, attributes = _ELEMENTWISE[type(op)]
        return b.op(name, op.operands, [op.result.type], dict(attributes)).result
    remedy = "write it in TFLite's operators, or take the model from a .tflite file"
    raise Refused("no builtin stands for it", remedy)


class _Floats(Contractions):
    """Emits builtins on floats, with weights dequantized."""

    def __init__(self, ops: list[Op], keep_weights: bool) -> None:
        super().__init__(ops)
        self._keep_weights = keep_weights

    def weights(self, w: Value) -> Value:
        """The weights in float."""
        if not w.type.quantized:
            return w
        if getattr(w.type.element, "expressed", None) != f32:
            raise Refused("TFLite dequantizes to f32 only, and has no float16 kernel for it")
        made = self.op("tfl.dequantize", [w], [w.type.with_element(f32)], {})
        if self._keep_weights and w.is_constant:
            made.info = {MARK: True}
        return made.result


def _of_file(op: Contraction, b: _Floats) -> Value | None:
    """Of a file's operator what computes it on floats and dequantized weights; None if it is not of these."""
    floats = [v.type.element == f32 for v in (op.lhs, op.output)]
    return spread(op, b, op.lhs, op.rhs, op.output.type) if all(floats) and op.rhs.type.quantized else None


def _convolved(op: Convolution) -> Convolved:
    if op.numbers is None or op.window is None:
        raise Refused("its dimension numbers or its window are not known")
    reversal = integers(op, "window_reversal", (0,) * len(op.window.sizes)) or ()
    return Convolved(op.numbers, op.window, reversal, op.feature_group_count, op.batch_group_count)
