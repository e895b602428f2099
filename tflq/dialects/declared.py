"""Whether an op is as its class declares it: one check for every dialect, and for what files hold.

The numbers of operands and results, what is left out, element types by signature, constant operands, attributes and
their kinds. A declaration is compiled when the first op of its class is met; types that have passed are remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tflq.dialects.declare import INTEGER, QUANTIZED, Operator, Slot, Types
from tflq.ir.core import Op, Value
from tflq.ir.types import BareType, ElementType, ScalarType

__all__ = ["Declared", "compiled", "declared"]

_CLOSED: Final = frozenset({"tosa", "ext", "quant"})
"""Dialects whose ops have no other attributes than the declared ones. Text may add some to others."""

_COMPILED: Final[dict[type[Operator], Declared]] = {}

_INDICES: Final = Types(INTEGER, QUANTIZED, text="an integer")


def declared(op: Any) -> str | None:
    """The constraint that an op is as its class declares it."""
    return compiled(type(op)).check(op)


def compiled(kind: type[Operator]) -> Declared:
    """The check of the ops of a class."""
    found = _COMPILED.get(kind)
    return _COMPILED.setdefault(kind, Declared(kind)) if found is None else found


class Declared:
    """The check of the ops of one class. `reason` says what is wrong with one; None if it is as declared."""

    def __init__(self, kind: type[Operator]) -> None:
        dialect = kind.op_name.partition(".")[0]
        self.slots = kind.operand_slots, kind.result_slots
        gaps = dialect == "tfl"  # an operator of a file can leave out any of a variadic operand's values
        self.operands = _Count("operand", kind.operand_slots, gaps)
        self.results = _Count("result", kind.result_slots, gaps)
        self.constants = [slot for slot in kind.operand_slots if slot.constant]
        self.types = {slot: slot.types or (_INDICES,) for side in self.slots for slot in side if _typed(slot)}
        self.signatures = max(map(len, self.types.values()), default=0)
        self.attributes = kind.attribute_slots
        self.required = {a.key for a in kind.attribute_slots.values() if a.required}
        self.closed = dialect in _CLOSED
        kinds = {key: a.kind for key, a in self.attributes.items() if self.closed or a.kind is not None}
        self.holds = {key: _anything if each is None else each.holds for key, each in kinds.items()}
        more = self.closed or self.holds or self.required or self.constants
        self.check = self.reason if more else self.values
        """The same as `reason`, without what there is not in the class."""
        self.seen: set[tuple[Any, ...]] = set()

    def reason(self, op: Op) -> str | None:
        """What is wrong with operands, results or attributes."""
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
        """What is wrong with operands or results: their number, one left out, the first that fits no signature."""
        if self.types:
            seen: tuple[Any, ...] = (*_elements(op.operands), "->", *_elements(op.results))
        else:
            seen = (len(op.operands), len(op.results), None in op.operands and (*[v is None for v in op.operands],))
        if seen in self.seen:
            return None
        reason = self.operands.reason(op.operands) or self.results.reason(op.results) or self._mistyped(op)
        if reason is None:
            self.seen.add(seen)
        return reason

    def _mistyped(self, op: Op) -> str | None:
        """Why no signature fits: what is wrong by the one that gets furthest."""
        misfits = [self._misfit(signature, op) for signature in range(self.signatures)]
        if not misfits or any(reason is None for _, reason in misfits):
            return None
        return max(misfits, key=lambda misfit: misfit[0])[1]

    def _misfit(self, signature: int, op: Op) -> tuple[int, str | None]:
        """How many values fit a signature, and why the next one does not."""
        bound: dict[int, str] = {}
        fitting = 0
        operands, results = self.slots
        for slot, value in (*_paired(operands, op.operands), *_paired(results, op.results)):
            if value is None or slot not in self.types:
                continue
            allowed, name = self.types[slot][signature], getattr(value.type.element, "name", "quantized")
            if not allowed.admits(value.type.element):
                return fitting, f"'{slot.name}' is {_text(value.type.element)}, not {allowed}"
            if allowed.bound and bound.setdefault(id(allowed), name) != name:
                return fitting, f"'{slot.name}' is {name}, not {bound[id(allowed)]} like the other values of one type"
            fitting += 1
        return fitting, None


class _Count:
    """How many values a list of slots takes. `gaps`: any of those of a variadic slot may be left out."""

    def __init__(self, kind: str, slots: Sequence[Slot], gaps: bool) -> None:
        self.kind = kind
        self.slots = slots
        self.gaps = gaps
        self.fewest = sum(not (s.optional or s.variadic) for s in slots)
        self.most = None if any(s.variadic for s in slots) else len(slots)

    def reason(self, values: Sequence[Value | None]) -> str | None:
        """What is wrong with their number, or with one that is left out."""
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


def _elements(values: Sequence[Value | None]) -> list[object]:
    """Plain element types, "quantized" for all others, None for what is left out."""
    return [v and (e if (e := v.type.element).__class__ is ScalarType else "quantized") for v in values]


def _text(element: ElementType) -> str:
    from tflq.ir.print_types import type_text

    return type_text(BareType.of(element))


def _paired(slots: Sequence[Slot], values: Sequence[Value | None]) -> Iterator[tuple[Slot, Value | None]]:
    """Each value with its slot; the last slot takes the rest if it is variadic."""
    return ((slots[min(i, len(slots) - 1)], value) for i, value in enumerate(values))
