"""What holds for convolution and dot_general on quantized tensors: all three quantized, or, as weight-only
quantization has it, the right-hand side only (a hybrid op, which dequantizes it and computes in floating point).

The source is the proposal "Hybrid quantized ops for weight-only quantization".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tflq.dialects.declare import Trait
from tflq.dialects.stablehlo.rules import is_per_axis
from tflq.ir.core import Op
from tflq.ir.op_checks import Check, constraint
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
    def rule(op: Any) -> bool:
        lhs, rhs, made = op.lhs.type, op.rhs.type, op.result.type
        return not uses_quantized(op) or (lhs.quantized == made.quantized and rhs.quantized)

    return constraint(rule, f"({label}) lhs and result must be both quantized or both not, and rhs must be quantized")


@constraint
def lhs_per_tensor(op: Any) -> bool:
    """lhs must not be quantized per axis"""
    return not is_per_axis(op.lhs.type)


def one_storage_type(label: str) -> Check:
    def rule(op: Any) -> bool:
        return not op.lhs.type.quantized or op.lhs.type.storage == op.rhs.type.storage

    return constraint(rule, f"({label}) lhs and rhs must have the same storage type")


def one_expressed_type(label: str) -> Check:
    def rule(op: Any) -> bool:
        return not op.lhs.type.quantized or len({v.type.element.expressed for v in op.tensors}) == 1

    return constraint(rule, f"({label}) lhs, rhs and result must have the same expressed type")


def real_as_expressed(label: str) -> Check:
    def rule(op: Any) -> bool:
        element = op.rhs.type.element
        if not is_quantized(element) or op.lhs.type.quantized:
            return True
        return bool(op.lhs.type.element == element.expressed == op.result.type.element)

    return constraint(rule, f"({label}) the element types of lhs and result must be the expressed type of rhs")


def along(type: Any, dimension: int) -> bool:
    """Whether a type that has scales along an axis has them along this one."""
    return not is_per_axis(type) or type.element.axis == dimension
