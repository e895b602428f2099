"""Ops of the `tf` dialect, that of TensorFlow's graphs: the fake quantizations by which training simulates
quantization. In text only. Constants (`tf.Const`) are values, as in every dialect.
"""

from __future__ import annotations

from typing import ClassVar

from tflq.dialects.declare import BOOL, INT, NUMBER, Operator, Trait, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.traits.quantization import SimulatesQuantization
from tflq.dialects.traits.types import SameShape
from tflq.ir.core import Op, Value
from tflq.ir.types import f32
from tflq.ir.verifier import Check, constraint


@constraint
def _bits(op: FakeQuantWithMinMaxArgs) -> bool:
    """num_bits must be an integer from 2 to 16"""
    return 2 <= op.num_bits <= 16


@constraint
def _range_ordered(op: FakeQuantWithMinMaxArgs) -> bool:
    """min must be below max"""
    return op.min < op.max


@constraint
def _alike(op: Op) -> bool:
    """inputs and outputs must be of one shape"""
    given, made = op.operand(0).type.shape, op.result.type.shape
    return given is None or made is None or given == made


@constraint
def _one_range(op: Op) -> bool:
    """min and max must be scalars"""
    return all(op.operand(place).type.shape in (None, ()) for place in (1, 2))


@constraint
def _ranges_of_channels(op: Op) -> bool:
    """min and max must have one number for each index of the last dim of the inputs"""
    shape = op.operand(0).type.shape
    if shape == ():
        return False
    bounds = [op.operand(place).type.shape for place in (1, 2)]
    count = None if shape is None else shape[-1]
    return all(b is None or (len(b) == 1 and (count is None or b[0] in (None, count))) for b in bounds)


class FakeQuantWithMinMaxArgs(Operator, name="tf.FakeQuantWithMinMaxArgs"):
    """outputs = inputs, quantized to `num_bits` between min and max and dequantized again. narrow_range: without the
    lowest integer.
    """

    inputs: Value = operand(f32)
    outputs: Value = result_(f32)
    min: float = attribute(NUMBER, default=-6.0)
    max: float = attribute(NUMBER, default=6.0)
    num_bits: int = attribute(INT, default=8)
    narrow_range: bool = attribute(BOOL, default=False)
    traits = (SimulatesQuantization(inputs, min, max), SameShape(inputs, outputs))
    constraints = (declared, _alike, _bits, _range_ordered)


class _WithVars(Operator):
    """Of a range that is computed."""

    inputs: Value = operand(f32)
    min: Value = operand(f32)
    max: Value = operand(f32)
    outputs: Value = result_(f32)
    num_bits: int = attribute(INT, default=8)
    narrow_range: bool = attribute(BOOL, default=False)
    traits: ClassVar[tuple[Trait, ...]] = (SameShape(inputs, outputs),)
    constraints: ClassVar[tuple[Check, ...]] = (declared, _alike, _bits)


class FakeQuantWithMinMaxVars(_WithVars, name="tf.FakeQuantWithMinMaxVars"):
    """`tf.FakeQuantWithMinMaxArgs` with a range that is computed."""

    traits = (SimulatesQuantization(_WithVars.inputs, _WithVars.min, _WithVars.max), *_WithVars.traits)
    constraints = (*_WithVars.constraints, _one_range)


class FakeQuantWithMinMaxVarsPerChannel(_WithVars, name="tf.FakeQuantWithMinMaxVarsPerChannel"):
    """`tf.FakeQuantWithMinMaxVars` with a range for each index of the last dim."""

    traits = (SimulatesQuantization(_WithVars.inputs, _WithVars.min, _WithVars.max, axis=-1), *_WithVars.traits)
    constraints = (*_WithVars.constraints, _ranges_of_channels)
