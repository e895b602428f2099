"""The casts between real values, quantized values and their storage."""

from __future__ import annotations

from typing import Final

from tflq.dialects.declare import FLOAT, INTEGER, QUANTIZED, Operator, attribute, operand, words
from tflq.dialects.declare import result as result_
from tflq.dialects.traits.operands import ComputesInFloat, Role
from tflq.dialects.traits.types import SameShape
from tflq.ir.core import Module, Value
from tflq.ir.facts import walk
from tflq.ir.verifier import (
    axis_integrity,
    both_ranked_or_unranked,
    both_scalars_or_tensors,
    expressed_matches,
    fail,
    integer_or_quantized,
    one_operand_and_result,
    one_side_quantized,
    operand_float,
    operand_quantized,
    result_float,
    result_quantized,
    same_shape,
    signless_integers,
    storage_width,
)
from tflq.numerics.fixed_point import ROUNDINGS, Rounding

_ALIKE: Final = (both_scalars_or_tensors, both_ranked_or_unranked, same_shape)


class Qcast(Operator, name="quant.qcast"):
    """result = clamp(round(input / scale) + zero_point, storage_min, storage_max)

    `rounding` is that of the quotient, `sum_rounding` of the sum with the zero point; by default half to even, of the
    quotient.
    """

    input: Value = operand(FLOAT)
    result: Value = result_(QUANTIZED)
    rounding: Rounding | None = attribute(words(*ROUNDINGS), default=None)
    sum_rounding: Rounding | None = attribute(words(*ROUNDINGS), default=None)
    traits = (Role("quantized"), ComputesInFloat(), SameShape(input, result))
    constraints = (one_operand_and_result, operand_float, result_quantized, expressed_matches, *_ALIKE, axis_integrity)


class Dcast(Operator, name="quant.dcast"):
    """result = (input - zero_point) * scale"""

    input: Value = operand(QUANTIZED)
    result: Value = result_(FLOAT)
    traits = (Role("dequantized"), ComputesInFloat(), SameShape(input, result))
    constraints = (one_operand_and_result, operand_quantized, result_float, expressed_matches, *_ALIKE, axis_integrity)


class Scast(Operator, name="quant.scast"):
    """result = input, the same stored integers under another type"""

    input: Value = operand(INTEGER, QUANTIZED)
    result: Value = result_(QUANTIZED, INTEGER)
    traits = (Role("stored"), SameShape(input, result))
    constraints = (
        one_operand_and_result,
        integer_or_quantized,
        one_side_quantized,
        *_ALIKE,
        storage_width,
        axis_integrity,
    )


def verify_casts(module: Module) -> None:
    """VerificationError if a quant.scast is not between a quantized and a signless type, as the `quant` dialect has it.
    A conversion's own casts may be to unsigned types, which are what files hold."""
    for index, function in enumerate(module.functions):
        for op in function.ops:
            for inner in walk([op]) if op.regions else (op,):
                if isinstance(inner, Scast) and (reason := signless_integers(inner)) is not None:
                    fail(module, index, op, reason)
