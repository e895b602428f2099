"""The fallback: dequantize the operands, compute the operator in float, requantize the results (seed: the quant dialect's
"overcoming limited quantization support").

Within one count of the real-valued result, rounded. Operands that are not quantized (axes, indices, shapes) stay as they are.
The casts between neighbours are simplified away afterwards by canonicalization and CSE.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.ir.core import Op, Value
from tflq.ir.types import f32
from tflq.legalize.rule import NotApplicable, RuleBuilder

__all__ = ["fall_back"]


def fall_back(op: Op, b: RuleBuilder) -> Sequence[Value] | NotApplicable:
    """The op on float tensors. NotApplicable if some quantized tensor expresses another type than float32."""
    for value in op.values:
        if value.type.quantized and value.type.element.expressed != f32:  # type: ignore[union-attr]
            return NotApplicable(f"tensor '{value.name}' does not express float32")
    operands = [
        None if v is None else b.dcast(b.typed(v)) if v.type.quantized else b.value(v) for v in op.operands
    ]
    types = [v.type.with_element(f32) if v.type.quantized else v.type for v in op.results]
    version = {"version": op.info["version"]} if "version" in op.info else {}
    made = b.op(op.name, operands, types, op.attributes, version)
    results: list[Value] = []
    for old, new in zip(op.results, made.results, strict=True):
        if not old.type.quantized:
            results.append(new)
            continue
        quantized = b.qcast(new, old.type)
        results.append(b.scast(quantized, old.type.stripped()))
    return results


