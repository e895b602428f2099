"""Ops of `stablehlo` on floats, and hybrid ones, also of files, as TFLite's builtins; those on quantized tensors have
rules.

A hybrid op, of floating-point activations and quantized weights, becomes DEQUANTIZE of the weights and the float
operator: weight-only quantization. The weights stay quantized in the file. TFLite's own hybrid kernels are not used:
they quantize the activations as they run.
"""

from __future__ import annotations

from tflq.builder import Emitter
from tflq.dialects.stablehlo.casts import UniformDequantize
from tflq.dialects.stablehlo.convolution import Convolution
from tflq.dialects.stablehlo.matmul import DotGeneral
from tflq.errors import Reason, Refused, UnsupportedError
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import f32
from tflq.legalize.decision import MARK
from tflq.legalize.stablehlo.builtins import as_builtin
from tflq.legalize.stablehlo.contracting import Contraction, spread
from tflq.legalize.stablehlo.contractions import Contractions

__all__ = ["stands_apart", "to_builtins"]


def stands_apart(op: Op) -> bool:
    """Whether an op is one of `stablehlo`, or of a file and of those that no interpreter runs beside floats."""
    return op.name.startswith("stablehlo.") or isinstance(op, Contraction)


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
        b = Emitter(ops)
        b.location = op.location
        op.operands = [v if v is None else replaced.get(v, v) for v in op.operands]
        try:
            made = _of(op, b, _Floats(b, keep_weights))
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


def _of(op: Op, b: Emitter, products: _Floats) -> Value | None:
    """What computes a result; None for an op that stays as it is."""
    if isinstance(op, Contraction):
        floats = op.lhs.type.element == op.output.type.element == f32
        return spread(op, products, op.lhs, op.rhs, op.output.type) if floats and op.rhs.type.quantized else None
    if not op.name.startswith("stablehlo."):
        return None
    if isinstance(op, UniformDequantize) and op.input.is_constant:
        return products.weights(op.input)
    if isinstance(op, (DotGeneral, Convolution)):
        if op.result.type.quantized:
            raise Refused("products of quantized tensors, rounded once at the end, have no integer form: TFLite's do")
        if op.result.type.element != f32 or not all(v.type.is_static for v in op.tensors):
            what = f"of {op.result.type.storage}" if op.result.type.element != f32 else "of unknown shapes"
            raise Refused(f"TFLite has no float kernel {what} for it")
        return spread(op, products, op.lhs, op.rhs, op.result.type)
    if any(v.type.quantized for v in op.tensors):
        return None
    same = as_builtin(op)
    if same is None:
        remedy = "write it in TFLite's operators, or take the model from a .tflite file"
        raise Refused("no builtin stands for it", remedy)
    return b.op(same.name, same.operands, [op.result.type], same.attributes).result


class _Floats(Contractions):
    """Builtins on floats, with weights dequantized."""

    def __init__(self, b: Emitter, keep_weights: bool) -> None:
        super().__init__(b)
        self._keep_weights = keep_weights

    def weights(self, w: Value) -> Value:
        """The weights in float."""
        if not w.type.quantized:
            return w
        if getattr(w.type.element, "expressed", None) != f32:
            raise Refused("TFLite dequantizes to f32 only, and has no float16 kernel for it")
        made = self.b.op("tfl.dequantize", [w], [w.type.with_element(f32)], {})
        if self._keep_weights and w.is_constant:
            made.info = {MARK: True}
        return made.result
