"""Unary functions of 8-bit tensors that the kernels look up in a table of 256 entries: LOGISTIC, TANH.

Source: kernels/activations.cc (SigmoidPrepare, TanhPrepare), kernels/internal/common.h (LUTPopulate).
"""

from __future__ import annotations

from tflq.ir.core import Op
from tflq.ir.types import i8, ui8
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name, per_layer
from tflq.numerics.tables import FloatFunction, logistic, table_8bit, tanh

__all__: list[str] = []

_FUNCTIONS: dict[str, FloatFunction] = {"tfl.logistic": logistic, "tfl.tanh": tanh}


@rule(*_FUNCTIONS)
def unary_table(op: Op, b: RuleBuilder) -> Answer:
    """One table, of the storage type, filled in float32 from the parameters of both sides."""
    elements = per_layer(op)
    if isinstance(elements, NotApplicable):
        return elements
    source, output = elements
    storage = source.storage
    if storage not in (i8, ui8) or output.storage != storage:
        return NotApplicable(f"{kernel_name(op)} has no table for {storage} → {output.storage}")
    if op.name == "tfl.logistic" and output.scale != 1 / 256:
        return NotApplicable(f"LOGISTIC demands a result of scale 1/256, here {output.scale:g}")
    parameters = (source.scale, source.zero_point, output.scale, output.zero_point)
    return b.table(b.value(op.operand(0)), table_8bit(_FUNCTIONS[op.name], storage.dtype, *parameters))
