"""raise-real-math: float operators of TFLite become the real ops of `fxpmath`.

    ADD SUB MUL DIV          real_add_ew and its kin, with the fused activation as a clamp
    FULLY_CONNECTED          real_matmul or real_matmul_bias; weights are transposed, a constant at once
    TANH LOGISTIC EXP ...    real_unary
    RELU and its kin, MAXIMUM and MINIMUM with a number
                             a clamp of the real op whose result only they read
    ADD of a vector          the bias of a real_matmul whose result only it reads

Two clamps, one after the other, are one (`numerics.real_math.combined`).
"""

from __future__ import annotations

from collections import Counter
from math import isfinite, prod
from typing import Any, ClassVar, Final, Literal

import numpy as np

from tflq.builder import Emitter
from tflq.contract import Pass, PassResult
from tflq.dialects.core_numbers import (
    RealAddEw,
    RealBinary,
    RealDivEw,
    RealMath,
    RealMatmul,
    RealMatmulBias,
    RealMulEw,
    RealSubEw,
    RealUnary,
)
from tflq.dialects.inference import constant_array
from tflq.dialects.tfl.arithmetic import (
    Add,
    Div,
    Exp,
    Log,
    Logistic,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Relu,
    Relu0To1,
    Relu6,
    ReluN1To1,
    Rsqrt,
    Sin,
    Sqrt,
    Square,
    Sub,
    Tanh,
)
from tflq.dialects.tfl.convolution import FullyConnected
from tflq.dialects.tfl.movement import Reshape, Transpose
from tflq.ir.core import Function, Module, Op, Value, constant
from tflq.ir.rewriting import stand_for
from tflq.ir.types import TensorType, f32
from tflq.numerics.elementwise import BOUNDS
from tflq.numerics.real_math import combined

_Bounds = tuple[float | None, float | None]
_FREE: Final[_Bounds] = (None, None)

_BINARIES: Final[dict[type[Op], type[RealBinary]]] = {Add: RealAddEw, Sub: RealSubEw, Mul: RealMulEw, Div: RealDivEw}
_UNARIES: Final[dict[type[Op], str]] = {
    Tanh: "TANH",
    Logistic: "SIGMOID",
    Exp: "EXP",
    Log: "LOG",
    Neg: "NEG",
    Rsqrt: "RSQRT",
    Sin: "SIN",
    Square: "SQUARE",
    Sqrt: "SQRT",
}
_CLAMPS: Final[dict[type[Op], str]] = {
    Relu: "RELU",
    Relu6: "RELU6",
    ReluN1To1: "RELU_N1_TO_1",
    Relu0To1: "RELU_0_TO_1",
}


class RaiseRealMath(Pass):
    """Raises float32 ADD, SUB, MUL, DIV, FULLY_CONNECTED and functions of one number to the real ops of `fxpmath`, with
    their activations, clamps and biases.

    Other operators stay, and so do clamps of a result that something else reads, too, or that no real op makes.
    """

    name: ClassVar[str] = "raise-real-math"
    makes: ClassVar[Literal["any"]] = "any"

    def run(self, module: Module) -> PassResult:
        modified = [_Raising(function).run() for function in module.functions]
        return PassResult(module, any(modified))


class _Raising:
    """The raising of one function. `readers`: how often each value is read."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.readers = Counter({value: len(ops) for value, ops in function.users().items()})
        self.readers.update(function.outputs)
        self.ops: list[Op] = []
        self.b = Emitter(self.ops)
        self.gone: set[Value] = set()

    def run(self) -> bool:
        """Whether anything changed."""
        modified = False
        for op in self.function.ops:
            self.b.location = op.location
            raised = self.raised(op) if _is_float(op) else None
            if raised is None:
                self.ops.append(op)
                continue
            stand_for(raised, op.result)
            modified = True
        self.function.ops = self.ops
        self.function.tensors = [value for value in self.function.tensors if value not in self.gone]
        return modified

    def raised(self, op: Op) -> Value | None:
        """What stands for the result of an operator; None if it stays."""
        if isinstance(op, FullyConnected):
            return self.product(op)
        if (kind := _BINARIES.get(type(op))) is not None:
            return self.biased(op) or self.binary(op, kind)
        if (opcode := _UNARIES.get(type(op))) is not None:
            return self.b.emit(RealUnary, op.operands, op.result.type, opcode=opcode)
        clamp = _clamp(op)
        return None if clamp is None else self.clamped(*clamp)

    def binary(self, op: Any, kind: type[RealBinary]) -> Value | None:
        bounds = _activation(op)
        return None if bounds is None else self.b.emit(kind, op.operands, op.result.type, **_attributes(bounds))

    def product(self, op: FullyConnected) -> Value | None:
        """input weightsᵀ + bias."""
        bounds, shape = _activation(op), op.weights.type.shape
        plain = op.weights_format == "DEFAULT" and len(op.results) == 1
        if bounds is None or not plain or shape is None or (op.bias is not None and op.bias.type.rank != 1):
            return None
        rows = self.rows(op, shape[1])
        if rows is None:
            return None
        operands: list[Value | None] = [rows, self.transposed(op.weights)]
        if op.bias is None:
            return self.b.emit(RealMatmul, operands, op.result.type, **_attributes(bounds))
        return self.b.emit(RealMatmulBias, [*operands, op.bias], op.result.type, **_attributes(bounds))

    def rows(self, op: FullyConnected, length: int | None) -> Value | None:
        """The input, in rows of the weights' length."""
        dims = op.input.type.shape
        if dims is None or length is None:
            return None
        if dims and dims[-1] == length and (op.keep_num_dims or len(dims) == 2):
            return op.input
        if op.keep_num_dims:
            return None
        known = [dim for dim in dims if dim is not None]
        count = prod(known) // length if len(known) == len(dims) and length else None
        sizes = constant(np.asarray([-1, length], np.int32))
        return self.b.emit(Reshape, [op.input, sizes], TensorType((count, length), f32))

    def transposed(self, weights: Value) -> Value:
        array = constant_array(weights)
        if array is not None:
            return constant(np.ascontiguousarray(array.T), name=weights.name)
        units, length = weights.type.shape or (None, None)
        order = constant(np.asarray([1, 0], np.int32))
        return self.b.emit(Transpose, [weights, order], TensorType((length, units), f32))

    def biased(self, op: Any) -> Value | None:
        """A product and the ADD of a vector to it, as one op."""
        bounds = _activation(op)
        if not isinstance(op, Add) or bounds is None:
            return None
        for product, bias in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            made = self.only_read_here(product)
            if not isinstance(made, RealMatmul) or _bounds(made) != _FREE or bias.type.rank != 1:
                continue
            if bias.type.shape == (product.type.shape or ())[-1:] and product.type == op.result.type:
                self.ops.remove(made)
                self.gone.add(product)
                return self.b.emit(RealMatmulBias, [*made.operands, bias], op.result.type, **_attributes(bounds))
        return None

    def clamped(self, x: Value, bounds: _Bounds) -> Value | None:
        """The real op that makes x, with a clamp more."""
        made = self.only_read_here(x)
        if not isinstance(made, RealMath):
            return None
        made.attributes = {**made.attributes, **_attributes(combined(_bounds(made), *bounds))}
        self.gone.add(x)
        return x

    def only_read_here(self, x: Value) -> Op | None:
        """The op of this function that makes a value, if that is read once."""
        return x.producer if self.readers[x] == 1 and x.producer in self.ops else None


def _is_float(op: Op) -> bool:
    """Whether an operator has one result, and all its tensors are float32."""
    return op.name.startswith("tfl.") and bool(op.results) and all(v.type.element == f32 for v in op.tensors)


def _activation(op: Any) -> _Bounds | None:
    """The bounds of a fused activation; None of one that does not clamp."""
    name = op.fused_activation_function
    return _FREE if name == "NONE" else BOUNDS.get(name)


def _clamp(op: Op) -> tuple[Value, _Bounds] | None:
    """The tensor that an operator clamps, and to what."""
    if (name := _CLAMPS.get(type(op))) is not None:
        (x,) = op.reads
        return x, BOUNDS[name]
    if isinstance(op, (Maximum, Minimum)):
        for x, bound in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if x.type == op.result.type and (number := _number(bound)) is not None:
                return x, ((number, None) if isinstance(op, Maximum) else (None, number))
    return None


def _number(value: Value) -> float | None:
    """The one number that all elements of a constant are."""
    array = constant_array(value)
    if array is None or not array.size or not (array == array.reshape(-1)[0]).all():
        return None
    return float(array.reshape(-1)[0])


def _bounds(op: RealMath) -> _Bounds:
    return op.clamp_min, op.clamp_max


def _attributes(bounds: _Bounds) -> dict[str, Any]:
    """The attributes of a clamp; None for an end that is infinite."""
    named = zip(("clamp_min", "clamp_max"), bounds, strict=True)
    return {name: bound for name, bound in named if bound is not None and isfinite(bound)}
