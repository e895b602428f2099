"""The forms of the pipeline: which ops and types are legal in each; and the check of an op against its declaration.

    tfl        operators of TFLite with the operands and results that they declare; any types. Text can also have ops
               of `stablehlo`, `quant`, `tosa`, `ext`, `fxpmath` and of MLIR's core dialects
    integer    ops of `tosa`, `ext` and `quant` as declared: operands, element types, attributes; operators of TFLite
               on plain tensors. A quantized tensor is touched by `quant` ops, kept operators and the function's
               boundary only
    kernels    operators of TFLite as declared. Which of them, and on which types, is for the target's own table
    tosa       ops of `tosa` as declared; what TOSA asks for beyond that is for the target's own table (`tosa.check`)
    onnx       ops of `onnx` as declared, also inside of others

The check of a declaration is the same for every dialect, and for what files hold: the numbers of operands and results,
what is left out, element types by signature, constant operands, attributes and their kinds. It is compiled when the
first op of a class is met; types that have passed are remembered. `ir.verifier` checks what holds in every form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Final, Literal

from tflq.dialects.declare import INTEGER, QUANTIZED, Operator, Slot, Types, trait_of
from tflq.dialects.traits import Annotates, Recurrent, StaysQuantized
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, family, op_class
from tflq.ir.types import (
    BareType,
    CalibratedQuantizedType,
    ElementType,
    NoQuantizedType,
    ScalarType,
    element_storage,
)
from tflq.ir.verifier import Check, fail

# Whether an op is as its class declares it.


_CLOSED: Final = frozenset({"tosa", "ext", "quant", "fxpmath", "onnx"})
"""Dialects whose ops have no other attributes than the declared ones. Text may add some to others."""

_COMPILED: Final[dict[type[Operator], Declared]] = {}


_OF_STATISTICS: Final = frozenset({CalibratedQuantizedType, NoQuantizedType})


class _Stored(Types):
    """Types whose elements are stored as signed integers of whole bytes: not those of statistics, which stand for
    floats. Kernels read no others as indices."""

    def admits(self, element: ElementType) -> bool:
        if not super().admits(element):
            return False
        storage = element_storage(element)
        return storage.is_integer and storage.kind != "uint" and storage.bits >= 8


_INDICES: Final = _Stored(INTEGER, QUANTIZED, text="a signed integer of whole bytes")


def declared(op: Any) -> str | None:
    """The constraint that an op is as its class declares it."""
    return compiled(type(op)).check(op)


def undeclared(ops: Iterable[Op]) -> str:
    """Why one of some emitted ops does not take its operands or gives other results; empty if all fit."""
    for op in ops:
        if isinstance(op, Operator) and (reason := compiled(type(op)).values(op)) is not None:
            return f"{op.name} does not take it: {reason}"
    return ""


def compiled(kind: type[Operator]) -> Declared:
    """The check of the ops of a class."""
    check = _COMPILED.get(kind)
    return _COMPILED.setdefault(kind, Declared(kind)) if check is None else check


class Declared:
    """The check of the ops of one class. `reason` says what is wrong with one; None if it is as declared."""

    def __init__(self, kind: type[Operator]) -> None:
        dialect = kind.op_name.partition(".")[0]
        self.slots = kind.operand_slots, kind.result_slots
        gaps = dialect == "tfl" and kind.has(
            StaysQuantized
        )  # such an operator of a file can leave out any of its values
        some = dialect == "tfl" and not gaps
        self.operands = _Count("operand", kind.operand_slots, gaps, some=some)
        self.results = _Count("result", kind.result_slots, gaps, some=some)
        self.constants = [slot for slot in kind.operand_slots if slot.constant]
        self.types = {slot: slot.types or (_INDICES,) for side in self.slots for slot in side if _typed(slot)}
        self.signatures = max(map(len, self.types.values()), default=0)
        self.attributes = kind.attribute_slots
        self.required = {a.key for a in kind.attribute_slots.values() if a.required}
        self.closed = dialect in _CLOSED
        kinds = {key: a.kind for key, a in self.attributes.items() if self.closed or a.kind is not None}
        self.holds = {key: _anything if each is None else each.holds for key, each in kinds.items()}
        self.of_types = not (self.closed or self.holds or self.required or self.constants)
        """Whether numbers and element types of operands and results say all."""
        self.check = self.values if self.of_types else self.reason
        self.seen: set[tuple[Any, ...]] = set()

    def reason(self, op: Op) -> str | None:
        """Why operands, results or attributes are invalid, or None."""
        if (reason := self.values(op)) is not None:
            return reason
        for slot in self.constants:
            value = op.operands[slot.index]
            if value is not None and not value.is_constant:
                return f"operand '{slot.name}' is not a constant"
        for name, value in op.attributes.items():
            holds = self.holds.get(name)
            if holds is None:
                if self.closed:
                    return f"attribute '{name}' is not declared; it has {', '.join(self.attributes) or 'none'}"
            elif not holds(value):
                return f"attribute '{name}' is {value!r}, not {self.attributes[name].kind}"
        if not self.required <= op.attributes.keys():
            missing = next(key for key in self.attributes if key in self.required - op.attributes.keys())
            return f"it has no attribute '{missing}'"
        return None

    def values(self, op: Op) -> str | None:
        """Why operands or results are invalid, or None: their number, one left out, the first that fits no
        signature."""
        if self.types:  # the last None ends the operands: no result is left out
            seen: tuple[Any, ...] = _elements((*op.operands, None, *op.results))
        else:
            seen = (len(op.operands), len(op.results), None in op.operands and (*[v is None for v in op.operands],))
        if seen in self.seen:
            return None
        reason = self.operands.reason(op.operands) or self.results.reason(op.results) or self._mistyped(op)
        if reason is None:
            self.seen.add(seen)
        return reason

    def _mistyped(self, op: Op) -> str | None:
        """Why no signature fits, by the one that gets furthest."""
        misfits: list[tuple[int, Callable[[], str]]] = []
        for signature in range(self.signatures):
            fitting, misfit = self._misfit(signature, op)
            if misfit is None:
                return None
            misfits.append((fitting, misfit))
        return max(misfits, key=lambda misfit: misfit[0])[1]() if misfits else None

    def _misfit(self, signature: int, op: Op) -> tuple[int, Callable[[], str] | None]:
        """The number of values that fit a signature, and a function that tells why the next one does not."""
        bound: dict[int, str] = {}
        fitting = 0
        operands, results = self.slots
        for slot, value in (*_paired(operands, op.operands), *_paired(results, op.results)):
            if value is None or slot not in self.types:
                continue
            allowed, name = self.types[slot][signature], getattr(value.type.element, "name", "quantized")
            if not allowed.admits(value.type.element):
                return fitting, partial(_mistaken, slot, value.type.element, allowed)
            if allowed.bound and (other := bound.setdefault(id(allowed), name)) != name:
                other_type = "'{}' is {}, not {} like the other values of one type".format
                return fitting, partial(other_type, slot.name, name, other)
            fitting += 1
        return fitting, None


class _Count:
    """The number of values that a list of slots takes. `gaps`: any of those of a variadic slot may be left out;
    `some`: there is at least one."""

    def __init__(self, kind: str, slots: Sequence[Slot], gaps: bool, *, some: bool) -> None:
        self.kind = kind
        self.slots = slots
        self.gaps = gaps
        required = [place for place, s in enumerate(slots, 1) if not (s.optional or s.variadic)]
        self.fewest = max(required, default=int(some and bool(slots)))
        self.most = None if any(s.variadic for s in slots) else len(slots)

    def reason(self, values: Sequence[Value | None]) -> str | None:
        """Why the number of values is invalid, or one that is left out; or None."""
        count = len(values)
        if count < self.fewest or (self.most is not None and count > self.most):
            least = str(self.fewest)
            expected = f"{least} or more" if self.most is None else least if self.fewest == self.most else ""
            return f"it has {count} {self.kind}{'s' * (count != 1)}, not {expected or f'{least} to {self.most}'}"
        if None not in values:
            return None
        for slot, value in _paired(self.slots, values):
            if value is None and not (slot.optional or (slot.variadic and self.gaps)):
                return f"{self.kind} '{slot.name}' is left out and not optional"
        return None


def _typed(slot: Slot) -> bool:
    return bool(slot.types) or (slot.indices and not slot.variadic)


def _anything(_: object) -> bool:
    return True


def _elements(values: Sequence[Value | None]) -> tuple[object, ...]:
    """Plain element types, those of statistics, "quantized" for all others, None for what is left out."""
    return tuple([v and (e if (e := v.type.element).__class__ is ScalarType else _kind(e)) for v in values])


def _kind(element: ElementType) -> object:
    return element.__class__ if element.__class__ in _OF_STATISTICS else ("quantized", element_storage(element))


def _mistaken(slot: Slot, element: ElementType, allowed: Types) -> str:
    from tflq.ir.text.print_types import type_text

    return f"'{slot.name}' is {type_text(BareType.of(element))}, not {allowed}"


def _paired(slots: Sequence[Slot], values: Sequence[Value | None]) -> Iterator[tuple[Slot, Value | None]]:
    """Each value with its slot; the last slot takes the rest if it is variadic."""
    return ((slots[min(i, len(slots) - 1)], value) for i, value in enumerate(values))


# The forms.


ModuleForm = Literal["tfl", "integer", "kernels", "tosa", "onnx"]

CORE: Final = ("arith", "math", "tensor", "linalg", "shape", "func")
"""MLIR's core dialects."""
TRANSLATED: Final = (*CORE, "fxpmath")
"""Dialects of text that a conversion translates first."""

UNQUANTIZED: Final = "no quantized tensor"
INTEGER_EDGE: Final = "an edge of the integer form"
OF_TARGET: Final = "a kernel of the target"
"""The beginning of the reasons of all other kept operators."""

_DIALECTS: Final[dict[ModuleForm, tuple[str, ...]]] = {
    "tfl": ("tfl", "stablehlo", "quant", "tosa", "ext", *TRANSLATED),
    "integer": ("tfl", "quant", "tosa", "ext"),
    "kernels": ("tfl",),
    "tosa": ("tosa",),
    "onnx": ("onnx",),
}


def stays_quantized_reason(op: Op) -> str | None:
    """Why an operator keeps its quantized tensors in the integer form; None if it does not. Those that a target has
    kernels for say so themselves: "kept" in `Op.info`."""
    trait = trait_of(op, StaysQuantized)
    return None if trait is None else trait.reason


def is_recurrent(op: Op) -> bool:
    """Whether an operator keeps a state in variable tensors."""
    return isinstance(op, Operator) and op.has(Recurrent)


def verify_declared(module: Module) -> None:
    """VerificationError if an operator of TFLite has other operands, results or element types than it declares: what
    holds in every form, of an op with constants as operands."""
    for index, function in enumerate(module.functions):
        for op in function.ops:
            of_tflite = isinstance(op, Operator) and op.name.startswith("tfl.")
            if of_tflite and (reason := compiled(type(op)).values(op)) is not None:  # type: ignore[arg-type]
                fail(module, index, op, reason)


def verify_form(module: Module, form: ModuleForm) -> None:
    """VerificationError, showing the op among its neighbours, if an op is not legal in the form."""
    for index, function in enumerate(module.functions):
        if not function.info.get("declaration"):
            _verify_function(module, index, function, form)


def _verify_function(module: Module, index: int, function: Function, form: ModuleForm) -> None:
    ops = [*walk(function.ops)] if form == "onnx" else function.ops
    if form == "kernels":  # of builtins of which their types say all, the first of each signature stands for all
        alike = function.by_signature().values()
        ops = [op for same in alike for op in (same[:1] if _is_of_types(same[0]) else same)]
    for op in ops:
        reason = _check(op.name, form)(op)
        if reason is not None:
            fail(module, index, op, reason)


def _is_of_types(op: Op) -> bool:
    return isinstance(op, Operator) and compiled(type(op)).of_types


@cache
def _check(name: str, form: ModuleForm) -> Check:
    """The requirements on an op of that name."""
    dialect = name.partition(".")[0]
    if dialect not in _DIALECTS[form]:
        remedy = f"; run the pass that lowers {dialect} first" if form == "tfl" else ""
        return _never(f"the {form} form has ops of {', '.join(_DIALECTS[form])} only{remedy}")
    declared = op_class(name)
    if declared is None:
        return _never(f"the dialect '{dialect}' does not declare this op")
    if dialect == "quant" and family(name) == "regions" and not (form == "tfl" and declared.has(Annotates)):
        return _never("it is neither a cast nor statistics, and nothing computes it; run the pass that takes it away")
    if dialect == "stablehlo" or dialect in TRANSLATED or (form == "tfl" and dialect == "quant"):
        return _constrained  # its constraints hold in every form
    if dialect == "tfl" and form == "integer" and not declared.has(StaysQuantized):
        return _plain_operator(declared)
    return compiled(declared).check


def _constrained(_: Op) -> str | None:
    """The check of an op of which its own constraints say all."""
    return None


def _never(reason: str) -> Check:
    """The check of an op that has no place in the form."""
    return lambda _: reason


def _plain_operator(declared: type[Operator]) -> Check:
    """The declaration, and no quantized tensors, unless it is a float operator with quantized constants."""
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


_OUTSIDE_OF_TOSA: Final = ("tfl.", "ext.", "quant.", *(f"{name}." for name in TRANSLATED))


def is_tosa(module: Module) -> bool:
    """Whether a module is in the tosa form, as files of TOSA are read."""
    return any(op.name.startswith("tosa.") for op in module.ops()) and not any(
        op.name.startswith(_OUTSIDE_OF_TOSA) for op in module.ops()
    )
