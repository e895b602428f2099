"""`stablehlo.uniform_quantize` and `uniform_dequantize`, with the specification's rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.dialects.stablehlo.casts import UniformDequantize, UniformQuantize
from tflq.dialects.stablehlo.conversions import rescale_region
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import UniformQuantizedType, f32
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.legalize.stablehlo.conversions import converted

__all__ = ["uniform_dequantize", "uniform_quantize"]


@rule(UniformQuantize)
def uniform_quantize(op: UniformQuantize, b: RuleBuilder) -> Answer:
    """result = clamp(round half even(real / scale + zero_point))"""
    source, target = op.input.type, op.result.type
    made: Any = target.element
    if not isinstance(made, UniformQuantizedType) or made.expressed != f32:
        raise Refused("only one scale, of f32, is computed in integers")
    if not source.quantized:
        real: Value = b.op(
            "tfl.div",
            [b.value(op.input), b.constant(np.asarray(made.scale, np.float32), f32)],
            [source],
            {"fused_activation_function": "NONE"},
        ).result
        if made.zero_point:
            real = b.add(real, b.constant(np.asarray(made.zero_point, np.float32), f32))
        unit = UniformQuantizedType.of(made.storage, 1.0, 0, storage_min=made.storage_min, storage_max=made.storage_max)
        return b.scast(b.qcast(real, target.with_element(unit), "half_even"), target.stripped())
    given: Any = source.element
    if not isinstance(given, UniformQuantizedType):
        raise Refused("only one scale is computed in integers")
    region = rescale_region([given], [made])
    found = converted(b, b.value(op.input), region, source, (given.storage_min, given.storage_max))
    if isinstance(found, NotApplicable):
        raise Refused(str(found))
    return b.cast(found.value, made.storage)


@rule(UniformDequantize)
def uniform_dequantize(op: UniformDequantize, b: RuleBuilder) -> Answer:
    """result = (stored - zero_point) * scale"""
    if op.result.type.element != f32:
        raise Refused(f"TFLite dequantizes to f32, not to {op.result.type.storage}")
    return b.dcast(b.typed(op.input))
