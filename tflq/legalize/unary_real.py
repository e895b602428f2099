"""Unary functions that no kernel computes on the types at hand: the real function, rounded.

Tables, for any storage types and quantized axes (`grid.looked_up_by`); ABS, NEG, SQUARE and the RELU family are scaled
where the tables would be large.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tflq.dialects.tfl.arithmetic import (
    Abs,
    Activation,
    Ceil,
    Cos,
    Elu,
    Exp,
    FakeQuant,
    Floor,
    Gelu,
    HardSwish,
    LeakyRelu,
    Log,
    Logistic,
    Neg,
    Quantize,
    Relu,
    Relu0To1,
    Relu6,
    ReluN1To1,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
    Tanh,
    Unary,
)
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, i32, ui8
from tflq.legalize.arithmetic_real import NOTE
from tflq.legalize.grid import Grid, centred_by, finished, grid_of, grids_of, looked_up_by, requantized_by
from tflq.legalize.probing import kernel_name
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, no_parameters, rule
from tflq.numerics.elementwise import BOUNDS
from tflq.numerics.ranges import fake_quant
from tflq.numerics.unary import REAL_FUNCTIONS, FloatFunction, gelu

_Operator: TypeAlias = Activation | Unary | FakeQuant


@rule(
    Relu,
    Relu6,
    ReluN1To1,
    Relu0To1,
    LeakyRelu,
    Elu,
    Gelu,
    HardSwish,
    Logistic,
    Tanh,
    FakeQuant,
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
    order=2,
)
def real_function(op: _Operator, b: RuleBuilder) -> Answer:
    """Tables of the real function, or what is linear, scaled."""
    source, target = grids_of(*op.tensors)
    with no_parameters:
        function = _function(op)
    try:
        result = looked_up_by(b, op.input, source, target, function)
    except NotApplicable:
        linear = _linear(op, b, source, target)
        if linear is None:
            raise
        result = linear
    return Rewritten([result], note=NOTE)


def _function(op: _Operator) -> FloatFunction:
    """The real function, with the op's options. ValueError where these make no sense."""
    match op:
        case FakeQuant():
            return fake_quant(op.min, op.max, op.num_bits, narrow_range=op.narrow_range)
        case Gelu():
            exact = gelu(op.approximate)
            return lambda x: exact(x.reshape(-1).astype(np.float32)).reshape(x.shape)
        case LeakyRelu():
            alpha = op.alpha
            return lambda x: np.where(x >= 0, x, x * alpha)
    name = kernel_name(op)
    if name in BOUNDS:
        low, high = BOUNDS[name]
        return lambda x: np.clip(x, low, high)
    return REAL_FUNCTIONS[name]


def _linear(op: _Operator, b: RuleBuilder, source: Grid, target: Grid) -> Value | None:
    """A function that scales x, -x, |x| or x x; None for others."""
    ratio, reach = source.scales / target.scales, source.reach
    x, zero = centred_by(b, op.input, source), b.constant(0)
    bounds = -reach, reach
    match op:
        case Relu() | Relu6() | ReluN1To1() | Relu0To1():
            return finished(b, x, ratio, target, bounds, kernel_name(op))
        case Neg():
            return finished(b, b.sub(zero, x), ratio, target, bounds)
        case Abs():
            return finished(b, b.maximum(x, b.sub(zero, x)), ratio, target, bounds)
        case Square() if reach * reach < 1 << 31:
            return finished(b, b.mul(x, x), source.scales * ratio, target, (0, reach * reach))
    return None


@rule(Quantize, order=2)
def quantize(op: Quantize, b: RuleBuilder) -> Answer:
    """QUANTIZE between parameters per axis, or types that the kernel does not take."""
    source, target = (grid_of(v, storages=(i8, ui8, i16, i32)) for v in op.tensors)
    if i32 in (source.storage, target.storage) and (source.reach > 1 << 31 or target.zero is None):
        raise NotApplicable("int32 with zero points leaves 32 bits")
    return Rewritten([requantized_by(b, op.input, source, target)], note=NOTE)
