"""Raising: a module in the tosa form → the integer form, which selection takes for TFLite.

Most of it is the integer form already. What differs:

    bias of one element    is repeated for every channel
    INEXACT_ROUND          any rounding will do: SINGLE_ROUND
    accumulators           their bounds are noted again (`note_bounds`)
    names                  that a serializer made up go, so that what they are on can be fused

Functions, their arguments and results, and signatures stay. What TFLite's builtins cannot say is refused by name:
operators that are not declared (FFT2D, RFFT2D, CUSTOM) and arithmetic in 16-bit or 8-bit floats.
"""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from tflq.analysis.evaluate.registry import running
from tflq.base.errors import Reason, UnsupportedError, operators
from tflq.dialects.declare import Operator
from tflq.dialects.forms import ModuleForm
from tflq.dialects.tosa.convolution import Convolution, DepthwiseConv2D, MatMul
from tflq.dialects.tosa.movement import Cast, Identity, Rescale, Reshape, Reverse, Slice, Transpose
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import f32, i32
from tflq.numerics.convolution import exact_bounds
from tflq.transforms.pass_manager import Decision, Decisions, Pass, PassResult

_GENERATED = re.compile(r"(t|layer_|%)\d+")
"""Names of our writer and LLVM's serializer for a tensor without a name."""


class RaiseTosa(Pass):
    """Operators of TOSA become the integer form; each is noted as converted (`Decisions`)."""

    name: ClassVar[str] = "raise-tosa"
    title: ClassVar[str] = "reading TOSA"
    takes: ClassVar[ModuleForm] = "tosa"
    makes: ClassVar[ModuleForm] = "integer"

    def run(self, module: Module) -> PassResult:
        module.record.note(Decisions([Decision(op, _path(op), "an operator of TOSA") for op in module.ops()]))
        return PassResult(raise_module(module), modified=True)


def raise_module(module: Module) -> Module:
    """The module in the integer form, changed in place. UnsupportedError lists every operator that has none."""
    reasons = [reason for op in module.ops() if (reason := _refusal(op)) is not None]
    if reasons:
        what = f"no form on TFLite's builtins for {operators(len(reasons))}:"
        raise UnsupportedError(what, reasons, remedy="write these in other operators of TOSA, or keep the TOSA file")
    _forget_names(module)
    for op in module.ops():
        _rewrite(op)
        note_bounds(op)
    return module


def _forget_names(module: Module) -> None:
    ends = {v for function in module.functions for v in (*function.inputs, *function.outputs)}
    for op in module.ops():
        for value in op.results:
            if value not in ends and _GENERATED.fullmatch(value.name):
                value.name = ""


def _refusal(op: Op) -> Reason | None:
    """Why an op cannot be raised."""
    if not isinstance(op, Operator):
        return Reason.at(op.location, f"TFLite has nothing like {op.name}")
    if isinstance(op, (Cast, Identity, Reshape)):
        return None
    for value in op.tensors:
        storage = value.type.storage
        if storage.is_float and storage != f32:
            return Reason.at(op.location, f"TFLite's {op.name.removeprefix('tosa.')} does not compute in {storage}")
    return None


def _rewrite(op: Op) -> None:
    if isinstance(op, Rescale) and op.rounding_mode == "INEXACT_ROUND":
        op.attributes["rounding_mode"] = "SINGLE_ROUND"
    if isinstance(op, Convolution):
        op.operands[2] = _per_channel(op)


def _per_channel(op: Convolution) -> Value:
    """The bias with an element for each channel of the result."""
    bias = op.bias
    channels = (op.result.type.shape or (None,))[-1]
    if bias.type.shape != (1,) or channels in (None, 1):
        return bias
    if not bias.is_constant:
        raise UnsupportedError(Reason.at(op.location, f"a computed bias of one element for {channels} channels"))
    return constant(np.repeat(bias.array, channels or 1), name=bias.name)


def _path(op: Op) -> str:
    """The path of an operator of TOSA; control flow and variables stay."""
    if running.get(type(op)) is not None:
        return "kept"
    return "float" if any(v.type.storage.is_float for v in op.tensors) else "integer"


# The values that an accumulator can take, noted on the RESCALE that reads it, since TOSA cannot say them. With constant
# weights they are the sums of positive and of negative weights times the ends of the input, plus the bias. Selection
# then proves cheaper forms of the RESCALE, and sums in 32 bits what TOSA sums in 48.

_LAYOUT = Identity | Reshape | Reverse | Slice | Transpose
_WIDEST = 1 << 47


def note_bounds(op: Op) -> None:
    """Gives a RESCALE its `input_range`, if its operand is a sum of known weights."""
    if not isinstance(op, Rescale) or op.input_range is not None or op.input_zp:
        return
    value = op.input
    while isinstance(value.producer, _LAYOUT):
        (value,) = value.producer.present_operands
    bounds = None
    if value.type.storage.is_integer:
        if isinstance(value.producer, Convolution):
            bounds = _of_layer(value.producer)
        elif isinstance(value.producer, MatMul):
            bounds = _of_product(value.producer)
    limit = (i32.minimum, i32.maximum) if value.type.storage == i32 else (-_WIDEST, _WIDEST - 1)
    if bounds is not None and limit[0] <= bounds[0] and bounds[1] <= limit[1]:
        op.attributes["input_range"] = bounds


def _of_layer(op: Convolution) -> tuple[int, int] | None:
    if not op.weight.is_constant or not op.bias.is_constant:
        return None
    rows = op.weight.array
    if isinstance(op, DepthwiseConv2D):
        rows, axis = rows.reshape(-1, rows.shape[2] * rows.shape[3]), 0
    else:
        rows, axis = rows.reshape(rows.shape[0], -1), 1
    return _sums(op.input, op.input_zp, rows, axis, op.weight_zp, op.bias.array)


def _of_product(op: MatMul) -> tuple[int, int] | None:
    if not op.input2.is_constant:
        return None
    return _sums(op.input1, op.a_zp, op.input2.array, 1, op.b_zp, np.zeros(1, np.int64))


def _sums(
    x: Value, zero_point: int, weights: np.ndarray, axis: int, weight_zp: int, bias: np.ndarray
) -> tuple[int, int]:
    """Bounds of the sums of (weights - weight_zp) times all values of x - zero_point."""
    return exact_bounds(weights, (axis,), weight_zp, *x.type.storage.less(zero_point), bias)
