"""The forms of the pipeline: which ops and types are legal in each. They run beside `ir.verifier` (`contract.py`).

    tfl        operators of TFLite with the operands and results that they declare; any types. What text has beside
               them: ops of `stablehlo`, `quant`, `tosa`, `ext` and of MLIR's core dialects
    integer    ops of `tosa`, `ext` and `quant` as declared: operands, element types, attributes; operators of TFLite
               on plain tensors. A quantized tensor is touched by `quant` ops, kept operators and the function's
               boundary only
    kernels    operators of TFLite as declared. Which of them, and on which types, is for the target's own table
    tosa       ops of `tosa` as declared; what TOSA asks for beyond that is for the target's own table (`tosa.check`)

Each class is compiled into a check when its first op is met; the types of one that has passed are remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from tflq.dialects.declare import Operator, Slot
from tflq.dialects.traits.effects import Kept, Recurrent
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.registry import family, op_class
from tflq.ir.types import ScalarType
from tflq.ir.verifier import fail

__all__ = ["CORE", "OF_TARGET", "UNQUANTIZED", "Form", "is_recurrent", "kept_reason", "verify_form"]

Form = Literal["tfl", "integer", "kernels", "tosa"]
Check: TypeAlias = Callable[[Op], str | None]

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
    if form == "tfl" and dialect == "quant" and family(name) != "casts":
        return _never("it is no cast, and nothing computes it; run the pass that takes it away")
    if dialect == "stablehlo" or dialect in CORE or (form == "tfl" and dialect == "quant"):
        return _declared  # its constraints hold in every form
    if dialect != "tfl":
        return _Declared(declared).check
    return _plain_operator(declared) if form == "integer" and not declared.has(Kept) else _operator(declared)


def _declared(_: Op) -> str | None:
    """Of an op that its own constraints say all about."""
    return None


def _never(reason: str) -> Check:
    """Of an op that has no place in the form."""
    return lambda _: reason


def _operator(declared: type[Operator]) -> Check:
    """Of an operator of TFLite: as many operands and results as declared."""
    operands, results = _Count("operand", declared.operand_slots), _Count("result", declared.result_slots)
    fit: set[tuple[int, int]] = set()  # numbers of operands and results that are as declared, if none is left out

    def check(op: Op) -> str | None:
        counts = len(op.operands), len(op.results)
        if counts in fit and None not in op.operands:
            return None
        reason = operands.reason(op.operands) or results.reason(op.results)
        if reason is None:
            fit.add(counts)
        return reason

    return check


def _plain_operator(declared: type[Operator]) -> Check:
    """As `_operator`, and without quantized tensors, unless it is a float operator with quantized constants."""
    arity = _operator(declared)

    def check(op: Op) -> str | None:
        if op.info.get("kept"):
            return arity(op)
        for value in op.operands:
            if value is not None and value.type.element.__class__ is not ScalarType:
                return arity(op) or _quantized(op)
        for value in op.results:
            if value.type.element.__class__ is not ScalarType:
                return arity(op) or _quantized(op)
        return arity(op)

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


class _Count:
    """How many values a list of slots takes."""

    def __init__(self, kind: str, slots: Sequence[Slot]) -> None:
        self.kind = kind
        self.slots = slots
        self.fewest = sum(not (s.optional or s.variadic) for s in slots)
        self.most = None if any(s.variadic for s in slots) else len(slots)

    def reason(self, values: Sequence[Value | None]) -> str | None:
        """What is wrong with their number, or with one that is left out."""
        count = len(values)
        if count < self.fewest or (self.most is not None and count > self.most):
            most = "more" if self.most is None else str(self.most)
            expected = str(self.fewest) if self.fewest == self.most else f"{self.fewest} to {most}"
            return f"it has {count} {self.kind}(s), and {expected} are declared"
        if None not in values:
            return None
        for slot, value in zip(self.slots, values, strict=False):
            if value is None and not (slot.optional or slot.variadic):
                return f"{self.kind} '{slot.name}' is left out and not optional"
        return None


class _Declared:
    """The check of an op of `tosa`, `ext` or `quant`: values as one of its signatures says, attributes as declared."""

    def __init__(self, declared: type[Operator]) -> None:
        self.declared = declared
        self.attributes = {a.key: a for a in declared.attribute_slots.values()}
        self.required = {a.key for a in self.attributes.values() if a.required}
        self.holds = {key: a.kind.holds for key, a in self.attributes.items() if a.kind is not None}
        self.constants = [s for s in declared.operand_slots if s.constant]
        self.operands = _Count("operand", declared.operand_slots)
        self.results = _Count("result", declared.result_slots)
        self.seen: set[tuple[str, ...]] = set()

    def check(self, op: Op) -> str | None:
        types = (*map(_element, op.operands), "->", *map(_element, op.results))
        if types not in self.seen:
            reason = self._types(op)
            if reason is not None:
                return reason
            self.seen.add(types)
        for slot in self.constants:
            value = op.operands[slot.index]
            if value is not None and not value.is_constant:
                return f"operand '{slot.name}' is not a constant"
        for name, value in op.attributes.items():
            holds = self.holds.get(name)
            if holds is None or not holds(value):
                return self._attribute(name, value)
        if not self.required <= op.attributes.keys():
            return f"it has no attribute '{min(self.required - op.attributes.keys())}'"
        return None

    def _types(self, op: Op) -> str | None:
        """Why no signature fits: what is wrong by the one that gets furthest."""
        arity = self.operands.reason(op.operands) or self.results.reason(op.results)
        if arity is not None:
            return arity
        slots = (*self.declared.operand_slots, *self.declared.result_slots)
        reasons = [self._mismatch(i, op) for i in range(max((len(s.types) for s in slots), default=1))]
        if any(reason is None for _, reason in reasons):
            return None
        return max(reasons, key=lambda r: r[0])[1]

    def _mismatch(self, alternative: int, op: Op) -> tuple[int, str | None]:
        """How many values fit a signature, and why the next one does not."""
        bound: dict[int, str] = {}
        fitting = 0
        declared = self.declared
        for slot, value in (*_paired(declared.operand_slots, op.operands), *_paired(declared.result_slots, op.results)):
            if value is None:
                continue
            found, allowed = _element(value), slot.types[alternative]
            if found not in allowed.names:
                return fitting, f"'{slot.name}' is {found}, not {allowed}"
            if allowed.bound and bound.setdefault(id(allowed), found) != found:
                return fitting, f"'{slot.name}' is {found}, not {bound[id(allowed)]} like the other values of one type"
            fitting += 1
        return fitting, None

    def _attribute(self, name: str, value: Any) -> str:
        if name not in self.attributes:
            return f"attribute '{name}' is not declared; it has {', '.join(self.attributes) or 'none'}"
        return f"attribute '{name}' is {value!r}, not {self.attributes[name].kind}"


def _element(value: Value | None) -> str:
    """The name of a plain element type; all quantized ones are alike."""
    return "" if value is None else getattr(value.type.element, "name", "quantized")


def _paired(slots: Sequence[Slot], values: Sequence[Value | None]) -> Iterator[tuple[Slot, Value | None]]:
    """Each value with its slot; the last slot takes the rest if it is variadic."""
    return ((slots[min(i, len(slots) - 1)], value) for i, value in enumerate(values))
