"""Ops of `stablehlo` on floats, and hybrid ones, as TFLite's builtins; those on quantized tensors have rules.

A hybrid op, of floating-point activations and quantized weights, becomes DEQUANTIZE of the weights and the float
operator: weight-only quantization. The weights stay quantized in the file. TFLite's own hybrid kernels are not used:
they quantize the activations as they run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tflq.builder import Emitter
from tflq.dialects.stablehlo import arithmetic, unary
from tflq.dialects.stablehlo.casts import UniformDequantize
from tflq.dialects.stablehlo.convolution import Convolution
from tflq.dialects.stablehlo.matmul import DotGeneral
from tflq.dialects.stablehlo.rules import integers
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Buffer, Function, Module, Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, f32
from tflq.legalize.target_kernels import MARK

__all__ = ["to_builtins"]

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


class _NoBuiltinError(Exception):
    """Why an op has no builtin."""


def to_builtins(module: Module, *, keep_weights: bool) -> None:
    """Replaces them in a module (changed in place). keep_weights: DEQUANTIZE of a constant is not folded.
    UnsupportedError lists every op that has no builtin."""
    refused: list[Reason] = []
    for index, function in enumerate(module.functions):
        if any(op.name.startswith("stablehlo.") for op in function.ops):
            _function(function, index, keep_weights, refused)
    if refused:
        raise UnsupportedError(f"{len(refused)} operator(s) cannot be converted:", refused)


def _function(function: Function, index: int, keep_weights: bool, refused: list[Reason]) -> None:
    ops: list[Op] = []
    replaced: dict[Value, Value] = {}
    for op in function.ops:
        b = _Floats(ops, keep_weights)
        b.location = op.location
        op.operands = [v if v is None else replaced.get(v, v) for v in op.operands]
        try:
            made = _of(op, b)
        except _NoBuiltinError as why:
            refused.append(Reason(str(why), subgraph=index, place=f"function {index}, {op.name}"))
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
    if not op.name.startswith("stablehlo."):
        return None
    quantized = [v for v in op.tensors if v.type.quantized]
    if isinstance(op, UniformDequantize) and op.input.is_constant:
        return b.dequantized(op.input)
    if isinstance(op, (DotGeneral, Convolution)):
        if op.result.type.quantized:
            raise _NoBuiltinError(
                "products of quantized tensors, rounded once at the end, have no integer form: TFLite's do"
            )
        if op.result.type.element != f32 or not all(v.type.is_static for v in op.tensors):
            what = f"of {op.result.type.storage}" if op.result.type.element != f32 else "of unknown shapes"
            raise _NoBuiltinError(f"TFLite has no float kernel {what} for it")
        return _dot(op, b) if isinstance(op, DotGeneral) else _convolution(op, b)
    if quantized:
        return None
    if type(op) in _ELEMENTWISE:
        name, attributes = _ELEMENTWISE[type(op)]
        return b.op(name, op.operands, [op.result.type], dict(attributes)).result
    raise _NoBuiltinError(
        "no builtin stands for it; write it in TFLite's operators, or take the model from a .tflite file"
    )


class _Floats(Emitter):
    """Emits builtins on floats."""

    def __init__(self, ops: list[Op], keep_weights: bool) -> None:
        super().__init__(ops)
        self._keep_weights = keep_weights

    def dequantized(self, weights: Value) -> Value:
        """The weights in float."""
        if not weights.type.quantized:
            return weights
        if getattr(weights.type.element, "expressed", None) != f32:
            raise _NoBuiltinError("TFLite dequantizes to f32 only, and has no float16 kernel for it")
        made = self.op("tfl.dequantize", [weights], [weights.type.with_element(f32)], {})
        if self._keep_weights and weights.is_constant:
            made.info = {MARK: True}
        return made.result

    def ordered(self, x: Value, perms: Sequence[int]) -> Value:
        """The dims in another order: of a constant now."""
        if list(perms) == list(range(len(perms))):
            return x
        shape = tuple((x.type.shape or ())[p] for p in perms)
        element = x.type.element
        if isinstance(element, UniformQuantizedPerAxisType):
            element = UniformQuantizedPerAxisType.of(
                element.storage,
                list(perms).index(element.axis),
                element.scales,
                element.zero_points,
                expressed=element.expressed,
                storage_min=element.storage_min,
                storage_max=element.storage_max,
            )
        kind = TensorType(shape, element)
        if x.is_constant and x.type.storage.bits >= 8:
            return Value(kind, x.name, buffer=Buffer.of(np.ascontiguousarray(x.array.transpose(perms))))
        return self.op("tfl.transpose", [x, constant(np.asarray(perms, np.int32))], [kind], {}).result

    def reshaped(self, x: Value, shape: Sequence[int]) -> Value:
        if tuple(shape) == x.type.shape:
            return x
        sizes = constant(np.asarray(shape, np.int32))
        kind = TensorType(tuple(shape), x.type.element)
        return self.op("tfl.reshape", [x, sizes], [kind], {"new_shape": np.asarray(shape, np.int32)}).result


def _dot(op: DotGeneral, b: _Floats) -> Value:
    """BATCH_MATMUL of [batches, rows, sum] and [batches, sum, columns]."""
    numbers = op.numbers
    left, right = (tuple(d or 0 for d in v.type.shape or ()) for v in (op.lhs, op.rhs))
    rows, columns = numbers.free(len(left), right=False), numbers.free(len(right), right=True)
    count = prod(left[d] for d in numbers.lhs_contracting)
    batches = tuple(left[d] for d in numbers.lhs_batching)
    x = b.ordered(op.lhs, [*numbers.lhs_batching, *rows, *numbers.lhs_contracting])
    w = b.dequantized(b.ordered(op.rhs, [*numbers.rhs_batching, *numbers.rhs_contracting, *columns]))
    many, wide = prod(left[d] for d in rows), prod(right[d] for d in columns)
    x, w = b.reshaped(x, (*batches, many, count)), b.reshaped(w, (*batches, count, wide))
    attributes = {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False}
    made = b.op("tfl.batch_matmul", [x, w], [TensorType((*batches, many, wide), f32)], attributes).result
    return b.reshaped(made, [d or 0 for d in op.result.type.shape or ()])


def _convolution(op: Convolution, b: _Floats) -> Value:
    """CONV_2D of an input that is padded before."""
    numbers, spread = op.numbers, op.window
    if numbers is None or spread is None or len(spread.sizes) != 2:
        raise _NoBuiltinError("CONV_2D has two spatial dimensions")
    if op.batch_group_count != 1 or any(d != 1 for d in spread.base_dilations):
        raise _NoBuiltinError("CONV_2D has no groups of batches and does not dilate its input")
    if any(integers(op, "window_reversal", (0, 0)) or ()) or any(
        side < 0 for sides in spread.padding for side in sides
    ):
        raise _NoBuiltinError("CONV_2D reverses no window and cuts nothing off")
    x = b.ordered(op.lhs, [numbers.input[0], *numbers.input[2], numbers.input[1]])
    if any(side for sides in spread.padding for side in sides):
        around = np.asarray([(0, 0), *spread.padding, (0, 0)], np.int32)
        sizes = tuple((n or 0) + int(low + high) for n, (low, high) in zip(x.type.shape or (), around, strict=True))
        x = b.op("tfl.pad", [x, constant(around)], [TensorType(sizes, f32)], {}).result
    w = b.dequantized(b.ordered(op.rhs, [numbers.kernel[1], *numbers.kernel[2], numbers.kernel[0]]))
    made = op.result.type.shape or ()
    shape = tuple(made[i] for i in (numbers.output[0], *numbers.output[2], numbers.output[1]))
    bias = constant(np.zeros(shape[-1] or 0, np.float32))
    attributes = {
        **_NONE,
        "padding": "VALID",
        **dict(zip(("stride_h", "stride_w"), spread.strides, strict=True)),
        **dict(zip(("dilation_h_factor", "dilation_w_factor"), spread.dilations, strict=True)),
        "quantized_bias_type": "FLOAT32",
    }
    out = b.op("tfl.conv_2d", [x, w, bias], [TensorType(shape, f32)], attributes).result
    places = (numbers.output[0], *numbers.output[2], numbers.output[1])
    return b.ordered(out, [places.index(i) for i in range(4)])
