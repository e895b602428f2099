"""The forms of the pipeline: which ops and types are legal in each. They run beside `ir.verifier` (`contract.py`).

    tfl        operators of TFLite with the operands and results that they declare; any types. What text has beside
               them: ops of `stablehlo`, `quant`, `tosa`, `ext` and of MLIR's core dialects
    integer    ops of `tosa`, `ext` and `quant` as declared: operands, element types, attributes; operators of TFLite
               on plain tensors. A quantized tensor is touched by `quant` ops, kept operators and the function's
               boundary only
    kernels    operators of TFLite as declared. Which of them, and on which types, is for the target's own table
    tosa       ops of `tosa` as declared; what TOSA asks for beyond that is for the target's own table (`tosa.check`)

What is declared is checked by `tflq.dialects.declared`.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal

from tflq.dialects.declare import Operator
from tflq.dialects.declared import compiled
from tflq.dialects.traits.effects import Kept, Recurrent
from tflq.ir.core import Function, Module, Op
from tflq.ir.op_checks import Check
from tflq.ir.registry import family, op_class
from tflq.ir.types import ScalarType
from tflq.ir.verifier import fail

__all__ = ["CORE", "OF_TARGET", "UNQUANTIZED", "Form", "is_recurrent", "kept_reason", "verify_form"]

Form = Literal["tfl", "integer", "kernels", "tosa"]

CORE: Final = ("arith", "math", "tensor", "linalg", "shape", "func")
"""MLIR's core dialects."""

UNQUANTIZED: Final = "no quantized tensor"
OF_TARGET: Final = "a kernel of the target"
"""How the reasons of all others begin that a conversion keeps."""

_DIALECTS: Final[dict[Form, tuple[str, ...]]] = {
    "tfl": ("tfl", "stablehlo", "quant", "tosa", "ext", *CORE),
    "integer": ("tfl", "quant", "tosa", "ext"),
    "kernels": ("tfl",),
    "tosa": ("tosa",),
}


def kept_reason(op: Op) -> str | None:
    """Why an operator keeps its quantized tensors in the integer form; None if it does not. Those that a target has
    kernels for say so themselves: "kept" in `Op.info`."""
    kept = op.trait(Kept) if isinstance(op, Operator) else None
    return None if kept is None else kept.reason


def is_recurrent(op: Op) -> bool:
    """Whether an operator keeps a state in variable tensors."""
    return isinstance(op, Operator) and op.has(Recurrent)


def verify_form(module: Module, form: Form) -> None:
    """VerificationError, showing the op among its neighbours, if an op is not legal in the form."""
    for index, function in enumerate(module.functions):
        if not function.info.get("declaration"):
            _verify_function(module, index, function, form)


def _verify_function(module: Module, index: int, function: Function, form: Form) -> None:
    for op in function.ops:
        reason = _check(op.name, form)(op)
        if reason is not None:
            fail(module, index, op, reason)


@cache
def _check(name: str, form: Form) -> Check:
    """What is asked of an op of that name."""
    dialect = name.partition(".")[0]
    if dialect not in _DIALECTS[form]:
        remedy = f"; run the pass that lowers {dialect} first" if form == "tfl" else ""
        return _never(f"the {form} form has ops of {', '.join(_DIALECTS[form])} only{remedy}")
    declared = op_class(name)
    if declared is None:
        return _never(f"the dialect '{dialect}' declares no such op")
    if dialect == "quant" and family(name) != "casts":
        return _never("it is no cast, and nothing computes it; run the pass that takes it away")
    if dialect == "stablehlo" or dialect in CORE or (form == "tfl" and dialect == "quant"):
        return _constrained  # its constraints hold in every form
    if dialect == "tfl" and form == "integer" and not declared.has(Kept):
        return _plain_operator(declared)
    return compiled(declared).check


def _constrained(_: Op) -> str | None:
    """Of an op that its own constraints say all about."""
    return None


def _never(reason: str) -> Check:
    """Of an op that has no place in the form."""
    return lambda _: reason


def _plain_operator(declared: type[Operator]) -> Check:
    """As declared, and without quantized tensors, unless it is a float operator with quantized constants."""
    misdeclared = compiled(declared).check

    def check(op: Op) -> str | None:
        if op.info.get("kept"):
            return misdeclared(op)
        for value in op.operands:
            if value is not None and value.type.element.__class__ is not ScalarType:
                return misdeclared(op) or _quantized(op)
        for value in op.results:
            if value.type.element.__class__ is not ScalarType:
                return misdeclared(op) or _quantized(op)
        return misdeclared(op)

    return check


def _quantized(op: Op) -> str | None:
    """Why quantized tensors are not legal on an operator that is not kept; None if it is hybrid."""
    result = next((i for i, v in enumerate(op.results) if not isinstance(v.type.element, ScalarType)), None)
    if result is not None:
        return f"result {result} ('{op.results[result].name}') is quantized, and the operator is not a kept one"
    floats = any(v is not None and v.type.storage.is_float for v in (*op.operands, *op.results))
    hybrid = floats and op.name != "tfl.dequantize"
    for place, value in enumerate(op.operands):
        if value is None or isinstance(value.type.element, ScalarType) or (value.is_constant and hybrid):
            continue
        return f"operand {place} ('{value.name}') is quantized, and the operator is not a kept one"
    return None
