"""What holds for convolution and dot_general on quantized tensors: all three quantized, or, as weight-only
quantization has it, the right-hand side only (a hybrid op, which dequantizes it and computes in floating point).

The source is the proposal "Hybrid quantized ops for weight-only quantization".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tflq.dialects.declare import Trait
from tflq.dialects.stablehlo.rules import Check, constraint, is_per_axis
from tflq.ir.core import Op
from tflq.ir.types import is_quantized

__all__ = [
    "Hybrid",
    "all_quantized_or_hybrid",
    "is_hybrid",
    "lhs_per_tensor",
    "one_expressed_type",
    "one_storage_type",
    "real_as_expressed",
]


@dataclass(frozen=True, slots=True)
class Hybrid(Trait):
    """It takes a floating-point lhs and a quantized rhs, which it dequantizes."""


def is_hybrid(op: Op) -> bool:
    """Whether rhs is quantized, and lhs is not."""
    return op.operand(1).type.quantized and not op.operand(0).type.quantized


def uses_quantized(op: Op) -> bool:
    return any(v.type.quantized for v in op.tensors)


def all_quantized_or_hybrid(label: str) -> Check:
    @constraint
    def rule(op: Any) -> bool:
        lhs, rhs, made = op.lhs.type, op.rhs.type, op.result.type
        return not uses_quantized(op) or (lhs.quantized == made.quantized and rhs.quantized)

    return _labelled(label, "lhs and result must be both quantized or both not, and rhs must be quantized", rule)


@constraint
def lhs_per_tensor(op: Any) -> bool:
    """lhs must not be quantized per axis"""
    return not is_per_axis(op.lhs.type)


def one_storage_type(label: str) -> Check:
    @constraint
    def rule(op: Any) -> bool:
        return not op.lhs.type.quantized or op.lhs.type.storage == op.rhs.type.storage

    return _labelled(label, "lhs and rhs must have the same storage type", rule)


def one_expressed_type(label: str) -> Check:
    @constraint
    def rule(op: Any) -> bool:
        return not op.lhs.type.quantized or len({v.type.element.expressed for v in op.tensors}) == 1

    return _labelled(label, "lhs, rhs and result must have the same expressed type", rule)


def real_as_expressed(label: str) -> Check:
    @constraint
    def rule(op: Any) -> bool:
        element = op.rhs.type.element
        if not is_quantized(element) or op.lhs.type.quantized:
            return True
        return bool(op.lhs.type.element == element.expressed == op.result.type.element)

    return _labelled(label, "the element types of lhs and result must be the expressed type of rhs", rule)


def _labelled(label: str, sentence: str, rule: Check) -> Check:
    said = f"({label}) {sentence}"

    def check(op: Op) -> str | None:
        return None if rule(op) is None else said

    check.__doc__ = said
    return check


def along(type: Any, dimension: int) -> bool:
    """Whether a type that has scales along an axis has them along this one."""
    return not is_per_axis(type) or type.element.axis == dimension
